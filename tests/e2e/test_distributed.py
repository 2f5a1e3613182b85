"""A job of several ranks in a real browser: who is late, the maps, the tables, a collective, the timeline."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Response, expect

from tests.e2e.page.places import choose, expect_fits, start
from tests.support.jobs import CULPRIT
from tests.support.page import NewPage, Open
from tests.support.servers.tensorboard import tensorboard
from tests.support.simulation.cached_jobs import cache_job
from torch_tb_profiler.cache import Cache

pytestmark = [pytest.mark.browser, pytest.mark.slow]

JOB = {"view": "distributed", "run": "o_job"}
TABLE = "[data-part=job-tables] [role=row]"


def in_address(name: str) -> re.Pattern[str]:
    return re.compile(rf"pytorch_profiler\.{name}=")


@pytest.mark.parametrize(("width", "theme"), [(900, "light"), (1440, "dark"), (2500, "light")])
def test_the_late_rank_is_named_with_what_it_did(open_page: Open, width: int, theme: str) -> None:
    _, frame = open_page(width=width, theme=theme, **JOB)
    expect(frame.locator("h1")).to_contain_text("Rank 4 is a straggler")
    expect(frame.locator("[data-part=answer]")).to_contain_text(CULPRIT)
    expect(frame.locator("[data-part=straggler-row][aria-current]")).to_contain_text("rank 4")
    expect(frame.locator("[data-part=while-row]").first).to_contain_text(CULPRIT)
    expect(frame.locator("[data-part=rank-bar]")).to_have_count(6)
    expect_fits(frame)


def test_what_the_late_rank_did_is_found_on_its_timeline(open_page: Open) -> None:
    page, frame = open_page(**JOB)
    rows = frame.locator("[data-part=while-row]")
    rows.filter(has_text=CULPRIT).get_by_role("button").click()
    expect(page).to_have_url(re.compile(f"view=trace.*worker=rank4.*find={CULPRIT}"))
    find = frame.get_by_placeholder("Find slices and kernels")
    expect(find).to_have_value(CULPRIT)
    expect(frame.locator("[data-part=find]")).to_contain_text(re.compile(r"[1-9]"))
    page.go_back()
    frame.get_by_role("radio", name="Categories").check(force=True)
    rows.first.get_by_role("button").click()
    expect(page).to_have_url(re.compile("view=overview.*worker=rank4"))


def test_the_sentences_open_their_evidence(open_page: Open) -> None:
    page, frame = open_page(**JOB)
    answer = frame.locator("[data-part=answer]")
    answer.get_by_role("button", name=CULPRIT).click()
    detail = frame.locator("[data-part=row-detail]")
    expect(detail).to_contain_text("arrived last")
    expect(detail).to_contain_text(CULPRIT)
    answer.get_by_role("button", name=re.compile("of 9 collectives")).click()
    expect(frame.locator("[data-part=job-tables] [data-part=chip]")).to_contain_text("last: rank 4")
    answer.get_by_role("button", name="Rank 4", exact=True).click()
    expect(page).to_have_url(re.compile("worker=rank4"))
    expect(page).to_have_url(re.compile("view=trace"))


def test_a_broken_rank_is_listed_and_the_rest_is_shown(open_page: Open) -> None:
    _, frame = open_page(table="ranks", **JOB)
    expect(frame.locator("[data-part=job-problems]")).to_contain_text("rank6")
    expect(frame.locator(TABLE).filter(has_text="rank6")).to_contain_text("the file is empty")
    expect(frame.locator(TABLE).filter(has_text="rank0")).to_contain_text("reference")


@pytest.mark.prefix
def test_a_late_cell_leads_to_its_collectives_and_these_to_the_timeline(open_page: Open) -> None:
    page, frame = open_page(**JOB)
    late = frame.get_by_role("figure", name="How late each rank arrives, per step")
    late.locator("button").nth(4 * 3 + 1).click()
    expect(page).to_have_url(in_address("late"))
    expect(frame.locator("[data-part=job-tables] [data-part=chip]")).to_contain_text("last: rank 4")
    row = frame.locator(TABLE).nth(1)
    expect(row).to_contain_text("rank 4")
    row.get_by_role("button").first.click()
    detail = frame.locator("[data-part=row-detail]")
    expect(detail.locator("[data-part=arrival]")).to_have_count(6)
    expect(detail).to_contain_text("arrived last")
    expect(detail).to_contain_text(CULPRIT)
    detail.locator("[data-part=arrival]").nth(2).click()
    expect(page).to_have_url(in_address("event"))
    expect(page).to_have_url(re.compile("worker=rank2"))
    expect(frame.locator("[data-part=event-details] h2")).to_contain_text("nccl", ignore_case=True)


def test_tables_by_rank_by_group_and_of_all_collectives(open_page: Open) -> None:
    page, frame = open_page(**JOB)
    expect(frame.locator(TABLE).nth(1)).to_contain_text("nccl:all_reduce")
    frame.get_by_role("radio", name="By process group").check()
    expect(frame.locator("[data-part=job-tables] [data-part=table-foot]")).to_contain_text("process group")
    frame.get_by_role("radio", name="All collectives").check()
    foot = frame.locator("[data-part=job-tables] [data-part=table-foot]")
    expect(foot).to_contain_text("9 collectives")
    frame.get_by_role("button", name="Skew", exact=True).click()
    expect(frame.locator(TABLE).nth(1)).to_contain_text("ms")
    frame.get_by_label("Filter by name").fill("no such thing")
    expect(frame.locator("[data-part=table-empty]")).to_contain_text("No collective matches")


def test_a_single_rank_still_has_the_view(open_page: Open) -> None:
    _, frame = open_page(view="distributed", run="a_training")
    expect(frame.locator("body")).to_contain_text("no communication between ranks")


def test_ranks_lie_on_one_timeline_with_their_collectives_joined(open_page: Open) -> None:
    page, frame = open_page(**JOB)
    frame.get_by_role("button", name="One timeline").click()
    expected = "Rank 4 is a straggler. Ranks {} are shown below it, on the job's clock."
    expect(frame.locator("h1")).to_have_text(expected.format("2, 3 and 5"))
    expect(frame.locator("[data-part=answer]")).to_contain_text("9 collectives in this window")
    labels = frame.locator("[data-part=track-label][data-kind=group]")
    expect(labels.filter(has_text="rank 4")).to_have_count(1)
    expect(labels.first).to_contain_text("rank 4")
    frame.get_by_role("button", name="Ranks", exact=False).first.click()
    frame.get_by_role("checkbox", name="rank 2").click()
    page.keyboard.press("Escape")
    expect(frame.locator("h1")).to_have_text(expected.format("3 and 5"))
    expect(page).to_have_url(in_address("ranks"))
    stage = frame.locator("[data-part=stage]")
    expect(frame.locator("[data-part=timeline][data-state=drawn]")).to_be_visible()
    box = stage.bounding_box()
    assert box is not None
    # Rank 3, below the late one, waits in a collective there.
    communication = frame.locator("[data-part=track-label][data-kind=slices]", has_text="stream 20").nth(1)
    place = communication.bounding_box()
    assert place is not None
    page.mouse.click(box["x"] + box["width"] * 0.5, place["y"] + place["height"] / 2)
    page.mouse.move(box["x"] + box["width"] * 0.5, place["y"] + place["height"] / 2)
    expect(frame.locator("[data-part=event-details] h2, [data-part=event-tip]").first).to_be_visible()
    frame.get_by_role("button", name="Back to the job").click()
    expect(frame.locator("h1")).to_contain_text("Rank 4 is a straggler")


def test_ranks_on_one_timeline_have_the_tools_of_one(open_page: Open) -> None:
    """Which tracks in which order, what colors say, where time counts from; all of it in the address."""
    page, frame = open_page(view="trace", run="o_job", ranks="rank3,rank4,rank5")
    timeline = frame.locator("[data-part=timeline][data-state=drawn]")
    expect(timeline).to_be_visible()
    groups = frame.locator("[data-part=track-label][data-kind=group]")
    expect(groups.first).to_contain_text("rank 4")
    tracks = frame.get_by_role("button", name=re.compile("^Tracks"))
    before = tracks.inner_text()
    tracks.click()
    menu = frame.locator("[data-part=trace-menu]")
    menu.get_by_title("Down").first.click()
    expect(page).to_have_url(in_address("order"))
    menu.get_by_role("button", name="Show all").click()
    expect(tracks).not_to_have_text(before)
    menu.get_by_role("button", name="Reset order and folding").click()
    expect(page).not_to_have_url(in_address("order"))
    expect(groups.first).to_contain_text("rank 4")
    menu.get_by_label("Filter tracks by name").fill("rank 5")
    expect(groups.filter(has_text="rank 4")).to_have_count(0)
    menu.get_by_label("Filter tracks by name").fill("")
    page.keyboard.press("Escape")
    for value in ("family", "process_group", "module"):
        choose(frame, "Color by", value)
        expect(page).to_have_url(in_address("color"))
        expect(timeline).to_be_visible()
    crumb = frame.locator("[data-part=crumb]").first
    since_start = crumb.inner_text()
    choose(frame, "Time from", "wall")
    expect(crumb).not_to_have_text(since_start)
    stage = frame.locator("[data-part=stage]")
    stage.focus()
    whole = crumb.inner_text()
    page.keyboard.press("w")
    expect(crumb).not_to_have_text(whole)
    page.keyboard.press("Backspace")
    expect(crumb).to_have_text(whole)


@pytest.mark.prefix
def test_a_collective_opens_its_ranks_on_one_timeline(open_page: Open) -> None:
    page, frame = open_page(table="collectives", collective="3", **JOB)
    frame.get_by_role("button", name="Ranks on one timeline").click()
    expect(frame.locator("h1")).to_contain_text("on the job's clock")
    expect(page).to_have_url(in_address("at"))
    expect(frame.locator("[data-part=answer]")).to_contain_text("in this window, connected across ranks")


LARGE = {"view": "distributed", "run": "u_ranks"}


@pytest.mark.parametrize(("width", "theme"), [(900, "dark"), (1440, "light")])
def test_of_a_large_job_the_late_rank_is_seen_on_the_map_and_beside_the_others(
    open_page: Open, width: int, theme: str
) -> None:
    _, frame = open_page(width=width, theme=theme, **LARGE)
    expect(frame.locator("h1")).to_contain_text("Rank 101 is a straggler")
    expect(frame.get_by_role("figure", name="Lateness by rank and step")).to_be_visible()
    expect(frame.locator("[data-part=spread]")).to_have_count(5)
    expect(frame.locator("[data-part=found-rank]")).to_contain_text("Costs the others")
    expect(frame.locator("[data-part=group-families]")).to_contain_text("1 × 160")
    expect(frame.locator(TABLE).nth(1)).to_contain_text("nccl:all_reduce")
    assert frame.locator(TABLE).count() < 60
    expect_fits(frame)


def test_a_rank_of_a_large_job_is_found_and_leads_on(open_page: Open) -> None:
    page, frame = open_page(**LARGE)
    expect(frame.locator("[data-part=marked-column]")).to_be_visible()
    frame.get_by_label("Find a rank, worker, or host").fill("77")
    expect(frame.get_by_role("heading", name="rank 77", exact=True)).to_be_visible()
    expect(page).to_have_url(in_address("rank"))
    frame.get_by_label("Find a rank, worker, or host").fill("nobody")
    expect(frame.locator("body")).to_contain_text("No rank, worker, or host matches “nobody”.")
    frame.get_by_label("Find a rank, worker, or host").fill("rank")
    frame.get_by_role("button", name="160 ranks match").click()
    expect(frame.locator("[data-part=job-tables] [data-part=table-foot]")).to_contain_text("160 ranks")


def test_a_drag_across_the_map_shows_these_ranks_alone(open_page: Open) -> None:
    page, frame = open_page(**LARGE)
    canvas = frame.get_by_role("figure", name="Lateness by rank and step").locator("canvas")
    expect(frame.locator("[data-part=column-maxima] span")).to_have_text(re.compile(r"\d"))
    expect(frame.locator("[data-part=column-names]")).to_contain_text("140")
    expect(frame.locator("[data-part=found-rank]")).to_be_visible()  # what comes later moves and narrows the map
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box is not None
    width, height = box["width"], box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.5 * width + 1, height)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.75 * width - 1, height, steps=4)
    expect(frame.locator("[data-part=brush]")).to_be_visible()
    page.mouse.up()
    expect(page).to_have_url(re.compile(r"pytorch_profiler\.begin=[78]\d&.*pytorch_profiler\.end=1[12]\d"))
    expect(frame.locator("[data-part=brush]")).to_have_count(0)
    names = frame.locator("[data-part=column-names]")
    expect(names).not_to_contain_text("140")
    frame.get_by_role("radio", name="Log").check()
    expect(page).to_have_url(re.compile(r"pytorch_profiler\.scale=log"))
    expect(frame.locator("body")).to_contain_text("log scale")
    frame.get_by_role("button", name="Show all 160").click()
    expect(names).to_contain_text("140")
    expect(page).not_to_have_url(in_address("begin"))


def test_the_tables_of_a_large_job_come_page_by_page(open_page: Open) -> None:
    _, frame = open_page(table="ranks", **LARGE)
    foot = frame.locator("[data-part=job-tables] [data-part=table-foot]")
    expect(foot.locator("span").first).to_have_text("160 ranks")
    frame.get_by_role("button", name="Costs", exact=True).click()
    expect(frame.locator(TABLE).nth(1)).to_contain_text("rank101")
    frame.get_by_role("radio", name="By process group").check()
    expect(foot.locator("span").first).to_have_text("1 row")
    frame.get_by_role("radio", name="Kernel families").check()
    expect(foot.locator("span").first).to_have_text("320 rows")
    frame.get_by_role("radio", name="By rank").check()
    expect(foot.locator("span").first).to_have_text("160 rows")


@pytest.fixture(scope="module")
def ten_thousand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield a server of a job of 10,000 ranks whose traces are read already."""
    folder, cache = tmp_path_factory.mktemp("large"), tmp_path_factory.mktemp("cache")
    cache_job(folder / "job", Cache(str(cache), 2**30), RANKS)
    with tensorboard("--logdir", str(folder), cache=cache, poll=600) as address:
        yield address


RANKS = 10_000


def test_ten_thousand_ranks_open_as_eight_do(new_page: NewPage, ten_thousand: str) -> None:
    """The late rank is named and marked; any other one is found; no table is longer than what is in sight."""
    page = new_page(1440, 900)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    start(page, ten_thousand, view="distributed")
    expect(page.locator("h1")).to_contain_text("Rank 5 is a straggler")
    expect(page.get_by_role("figure", name="Lateness by rank and step")).to_be_visible()
    expect(page.locator("[data-part=marked-column]")).to_be_visible()
    expect(page.locator("[data-part=spread]")).to_have_count(5)
    families = page.locator("[data-part=group-families] tbody tr")
    expect(families).to_contain_text(["1,250 × 8", "8 × 1,250"])
    page.get_by_label("Find a rank, worker, or host").fill("7777")
    expect(page.get_by_role("heading", name="rank 7777", exact=True)).to_be_visible()
    expect(page.locator("[data-part=found-rank]")).to_contain_text("Costs the others")
    assert page.locator(TABLE).count() < 60
    expect_fits(page)
    assert errors == []


LARGEST_ANSWER, MOST_ANSWERS, MOST_ELEMENTS = 150_000, 16, 3_500
"""What a page may ask for, at once (in bytes of JSON) and in five steps, and hold in its document, however many
ranks there are."""


def test_no_interaction_with_ten_thousand_ranks_asks_for_or_draws_more_than_is_in_sight(
    new_page: NewPage, ten_thousand: str
) -> None:
    """Each step asks for few answers and leaves a document, all of bounded size: its time follows these."""
    page = new_page(1440, 900)
    answers: list[Response] = []
    page.on("response", lambda response: answers.append(response) if "/view/" in response.url else None)
    start(page, ten_thousand, view="distributed")
    tables, names = page.locator("[data-part=job-tables]"), page.locator("[data-part=column-names]")
    foot = tables.locator("[data-part=table-foot]")

    def count_elements() -> int:
        count: int = page.locator("html").evaluate("e => e.querySelectorAll('*').length")
        return count

    expect(page.locator("h1")).to_contain_text("Rank 5 is a straggler")
    expect(page.locator("[data-part=found-rank]")).to_be_visible()
    expect(names).to_contain_text(re.compile(r"\d"))
    expect(tables.locator("[role=row]").nth(1)).to_be_visible()
    elements = [count_elements()]
    page.get_by_label("Find a rank, worker, or host").fill("7777")
    expect(page.get_by_role("heading", name="rank 7777", exact=True)).to_be_visible()
    elements.append(count_elements())
    page.get_by_role("radio", name="Log").check()
    expect(page).to_have_url(re.compile(r"pytorch_profiler\.scale=log"))
    elements.append(count_elements())
    page.get_by_role("radio", name="By process group").check()
    expect(foot.locator("span").first).to_have_text("1,258 rows")
    elements.append(count_elements())
    page.get_by_role("radio", name="By rank").check()
    expect(foot.locator("span").first).to_have_text("20,000 rows")
    elements.append(count_elements())
    sizes = {each.url: len(each.body()) for each in answers if each.status == 200}
    assert max(elements) < MOST_ELEMENTS, elements
    assert len(sizes) <= MOST_ANSWERS, sizes
    assert max(sizes.values()) < LARGEST_ANSWER, sizes
