"""The timeline in a real browser: pointing, keys, search, areas, links, themes."""

from __future__ import annotations

import csv
import json
import re

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.page.places import choose, expect_fits
from tests.support.page import Open, Tab, address, draw_training, lane_height
from tests.support.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.slow]

RUN = {"view": "trace", "run": "a_training"}


def ready(frame: Tab) -> dict[str, float]:
    """Wait for the drawing and for the sentence above it; return where it is on the screen."""
    expect(frame.locator("[data-part=timeline][data-state=drawn] [data-part=stage] canvas").first).to_be_visible()
    expect(frame.locator("[data-part=answer] [data-part=why]")).not_to_be_empty()
    box = frame.locator("[data-part=stage]").bounding_box()
    assert box is not None
    return {"x": box["x"], "y": box["y"], "width": box["width"], "height": box["height"]}


def reopen(page: Page, open_page: Open) -> Tab:
    """Open another page at the address of the first."""
    _, again = open_page(**dict(re.findall(r"p\.pytorch_profiler\.(\w+)=([^&]*)", page.url)))
    ready(again)
    return again


def in_address(page: Page, name: str) -> re.Pattern[str]:
    return re.compile(rf"pytorch_profiler\.{name}=")


@pytest.mark.parametrize(("width", "theme"), [(900, "light"), (1440, "dark"), (2500, "light")])
def test_draws_tracks_and_says_how_the_time_is_spent(open_page: Open, width: int, theme: str) -> None:
    _, frame = open_page(width=width, theme=theme, **RUN)
    ready(frame)
    expect(frame.locator("h1")).to_contain_text("is busy")
    assert frame.locator("[data-part=track-label][data-kind=slices]").count() >= 2
    ink = frame.locator("[data-part=stage] canvas").first.evaluate(
        """canvas => {
            const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
            const colors = new Set();
            for (let i = 0; i < data.length; i += 4)
                colors.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
            return colors.size;
        }"""
    )
    assert ink > 5
    expect_fits(frame)


def test_a_click_shows_all_of_a_slice_and_the_address_reopens_it(open_page: Open) -> None:
    page, frame = open_page(**RUN)
    box = ready(frame)
    page.mouse.click(box["x"] + box["width"] * 0.045, lane_height(frame, 1))
    details = frame.locator("[data-part=event-details]")
    expect(details.locator("h2")).to_contain_text("DataLoader")
    expect(details).to_contain_text("330 µs")
    expect(page).to_have_url(in_address(page, "event"))
    event = re.search(r"pytorch_profiler\.event=(\d+)", page.url)
    assert event
    _, again = open_page(event=event.group(1), **RUN)
    expect(again.locator("[data-part=event-details] h2")).to_contain_text("DataLoader")


def test_a_click_on_idle_time_says_why_and_leads_to_its_row(open_page: Open) -> None:
    page, frame = open_page(at="0-500000", **RUN)
    box = ready(frame)
    track = frame.locator("[data-part=track-label][data-kind=blame]").bounding_box()
    assert track is not None
    details = frame.locator("[data-part=moment-details]")

    def click_until_visible() -> bool:  # the track is asked for after the slices
        page.mouse.click(box["x"] + box["width"] * 0.3, track["y"] + track["height"] / 2)
        return details.is_visible()

    until(click_until_visible)
    expect(details.locator("h2")).to_have_text("Data loading")
    expect(details).to_contain_text("GPU 0 is idle for 330 µs of this 400 µs gap, waiting for data loading.")
    expect(details.locator("[data-part=moment-links]")).to_contain_text("enumerate(DataLoader)")
    expect(page).to_have_url(in_address(page, "moment"))
    details.get_by_role("button", name="Launch latency").click()
    expect(details.locator("h2")).to_have_text("Launch latency")
    details.get_by_role("button", name="All idle time").click()
    expect(frame.locator("[data-part=row-detail] h2")).to_contain_text("cudaLaunchKernel")
    page.go_back()
    ready(frame)
    expect(details.locator("h2")).to_have_text("Launch latency")
    details.get_by_role("button", name="Close (Escape)").click()
    expect(details).to_have_count(0)


def test_a_click_selects_and_zooms_nothing_and_the_way_back_moves_the_drawing(open_page: Open) -> None:
    page, frame = open_page(**RUN)
    box = ready(frame)
    page.mouse.click(box["x"] + box["width"] * 0.045, lane_height(frame, 1))
    expect(frame.locator("[data-part=event-details] h2")).to_contain_text("DataLoader")
    expect(page).not_to_have_url(in_address(page, "at"))
    all_of_it = frame.locator("[data-part=crumb]").inner_text()
    page.keyboard.press("f")
    expect(page).to_have_url(in_address(page, "at"))
    expect(frame.locator("[data-part=crumb]")).not_to_have_text(all_of_it)
    ready(frame)
    near = pixels(frame)
    page.keyboard.press("Backspace")
    expect(frame.locator("[data-part=crumb]")).to_have_text(all_of_it)
    until(lambda: pixels(frame) != near)
    page.keyboard.press("f")
    expect(frame.locator("[data-part=crumb]")).not_to_have_text(all_of_it)  # it rests
    page.keyboard.press("ArrowRight")
    expect(frame.locator("[data-part=event-details] h2")).to_contain_text("aten::mm")
    here = address(page)
    page.keyboard.press("f")
    expect(page).not_to_have_url(here)  # it rests
    until(lambda: pixels(frame) != near)
    page.go_back()
    expect(frame.locator("[data-part=event-details] h2")).to_contain_text("DataLoader")
    # The picture, not only the address: it is that of a page that begins there.
    again = reopen(page, open_page)
    until(lambda: pixels(again)[0] == pixels(frame)[0])


def test_most_of_a_screen_is_tracks(open_page: Open) -> None:
    _, frame = open_page(width=1440, height=900, **RUN)
    ready(frame)
    box = frame.locator("[data-part=tracks]").bounding_box()
    assert box is not None
    assert box["height"] >= 578


def test_keys_zoom_pan_and_step_from_slice_to_slice(open_page: Open) -> None:
    page, frame = open_page(**RUN)
    box = ready(frame)
    page.mouse.click(box["x"] + box["width"] * 0.045, lane_height(frame, 1))
    expect(frame.locator("[data-part=event-details] h2")).to_contain_text("DataLoader")
    page.keyboard.press("ArrowRight")
    expect(frame.locator("[data-part=event-details] h2")).to_contain_text("aten::mm")
    expect(frame.locator("[data-part=event-details] h2 img")).to_have_count(0)
    page.keyboard.press("ArrowUp")
    expect(frame.locator("[data-part=event-details] h2")).to_contain_text("ProfilerStep")
    page.keyboard.press("f")
    expect(page).to_have_url(in_address(page, "at"))
    before = page.url
    page.keyboard.press("d")
    expect(page).not_to_have_url(before)
    page.keyboard.press("Escape")
    expect(frame.locator("[data-part=event-details]")).to_have_count(0)


@pytest.mark.prefix
def test_search_counts_lists_and_steps_through_the_hits(open_page: Open) -> None:
    page, frame = open_page(**RUN)
    box = ready(frame)
    page.mouse.click(box["x"] + 5, box["y"] + box["height"] - 5)
    page.keyboard.press("/")
    page.keyboard.type("sgemm")
    expect(frame.locator("[data-part=find]")).to_contain_text("6")
    page.keyboard.press("Enter")
    expect(frame.locator("[data-part=event-details] h2")).to_have_text("sgemm")
    expect(frame.locator("[data-part=find]")).to_contain_text("1 of 6")
    page.keyboard.press("Enter")
    expect(frame.locator("[data-part=find]")).to_contain_text("2 of 6")
    page.keyboard.press("Shift+Enter")
    expect(frame.locator("[data-part=find]")).to_contain_text("1 of 6")


def test_flows_lead_from_the_kernel_to_its_launch_and_operator(open_page: Open) -> None:
    page, frame = open_page(**RUN)
    ready(frame)
    frame.locator("[data-find]").fill("sgemm")
    expect(frame.locator("[data-part=find-hits] li").first).to_be_visible()
    frame.locator("[data-part=find-hits] li button").first.click()
    details = frame.locator("[data-part=event-details]")
    expect(details.locator("h2")).to_have_text("sgemm")
    expect(details).to_contain_text("waited 50.0 µs in the queue")
    details.get_by_role("button", name="cudaLaunchKernel").first.click()
    expect(details.locator("h2")).to_have_text("cudaLaunchKernel")
    page.keyboard.press("]")
    expect(details.locator("h2")).to_have_text("sgemm")
    expect(details.locator("[data-part=event-links]")).to_contain_text("aten::mm <img")


def test_a_dragged_window_is_added_up(open_page: Open) -> None:
    page, frame = open_page(**RUN)
    box = ready(frame)
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 100, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + 500, middle, steps=5)
    page.mouse.up()
    area = frame.locator("[data-part=selected-area]")
    expect(area.locator("h2")).to_contain_text("Selected")
    expect(area).to_contain_text("busy")
    expect(area.locator("[role=row]").nth(1)).to_be_visible()
    expect(page).to_have_url(in_address(page, "area"))
    area.get_by_title("Close (Escape)").click()
    expect(frame.locator("[data-part=selected-area]")).to_have_count(0)


def test_the_totals_of_a_window_are_those_of_the_file(open_page: Open) -> None:
    begin, end = 1_200_000, 3_450_000
    clipped: dict[str, list[int]] = {}
    for event in json.loads(draw_training())["traceEvents"]:
        start = round(event["ts"] * 1000)
        inside = min(start + round(event["dur"] * 1000), end) - max(start, begin)
        if inside > 0:
            clipped.setdefault(event["name"], []).append(inside)
    page, frame = open_page(area=f"{begin}-{end}", **RUN)
    ready(frame)
    area = frame.locator("[data-part=selected-area]")
    # The kernel runs for 500 µs of each 1,000 µs, from 400 µs on: for 500, 500 and 50 µs of the window.
    expect(area.locator("[data-part=area-devices]")).to_contain_text("busy 1.05 ms (46.7%), idle 1.20 ms")
    with page.expect_download() as file:
        area.get_by_label("Save as CSV").click()
    rows = csv.DictReader(file.value.path().read_text().splitlines())
    shown = {row["name"]: (int(row["count"]), int(row["total_ns"])) for row in rows}
    assert shown == {name: (len(parts), sum(parts)) for name, parts in clipped.items()}


@pytest.mark.prefix(hosted=True)
def test_a_copied_link_opens_the_same_picture_in_another_window(open_page: Open) -> None:
    page, frame = open_page(**RUN)
    box = ready(frame)
    page.mouse.click(box["x"] + box["width"] * 0.045, lane_height(frame, 1))
    expect(frame.locator("[data-part=event-details] h2")).to_contain_text("DataLoader")
    label = frame.locator("[data-part=track-label][data-kind=slices]").first
    label.hover()
    label.get_by_role("button", name=re.compile("^Pin")).click()
    expect(page).to_have_url(in_address(page, "pins"))
    for key in "wdm":
        page.keyboard.press(key)
    expect(page).to_have_url(in_address(page, "marks"))
    page.mouse.move(5, 5)

    # The address follows the window once it rests: a link copied before shows where it was by then.
    again = until(lambda: reopen(page, open_page), lambda again: pixels(again) == pixels(frame))
    expect(again.locator("[data-part=event-details] h2")).to_contain_text("DataLoader")


def pixels(frame: Tab) -> list[str]:
    """Return what both canvases show."""
    canvases = frame.locator("[data-part=stage] canvas")
    return [canvases.nth(i).evaluate("canvas => canvas.toDataURL()") for i in range(canvases.count())]


def test_the_headline_opens_its_evidence_and_keeps_what_is_set(open_page: Open) -> None:
    page, frame = open_page(color="module", **RUN)
    ready(frame)
    share, name = (
        frame.locator("h1").get_by_role("button").nth(0),
        frame.locator("h1").get_by_role("button").nth(1),
    )
    name.click()
    expect(frame.locator("[data-part=event-details] h2")).to_have_text("sgemm")
    share.click()
    expect(frame.locator("[data-part=selected-area] h2")).to_contain_text("Selected")
    expect(page).to_have_url(in_address(page, "color"))


def test_a_step_of_the_ruler_is_a_window(open_page: Open) -> None:
    page, frame = open_page(**RUN)
    box = ready(frame)
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 34)
    expect(frame.locator("[data-part=selected-area] h2")).to_contain_text("Selected 1.00 ms")


def test_tracks_fold_pin_and_hide_in_the_address(open_page: Open) -> None:
    page, frame = open_page(**RUN)
    ready(frame)
    label = frame.locator("[data-part=track-label][data-kind=slices]").first
    label.hover()
    label.get_by_role("button", name=re.compile("^Pin")).click()
    expect(page).to_have_url(in_address(page, "pins"))
    frame.locator("[data-part=track-label][data-kind=group]").first.get_by_role("button").first.click()
    expect(page).to_have_url(in_address(page, "folded"))
    frame.get_by_role("button", name=re.compile("^Tracks")).click()
    frame.locator("[data-part=trace-menu] input[type=checkbox]").first.uncheck()
    expect(page).to_have_url(in_address(page, "hidden"))


def test_colors_and_clocks(open_page: Open) -> None:
    page, frame = open_page(**RUN)
    ready(frame)
    for value in ("name", "family", "module", "process_group", "class"):
        choose(frame, "Color by", value)
        ready(frame)
    for value in ("step", "trace"):
        choose(frame, "Time from", value)
    # Its times count from 0, not from the epoch.
    frame.get_by_role("combobox", name="Time from").click()
    expect(frame.get_by_role("option").first).to_be_visible()
    expect(frame.locator("[role=option][data-value=wall]")).to_have_count(0)
    page.keyboard.press("Escape")
    frame.get_by_role("button", name="Why is there no wall clock?").focus()
    expect(frame.get_by_text("No time of day")).to_be_visible()
    expect(frame.locator("[data-part=trouble]")).to_have_count(0)


@pytest.mark.prefix(hosted=True)
def test_the_file_and_what_is_shown_can_be_downloaded(open_page: Open) -> None:
    page, frame = open_page(**RUN)
    ready(frame)
    frame.get_by_role("button", name="Download").click()
    with page.expect_download() as whole:
        frame.get_by_role("link", name="The original file").click()
    assert b"ProfilerStep" in whole.value.path().read_bytes()
    frame.get_by_role("button", name=re.compile("Open in Perfetto")).click()
    expect(frame.get_by_text("needs internet access")).to_be_visible()


def test_the_critical_path_is_lit_and_walked_along(open_page: Open) -> None:
    page, frame = open_page(**RUN)
    ready(frame)
    before = pixels(frame)
    frame.get_by_role("button", name="Path", exact=True).click()
    expect(page).to_have_url(in_address(page, "path"))
    until(lambda: pixels(frame), lambda shown: shown[0] != before[0])
    page.keyboard.press("]")
    details = frame.locator("[data-part=event-details] h2")
    expect(details).to_be_visible()
    first = details.inner_text()
    page.keyboard.press("]")
    expect(details).not_to_have_text(first)
    page.keyboard.press("[")
    expect(details).to_have_text(first)
