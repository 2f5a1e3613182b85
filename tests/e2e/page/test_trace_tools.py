"""What is around the drawing of a timeline: tools in one row, edges of a selection to drag."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.support.page import Open, Tab, address
from tests.support.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.slow]

ROW = 34
"""Height of a button in the row, with what a browser rounds."""


def drawn_stage(frame: Tab) -> dict[str, float]:
    expect(frame.locator("[data-part=timeline][data-state=drawn]")).to_be_visible()
    expect(frame.locator("[data-part=answer] [data-part=why]")).not_to_be_empty()
    box = frame.locator("[data-part=stage]").bounding_box()
    assert box is not None
    return {"x": box["x"], "y": box["y"], "width": box["width"], "height": box["height"]}


def selected_area(page: Page) -> tuple[int, int] | None:
    """Return the area in the address."""
    found = re.search(r"area=(-?\d+)-(-?\d+)", address(page))
    return (int(found.group(1)), int(found.group(2))) if found else None


def drag(page: Page, x: float, to: float, y: float) -> None:
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(to, y, steps=5)
    page.mouse.up()


@pytest.mark.parametrize("state", [{"run": "a_training"}, {"run": "o_job", "ranks": "rank3,rank4,rank5"}])
def test_the_tools_are_one_row(open_page: Open, state: dict[str, str]) -> None:
    _, frame = open_page(view="trace", **state)
    drawn_stage(frame)
    places = [
        frame.get_by_role("button", name=re.compile("^Tracks")),
        frame.get_by_role("combobox", name="Time from"),
    ]
    boxes = [place.bounding_box() for place in [*places, frame.get_by_label("Show the whole trace")]]
    tops = [box["y"] for box in boxes if box is not None]
    assert len(tops) == len(boxes)
    assert max(tops) - min(tops) < ROW


def test_an_edge_of_the_selected_window_is_dragged(open_page: Open) -> None:
    page, frame = open_page(view="trace", run="a_training")
    box = drawn_stage(frame)
    y = box["y"] + box["height"] / 2
    drag(page, box["x"] + 100, box["x"] + 500, y)
    begin, end = until(lambda: selected_area(page)) or (0, 0)
    drag(page, box["x"] + 500, box["x"] + 600, y)
    longer = until(lambda: selected_area(page), lambda area: area != (begin, end)) or (0, 0)
    assert longer[0] == begin
    assert longer[1] - end == pytest.approx((end - begin) / 4, rel=0.05)
    # From the middle, a drag selects anew.
    drag(page, box["x"] + 300, box["x"] + 400, y)
    anew = until(lambda: selected_area(page), lambda area: area != longer) or (0, 0)
    assert anew[0] > begin
    assert anew[1] < end


def test_instants_stay_aside_until_they_are_asked_for(open_page: Open) -> None:
    page, frame = open_page(view="trace", run="n_memory")
    drawn_stage(frame)
    labels = frame.locator("[data-part=track-label][data-kind=slices]")
    tracks = frame.get_by_role("button", name=re.compile("^Tracks"))
    found = re.fullmatch(r"Tracks (\d+) of (\d+)", tracks.inner_text().strip())
    assert found is not None
    first, at_first, every = labels.count(), *map(int, found.groups())
    assert at_first < every
    # A hit in a track that is hidden brings it into sight.
    find = frame.get_by_placeholder("Find slices and kernels")
    find.fill("[memory]")
    find.press("Enter")
    expect(page).to_have_url(re.compile(r"pytorch_profiler\.event="))
    expect(labels).to_have_count(first + 1)
    find.press("Escape")
    page.keyboard.press("Escape")
    tracks.click()
    menu = frame.locator("[data-part=trace-menu]")
    expect(menu.locator("input[type=checkbox]:not(:checked)")).to_have_count(every - at_first)
    menu.get_by_role("button", name="Show all").click()
    expect(tracks).to_have_text(f"Tracks {every}")
    expect(labels).to_have_count(first + every - at_first)
    _, again = open_page(**dict(re.findall(r"p\.pytorch_profiler\.(\w+)=([^&]*)", page.url)))
    drawn_stage(again)
    expect(again.get_by_role("button", name=re.compile("^Tracks"))).to_have_text(f"Tracks {every}")
