"""Room on the timeline: what the wheel does, names that stay in sight, where details lie."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.page.test_trace_tools import drag, drawn_stage
from tests.support.page import Open, Tab, address, lane_height
from tests.support.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.slow]

RUN = {"view": "trace", "run": "a_training"}
LOW = {"width": 900, "height": 500, "event": "0"}
"""A window so small that the tracks do not fit beside the details of a slice."""


def scroll_offset(frame: Tab) -> float:
    found: float = frame.locator("[data-part=tracks]").evaluate("e => e.scrollTop")
    return found


def box_of(part: Locator) -> dict[str, float]:
    box = part.bounding_box()
    assert box is not None
    return {"x": box["x"], "y": box["y"], "width": box["width"], "height": box["height"]}


def window(page: Page) -> tuple[int, int] | None:
    """Return the window in the address."""
    found = re.search(r"\.at=(-?\d+)-(-?\d+)", address(page))
    return (int(found.group(1)), int(found.group(2))) if found else None


def drawing_box(frame: Tab, how: dict[str, Any]) -> dict[str, float]:
    """Return where the drawing is, once the details lie where they do and the page is scrolled to it."""
    drawn_stage(frame)
    if how:
        expect(frame.locator("[data-part=dock]")).to_have_attribute("data-side", "below")
    frame.locator("[data-part=timeline]").scroll_into_view_if_needed()
    return drawn_stage(frame)


def zoom_once(page: Page, before: tuple[int, int] | None) -> tuple[int, int]:
    """Turn the wheel with Ctrl once; return the window then."""
    page.keyboard.down("Control")
    page.mouse.wheel(0, -100)
    page.keyboard.up("Control")
    return until(lambda: window(page), lambda now: now not in (None, before)) or (0, 0)


@pytest.mark.parametrize("how", [{}, LOW], ids=["fits", "scrolls"])
def test_the_wheel_does_the_same_whatever_there_is_to_scroll(open_page: Open, how: dict[str, Any]) -> None:
    page, frame = open_page(**how, **RUN)
    box = drawing_box(frame, how)
    fits = frame.locator("[data-part=tracks]").evaluate("e => e.scrollHeight <= e.clientHeight + 1")
    assert fits == (not how)
    at = box["x"] + box["width"] / 4
    page.mouse.move(at, box["y"] + 100)
    # Plain, it scrolls where there is something to scroll, never zooms, and says what would.
    page.mouse.wheel(0, 60)
    until(lambda: (scroll_offset(frame) > 0) == (not fits))
    hint = frame.locator("[data-part=wheel-hint]")
    expect(hint).to_contain_text("zooms")
    unzoomed = window(page)
    # With Ctrl it zooms at the pointer: what is there stays there.
    begin, end = zoom_once(page, unzoomed)
    expect(hint).to_have_count(0)
    near = zoom_once(page, (begin, end))
    assert near[1] - near[0] == pytest.approx((end - begin) / math.exp(0.5), rel=0.01)
    assert near[0] + (near[1] - near[0]) / 4 == pytest.approx(begin + (end - begin) / 4, abs=(end - begin) / 200)
    begin, end = near
    # With Shift it moves through time and nothing else.
    page.keyboard.down("Shift")
    page.mouse.wheel(0, 100)
    page.keyboard.up("Shift")
    later = until(lambda: window(page), lambda now: now != (begin, end)) or (0, 0)
    assert later[0] > begin
    assert later[1] - later[0] == pytest.approx(end - begin, abs=4)


def test_who_zoomed_with_the_wheel_is_told_no_more_while_it_scrolls(open_page: Open) -> None:
    page, frame = open_page(**LOW, **RUN)
    box = drawing_box(frame, LOW)
    page.mouse.move(box["x"] + 100, box["y"] + 100)
    zoom_once(page, window(page))
    page.mouse.wheel(0, 30)
    until(lambda: scroll_offset(frame) > 0)
    expect(frame.locator("[data-part=wheel-hint]")).to_have_count(0)


def test_the_pinch_of_safari_zooms_at_the_pointer(open_page: Open) -> None:
    """Its own events, which no other browser has."""
    page, frame = open_page(**RUN)
    box = drawn_stage(frame)
    begin, end = pinch_once(page, frame, box["width"] / 4, None)
    near = pinch_once(page, frame, box["width"] / 4, (begin, end))
    assert near[1] - near[0] == pytest.approx((end - begin) / 2, rel=0.01)
    assert near[0] + (near[1] - near[0]) / 4 == pytest.approx(begin + (end - begin) / 4, abs=(end - begin) / 200)


def pinch_once(page: Page, frame: Tab, x: float, before: tuple[int, int] | None) -> tuple[int, int]:
    """Spread two fingers to twice their distance; return the window then."""
    frame.locator("[data-part=stage]").evaluate(
        """(stage, x) => {
            const clientX = stage.getBoundingClientRect().left + x;
            for (const [name, scale] of [['start', 1], ['change', 1.5], ['change', 2], ['end', 2]]) {
                const event = new Event(`gesture${name}`, { bubbles: true, cancelable: true });
                stage.dispatchEvent(Object.assign(event, { scale, clientX }));
            }
        }""",
        x,
    )
    return until(lambda: window(page), lambda now: now not in (None, before)) or (0, 0)


def test_with_reduced_motion_the_hint_of_the_wheel_goes_without_fading(open_page: Open) -> None:
    page, frame = open_page(**RUN)
    page.emulate_media(reduced_motion="reduce")
    box = drawn_stage(frame)
    page.mouse.move(box["x"] + 100, box["y"] + 100)
    page.mouse.wheel(0, 60)
    hint = frame.locator("[data-part=wheel-hint]")
    expect(hint).to_have_css("animation-timing-function", "steps(1)")
    expect(hint).to_have_count(0)


def test_a_drawing_of_another_size_is_never_black(open_page: Open) -> None:
    """An opaque canvas is black until it is drawn anew, which must be in the frame in which it grows."""
    page, frame = open_page(width=1200, height=900, **RUN)
    drawn_stage(frame)
    stage = frame.locator("[data-part=stage]")
    stage.evaluate(
        """stage => {
            window.seen = [];
            const canvas = stage.querySelector('canvas');
            // It comes after that of the timeline, and before the frame is shown.
            new ResizeObserver(() => {
                const { data } = canvas.getContext('2d').getImageData(canvas.width - 2, canvas.height - 2, 1, 1);
                window.seen.push([canvas.width, data[0] + data[1] + data[2]]);
            }).observe(stage.closest('[data-part=tracks]'));
        }"""
    )
    before = len(until(lambda: stage.evaluate("() => window.seen")))
    page.set_viewport_size({"width": 1000, "height": 880})
    seen = until(lambda: stage.evaluate("() => window.seen"), lambda now: len(now) > before)
    assert all(light > 0 for _, light in seen), seen


@pytest.mark.parametrize(
    "of", [RUN, {"view": "trace", "run": "o_job", "ranks": "rank0,rank1"}], ids=["one", "ranks"]
)
def test_the_tools_are_one_row_at_900_pixels(open_page: Open, of: dict[str, str]) -> None:
    _, frame = open_page(width=900, height=900, **of)
    drawn_stage(frame)
    row = frame.locator("[data-part=find]").locator("xpath=..")
    assert box_of(row)["height"] < 45
    parts = row.locator(":scope > *")
    find, after = box_of(parts.first.get_by_role("button").last), box_of(parts.nth(1))
    assert find["x"] + find["width"] <= after["x"]  # what is in the field stays in it
    expect(row.get_by_label("Color by")).to_be_visible()  # what the choice is for is still its name


def test_the_name_of_a_track_stays_while_a_part_of_it_is_in_sight(open_page: Open) -> None:
    page, frame = open_page(**LOW, **RUN)
    drawing_box(frame, LOW)
    label = frame.locator("[data-part=track-label][data-kind=slices]").first
    name = label.locator("span").first
    tracks = frame.locator("[data-part=tracks]")
    ruler = box_of(tracks)
    first = box_of(label)
    head = 46
    down = first["y"] - ruler["y"] - head + first["height"] / 3
    tracks.evaluate("(e, by) => { e.scrollTop = by; }", down)
    moved = until(lambda: box_of(label), lambda box: box["y"] < first["y"])
    assert moved["y"] < ruler["y"] + head - 10  # where the name would be is under the ruler
    seen = box_of(name)
    assert seen["y"] >= ruler["y"] + head
    assert seen["y"] + 15 <= moved["y"] + moved["height"]
    assert name.evaluate(
        """e => {
            const box = e.getBoundingClientRect();
            return e.contains(document.elementFromPoint(box.x + 5, box.y + 7));
        }"""
    )


def test_a_selected_slice_is_described_beside_the_tracks_all_of_which_stay(open_page: Open) -> None:
    page, frame = open_page(width=1440, height=900, **RUN)
    box = drawn_stage(frame)
    labels = frame.locator("[data-part=track-label]")
    before = labels.all_inner_texts()
    page.mouse.click(box["x"] + box["width"] * 0.045, lane_height(frame, 1))
    expect(frame.locator("[data-part=event-details] h2")).to_contain_text("DataLoader")
    dock = frame.locator("[data-part=dock]")
    expect(dock).to_have_attribute("data-side", "right")
    until(lambda: (dock.bounding_box() or {"width": 0})["width"] == 360)
    assert labels.all_inner_texts() == before
    tracks = box_of(frame.locator("[data-part=tracks]"))
    for at in range(labels.count()):
        label = box_of(labels.nth(at))
        assert label["y"] + label["height"] <= tracks["y"] + tracks["height"] + 1
    assert tracks["height"] >= 578
    # What it says is not cut off.
    assert dock.evaluate("e => [...e.querySelectorAll('*')].every(c => c.scrollWidth <= e.clientWidth)")
    page.keyboard.press("Escape")
    expect(dock).to_have_count(0)
    # The table of a window is wide: it lies below, until somebody moves it.
    drag(page, box["x"] + 100, box["x"] + 400, box["y"] + 120)
    expect(dock).to_have_attribute("data-side", "below")
    dock.get_by_role("button", name="Dock on the right").click()
    expect(dock).to_have_attribute("data-side", "right")


def test_a_double_click_zooms_to_what_was_clicked_though_details_open(open_page: Open) -> None:
    page, frame = open_page(width=1440, height=900, **RUN)
    box = drawn_stage(frame)
    # Near the right edge, where the details open.
    page.mouse.dblclick(box["x"] + box["width"] * 0.9, lane_height(frame, 0), delay=20)
    expect(frame.locator("[data-part=event-details]")).to_be_visible()
    begin, end = until(lambda: window(page)) or (0, 0)
    details = frame.locator("[data-part=event-details]").inner_text()
    assert "ProfilerStep" in details
    assert end - begin < 2_000_000  # a step of 1 ms with a margin
    assert begin > 3_000_000


def test_a_window_is_added_up_by_kind_of_track(open_page: Open) -> None:
    page, frame = open_page(area="1200000-3450000", **RUN)
    drawn_stage(frame)
    area = frame.locator("[data-part=selected-area]")
    names = area.locator("[role=row] [role=gridcell]:first-child")
    expect(area).to_contain_text("aten::mm")
    expect(area).to_contain_text("sgemm")
    area.get_by_role("radio", name="Kernels").check(force=True)
    expect(names).to_have_text(["sgemm"])
    area.get_by_role("radio", name="Operators").check(force=True)
    expect(area).to_contain_text("aten::mm")
    expect(area.get_by_text("sgemm")).to_have_count(0)
    area.get_by_role("radio", name="Counters").check(force=True)
    expect(area.get_by_role("row", name=re.compile("Utilization"))).to_contain_text("100%")
    expect(page).to_have_url(re.compile("sums=counter"))
