"""The memory of a run in a real browser: curve, instants, ranges, tables, the hint at a leak."""

from __future__ import annotations

import csv
import re

import pytest
from playwright.sync_api import expect

from tests.e2e.page.places import choose, expect_fits
from tests.support.page import Open, Tab

pytestmark = [pytest.mark.browser, pytest.mark.slow]

RUN = {"view": "memory", "run": "n_memory"}
ROWS = "[data-part=memory-tables] [role=row]"


def curve(frame: Tab) -> dict[str, float]:
    """Wait for the drawing; return where it is on the screen."""
    expect(frame.locator("[data-part=memory-curve] [data-part=allocated]")).to_be_visible()
    box = frame.locator("[data-part=memory-curve] svg").bounding_box()
    assert box is not None
    return {"x": box["x"], "y": box["y"], "width": box["width"], "height": box["height"]}


def in_address(name: str) -> re.Pattern[str]:
    return re.compile(rf"pytorch_profiler\.{name}=")


@pytest.mark.parametrize(("width", "theme"), [(900, "light"), (1440, "dark"), (2500, "light")])
def test_the_peak_its_share_and_who_holds_it(open_page: Open, width: int, theme: str) -> None:
    _, frame = open_page(width=width, theme=theme, **RUN)
    curve(frame)
    # 64 MiB from before, 5 kept, the largest scratch block is 2.5 MiB.
    expect(frame.locator("h1")).to_contain_text("Memory on GPU 0 peaks at 71.5 MiB, 7% of its capacity")
    expect(frame.locator("h1")).to_contain_text("64.0 MiB were allocated before the trace started")
    expect(frame.locator("[data-part=live-rows]")).to_contain_text("allocated before the trace")
    expect(frame.locator("[data-part=live-rows] img")).to_have_count(0)
    expect_fits(frame)


def test_a_click_asks_for_an_instant_and_the_address_reopens_it(open_page: Open) -> None:
    page, frame = open_page(**RUN)
    box = curve(frame)
    live = frame.locator("[data-part=memory-live]")
    expect(live.locator("h2")).to_contain_text("Live at the peak")
    page.mouse.click(box["x"] + box["width"] * 0.5, box["y"] + 120)
    expect(live.locator("h2")).not_to_contain_text("the peak")
    expect(page).to_have_url(in_address("at"))
    _, again = open_page(at=str(re.findall(r"pytorch_profiler\.at=(\d+)", page.url)[0]), **RUN)
    expect(again.locator("[data-part=live-rows] li").first).to_be_visible()
    # Until its rows are here, the panel shows those of the instant before.
    expect(live).to_have_text(again.locator("[data-part=memory-live]").inner_text(), use_inner_text=True)
    frame.get_by_role("button", name="Jump to peak").click()
    expect(frame.locator("[data-part=memory-live] h2")).to_contain_text("Live at the peak")


def test_a_dragged_range_filters_and_a_right_click_resets(open_page: Open) -> None:
    page, frame = open_page(**RUN)
    box = curve(frame)
    expect(frame.locator("[data-part=memory-tables] [data-part=table-foot]")).to_contain_text("205 blocks")
    y = box["y"] + 120
    page.mouse.move(box["x"] + box["width"] * 0.3, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, y, steps=4)
    page.mouse.up()
    expect(page).to_have_url(in_address("range"))
    expect(frame.locator("[data-part=memory-tables] [data-part=table-foot]")).not_to_contain_text("205 blocks")
    expect(frame.locator("[data-part=chip]")).to_be_visible()
    frame.get_by_role("button", name="Zoom in").click()
    expect(frame.locator("[data-part=memory-strip] svg")).to_be_visible()
    frame.get_by_role("button", name="Show all").first.click()
    box = curve(frame)
    page.mouse.move(box["x"] + box["width"] * 0.3, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, y, steps=4)
    page.mouse.up()
    expect(frame.locator("[data-part=chip]")).to_be_visible()
    page.mouse.click(box["x"] + 200, y, button="right")
    expect(frame.locator("[data-part=chip]")).to_have_count(0)
    expect(frame.locator("[data-part=memory-tables] [data-part=table-foot]")).to_contain_text("205 blocks")


def test_the_keyboard_moves_the_instant(open_page: Open) -> None:
    page, frame = open_page(**RUN)
    curve(frame)
    frame.locator("[data-part=memory-curve] svg").focus()
    page.keyboard.press("ArrowLeft")
    expect(page).to_have_url(in_address("at"))


@pytest.mark.prefix
def test_blocks_are_sorted_searched_and_saved_by_the_server(open_page: Open) -> None:
    page, frame = open_page(**RUN)
    curve(frame)
    first = frame.locator(ROWS).nth(1)
    expect(first).to_contain_text("2.50 MiB")
    frame.get_by_role("button", name="Size").click()
    expect(first).to_contain_text("64.0 KiB")
    frame.get_by_label("Filter by operator").fill("kept")
    expect(frame.locator("[data-part=memory-tables] [data-part=table-foot]")).to_contain_text("5 blocks")
    expect(first).to_contain_text("still live")
    with page.expect_download() as saved:
        frame.get_by_label("Save as CSV").click()
    rows = list(csv.DictReader(saved.value.path().read_text().splitlines()))
    assert [int(row["size"]) for row in rows] == [1 << 20] * 5
    frame.get_by_label("Filter by operator").fill("")
    expect(frame.locator("[data-part=memory-tables] [data-part=table-foot]")).to_contain_text("205 blocks")
    scroller = frame.locator("[data-part=memory-tables] [data-part=table-scroll]")
    scroller.evaluate("e => e.scrollTo(0, e.scrollHeight)")
    expect(frame.locator(f"{ROWS}[aria-rowindex='206']")).to_contain_text("aten::scratch")


def test_a_leak_is_named_and_leads_to_its_allocation(open_page: Open) -> None:
    page, frame = open_page(**RUN)
    warning = frame.locator("[data-part=memory-warning]")
    expect(warning).to_contain_text("leak 1.00 MiB per step")
    expect(warning).to_contain_text("aten::kept <img")
    warning.get_by_role("button", name=re.compile(r"1\.00\s+MiB")).click()
    expect(frame.locator(ROWS).nth(1)).to_contain_text("5.00 MiB")
    frame.locator(ROWS).nth(1).click()
    frame.get_by_role("button", name="Show the newest block on the timeline").click()
    expect(page).to_have_url(in_address("event"))
    expect(frame.locator("[data-part=event-details] h2")).to_contain_text("aten::kept")


def test_operators_add_up_with_what_is_outside(open_page: Open) -> None:
    page, frame = open_page(table="operators", **RUN)
    expect(frame.locator("[data-part=memory-tables] [role=row]").nth(1)).to_contain_text("aten::scratch")
    foot = frame.locator("[data-part=memory-tables] [data-part=table-foot]")
    expect(foot).to_contain_text("outside operators")


def test_a_trace_without_memory_says_what_to_set(open_page: Open) -> None:
    _, frame = open_page(view="memory", run="a_training")
    expect(frame.locator("body")).to_contain_text("profile_memory=True")


@pytest.mark.prefix
def test_the_memory_files_of_the_run_are_opened_or_refused(open_page: Open) -> None:
    _, frame = open_page(**RUN)
    curve(frame)
    choose(frame, "Memory of", "oom <b>.pickle")
    expect(frame.locator("h1")).to_contain_text("Out of memory on GPU 0: 954 MiB requested")
    expect(frame.locator("[data-part=live-rows]")).to_contain_text("forward")
    expect(frame.locator("[data-part=allocation-error]")).to_contain_text("An allocation of 954 MiB failed")
    expect(frame.locator("[data-part=segments] li")).to_have_count(2)
    choose(frame, "Memory of", "w.raw.json")
    expect(frame.locator("h1")).to_contain_text(
        "No more than 950 B are in use at any time; 42.1% of it is parameter"
    )
    expect(frame.locator("[data-part=kind-list]")).to_contain_text("activation")
    choose(frame, "Memory of", "evil.pickle")
    expect(frame.locator("h1")).to_contain_text("can’t be shown")
    why = frame.locator("[data-part=answer] [data-part=why]")
    expect(why).to_contain_text("the pickle names a class or function")
    choose(frame, "Memory of", "the trace")
    curve(frame)
