"""What the page claims holds: of what is cut off, of one step, of work that the host only launches."""

from __future__ import annotations

import json
import re
from functools import partial

import msgspec
import pytest
from msgspec.structs import replace
from playwright.sync_api import Route, expect

from tests.support.jobs import Job, ddp
from tests.support.page import Open, Tab
from tests.support.waiting import until
from torch_tb_profiler.view import Members, NoParams
from torch_tb_profiler.views.distributed.build import build

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_of_a_file_that_is_cut_off_no_verdict_is_given(open_page: Open) -> None:
    _, frame = open_page(run="b_damaged", worker="rank1")
    expect(frame.locator("h1")).to_contain_text("The file is truncated")
    expect(frame.locator("h1")).not_to_contain_text("idle")
    expect(frame.locator("[data-part=advice]")).to_contain_text("No advice: the file is truncated")


def test_no_advice_is_no_claim_that_the_device_is_busy(open_page: Open) -> None:
    _, frame = open_page(run="x_late")
    expect(frame.locator("h1")).to_contain_text("GPU 0 is idle for 80% of the step")
    advice = frame.locator("[data-part=advice]")
    expect(advice).to_have_text("No known fix would save 2% or more. Look at the gaps on the timeline.")


def test_one_step_is_never_called_every_step(open_page: Open) -> None:
    _, frame = open_page(run="c <b>bold</b>")
    expect(frame.locator("h1")).to_contain_text("of the step")
    expect(frame.locator("[data-part=answer]")).to_contain_text("1 complete step")
    for phrase in ("every step", "average step", "1 steps"):
        expect(frame.locator("#page")).not_to_contain_text(phrase)


def test_a_step_alone_says_nothing_of_the_others(open_page: Open) -> None:
    _, frame = open_page(run="a_training", step="2")
    heading = frame.get_by_role("heading", name=re.compile("^Step 2, 1.00 ms"))
    expect(heading).to_be_visible()
    expect(frame.locator("#page")).not_to_contain_text("every step")


def test_an_operator_opens_where_its_device_work_is_said(open_page: Open) -> None:
    _, frame = open_page(view="operators", run="a_training")
    frame.locator("[data-part=table-body] [role=row]", has_text="aten::mm").click()
    frame.get_by_role("button", name="Show on timeline").click()
    details = frame.locator("[data-part=event-details]")
    expect(details.locator("h2")).to_contain_text("aten::mm")
    expect(frame.locator("h1")).not_to_contain_text("Nothing ran")


def test_no_share_of_a_window_exceeds_the_whole(open_page: Open) -> None:
    _, frame = open_page(view="trace", run="m_modules")
    expect(frame.locator("[data-part=timeline][data-state=drawn]")).to_be_visible()
    expect(frame.locator("[data-part=answer] [data-part=why]")).not_to_be_empty()
    text = frame.locator("[data-part=answer]").inner_text()
    shares = [float(share) for share in re.findall(r"([\d.]+)%", text)]
    assert shares
    assert max(shares) <= 100


def test_the_wait_in_the_queue_is_said_as_one(open_page: Open) -> None:
    _, frame = open_page(view="trace", run="a_training", event="4")
    expect(frame.locator("[data-part=event-details] h2")).to_have_text("sgemm")
    expect(frame.locator("[data-part=event-details]")).to_contain_text("50.0 µs")


def test_a_link_to_a_python_frame_unfolds_the_frames(open_page: Open) -> None:
    """A nested one is drawn only then; once they are folded by hand, they stay folded."""
    page, frame = open_page(view="trace", run="x_framed", event="5")
    expect(frame.locator("[data-part=event-details] h2")).to_contain_text("decode")
    python = frame.get_by_role("button", name="Python", exact=True)
    expect(python).to_have_attribute("aria-pressed", "true")
    frame.locator("[data-part=stage]").focus()
    page.keyboard.press("p")
    expect(python).to_have_attribute("aria-pressed", "false")
    expect(frame.locator("[data-part=event-details] h2")).to_contain_text("decode")
    expect(python).to_have_attribute("aria-pressed", "false")


def test_what_covers_the_wait_is_named(open_page: Open) -> None:
    """A Python frame around all of it is no operator or call, and yet it was recorded."""
    _, frame = open_page(run="x_framed")
    expect(frame.locator("h1")).to_contain_text("GPU 0 is idle for")
    expect(frame.locator("[data-part=answer]")).to_contain_text("is spent in preprocess (train.py:9)")


def drawn_pixels(frame: Tab) -> str:
    pixels: str = frame.locator("[data-part=stage] canvas").first.evaluate("canvas => canvas.toDataURL()")
    return pixels


def test_the_way_back_moves_the_drawing_with_the_address(open_page: Open) -> None:
    page, frame = open_page(view="trace", run="a_training")
    expect(frame.locator("[data-part=timeline][data-state=drawn]")).to_be_visible()
    crumb = frame.locator("[data-part=crumb]")
    frame.locator("h1").get_by_role("button", name="sgemm").click()
    expect(frame.locator("[data-part=event-details] h2")).to_have_text("sgemm")
    whole, all_of_it = crumb.inner_text(), until(partial(drawn_pixels, frame))
    page.keyboard.press("f")
    expect(crumb).not_to_have_text(whole)
    until(partial(drawn_pixels, frame), lambda pixels: pixels != all_of_it)
    page.go_back()
    expect(crumb).to_have_text(whole)


def test_of_several_calls_the_one_with_the_most_device_time_opens(open_page: Open) -> None:
    _, frame = open_page(view="operators", run="w_lagging")
    frame.locator("[data-part=table-body] [role=row]", has_text="aten::mm").click()
    frame.get_by_role("button", name="Show on timeline").click()
    details = frame.locator("[data-part=event-details]")
    expect(details.locator("h2")).to_have_text("aten::mm")
    expect(frame.locator("h1")).not_to_contain_text("Nothing ran")
    expect(details).to_contain_text("long_gemm")
    expect(details).not_to_contain_text("short_gemm")


def test_a_device_behind_its_host_is_no_slow_step(open_page: Open) -> None:
    page, frame = open_page(run="w_lagging")
    answer = frame.locator("[data-part=answer]")
    expect(answer).to_contain_text("2 steps of about 1.00 ms.")
    expect(answer).to_contain_text(
        "Step 5 before them takes 1.60 ms, because the device falls behind the host in it."
    )
    expect(answer).not_to_contain_text("varies most")
    marked = re.compile("^Step 5, 1.60 ms, with the time by which the device falls behind the host")
    expect(frame.get_by_role("button", name=marked)).to_be_visible()
    # The host begins its step 6 while the device is still at work for step 5.
    frame.get_by_role("button", name="Trace", exact=True).click()
    frame.get_by_placeholder("Find slices and kernels").press_sequentially("ProfilerStep#6\n")
    expect(frame.locator("[data-part=event-details] h2")).to_have_text("ProfilerStep#6")
    card = frame.locator(
        "[data-part=event-details] dl div", has=frame.locator("dt", has_text=re.compile("^Step$"))
    )
    expect(card.locator("dd")).to_have_text("6")


def test_before_most_ranks_are_read_no_verdict_is_final(open_page: Open) -> None:
    """The page gets the answer about four of six ranks, and then the one about all of them."""
    page, frame = open_page(run="o_job")
    expect(frame.locator("#page[data-shown='overview o_job']")).to_be_visible()
    members = Job(6, ddp(6)).members()
    here, others = members[:4], members[4:]
    unread = [replace(member, state="waiting", result=None) for member in others]
    early = json.loads(msgspec.json.encode(build(Members([*here, *unread]), NoParams())))

    def of_four_ranks(route: Route) -> None:
        answer = route.fetch().json()
        answer |= {"state": "ready", "loading": 2, "payload": early}
        route.fulfill(body=json.dumps(answer), content_type="application/json")

    address = re.compile(r"view/distributed(\?|$)")
    page.route(address, of_four_ranks)
    frame.get_by_role("button", name="Distributed", exact=True).click()
    expect(frame.locator("h1")).to_contain_text("Of the 4 ranks read so far, none is a straggler.")
    page.unroute(address)
    expect(frame.locator("h1")).to_contain_text("Rank 4 is a straggler")


def test_a_span_is_compared_with_the_one_before_and_a_run_with_the_one_most_alike(open_page: Open) -> None:
    _, frame = open_page(view="diff", run="a_training", span="2")
    crumb = frame.locator("[data-part=crumb]")
    expect(crumb).to_contain_text("a_training · w · span 2 vs. a_training · w · span 1")
    _, frame = open_page(view="diff", run="p_faster")
    crumb = frame.locator("[data-part=crumb]")
    expect(crumb).to_contain_text("p_faster · w · span 1 vs.")
    expect(crumb).not_to_contain_text("n_memory")


def axis(frame: Tab) -> list[tuple[float, float]]:
    """Return height and value of each label at the left of the steps."""
    marks: list[tuple[float, float]] = frame.locator("svg", has=frame.locator("[id^=step-]")).evaluate(
        """svg => [...svg.querySelectorAll('text[text-anchor=end]')]
            .map(text => [Number(text.getAttribute('y')), Number(text.textContent)])
            .filter(([, value]) => !Number.isNaN(value))"""
    )
    return marks


@pytest.mark.parametrize("run", ["a_training", "w_lagging", "o_job"])
def test_an_axis_says_the_value_at_its_mark(open_page: Open, run: str) -> None:
    _, frame = open_page(run=run)
    marks = until(partial(axis, frame), lambda found: len(found) > 2)
    (bottom, zero), *others = marks
    assert zero == 0
    scale = {round(value / (bottom - y), 5) for y, value in others}
    assert max(scale) / min(scale) < 1.01, marks


def test_the_launch_of_an_operator_is_said_with_its_own_words(open_page: Open) -> None:
    """The call that launches lies inside it and comes no later: the kernel does, after that call."""
    page, frame = open_page(view="trace", run="w_lagging")
    frame.get_by_placeholder("Find slices and kernels").press_sequentially("aten::mm\n")
    details = frame.locator("[data-part=event-details]")
    expect(details.locator("h2")).to_have_text("aten::mm")
    links = details.locator("h3:text-is('Links') + ul")
    expect(links).to_have_text(re.compile("^→ launch short_gemm 680 µs after cudaLaunchKernel$"))
    expect(details).not_to_contain_text("later")
