"""A search on the timeline: all hits stand out, in the drawing and in the strip above, on one rank or several."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import pytest
from playwright.sync_api import Page, expect

from tests.support.page import Open, Tab, address
from tests.support.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.slow]

INK = """canvas => {
    const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    let ink = 0;
    for (let i = 0; i < data.length; i += 4) {
        ink += 765 - data[i] - data[i + 1] - data[i + 2];
    }
    return ink;
}"""


def wait_until_drawn(frame: Tab) -> None:
    expect(frame.locator("[data-part=timeline][data-state=drawn]")).to_be_visible()
    expect(frame.locator("[data-part=answer] [data-part=why]")).not_to_be_empty()


def ink(frame: Tab, canvas: str) -> float:
    """Return how dark a drawing is."""
    found: float = frame.locator(canvas).first.evaluate(INK)
    return found


def selected_event(page: Page) -> int | None:
    """Return the event in the address."""
    found = re.search(r"event=(\d+)", address(page))
    return int(found.group(1)) if found else None


def other_than(before: int | None) -> Callable[[int | None], bool]:
    return lambda event: event not in (None, before)


def test_all_hits_are_lit_and_ticked_off_and_the_address_has_them(open_page: Open) -> None:
    page, frame = open_page(view="trace", run="a_training")
    wait_until_drawn(frame)
    slices, strip = "[data-part=stage] canvas", "[data-part=map] canvas"
    until(lambda: ink(frame, strip) > 0)
    whole, bare = ink(frame, slices), ink(frame, strip)
    field = frame.get_by_placeholder("Find slices and kernels")
    field.fill("sgemm")
    expect(frame.locator("[data-part=find]")).to_contain_text("6")
    # One tick for each of the six kernels, on their one stream.
    expect(frame.locator("[data-part=map][data-ticks='6']")).to_be_visible()
    until(lambda: ink(frame, slices) < whole)  # all else fades
    until(lambda: ink(frame, strip) > bare)
    expect(page).to_have_url(re.compile("find=sgemm"))
    _, again = open_page(view="trace", run="a_training", find="sgemm")
    expect(again.get_by_placeholder("Find slices and kernels")).to_have_value("sgemm")
    expect(again.locator("[data-part=map][data-ticks='6']")).to_be_visible()
    field.press("Escape")
    expect(frame.locator("[data-part=map][data-ticks='0']")).to_be_visible()
    until(lambda: ink(frame, slices) == whole)


def test_enter_right_after_typing_goes_to_the_first_hit(open_page: Open) -> None:
    _, frame = open_page(view="trace", run="a_training")
    wait_until_drawn(frame)
    frame.get_by_placeholder("Find slices and kernels").press_sequentially("sgemm\n")
    expect(frame.locator("[data-part=event-details] h2")).to_have_text("sgemm")


def test_every_enter_is_a_step_however_early_it_comes(open_page: Open) -> None:
    _, frame = open_page(view="trace", run="a_training")
    wait_until_drawn(frame)
    field = frame.get_by_placeholder("Find slices and kernels")
    field.press_sequentially("sgemm\n\n\n\n")
    expect(frame.locator("[data-part=find]")).to_contain_text("4 of 6")
    field.press("Shift+Enter")
    field.press("Shift+Enter")
    expect(frame.locator("[data-part=find]")).to_contain_text("2 of 6")


def test_ranks_are_searched_together_and_added_up_side_by_side(open_page: Open) -> None:
    page, frame = open_page(view="trace", run="o_job", ranks="rank0,rank4")
    wait_until_drawn(frame)
    expect(frame.get_by_role("slider", name="Visible time window of the entire trace")).to_be_visible()
    field = frame.get_by_placeholder("Find slices and kernels")
    field.fill("nccl")
    ticks = frame.locator("[data-part=map]")
    expect(ticks).not_to_have_attribute("data-ticks", "0")
    # From hit to hit on the clock of the job, until both ranks have had one.
    at: int | None = None
    ranks: set[int] = set()
    for _ in range(12):
        field.press("Enter")
        at = until(partial(selected_event, page), other_than(at))
        expect(frame.locator("[data-part=event-details] h2")).to_contain_text(re.compile("nccl", re.IGNORECASE))
        ranks.add((at or 0) % 2)
    assert ranks == {0, 1}
    stage = frame.locator("[data-part=stage]").bounding_box()
    assert stage is not None
    field.press("Escape")
    field.press("Escape")
    page.keyboard.press("Escape")
    y = stage["y"] + 80
    page.mouse.move(stage["x"] + 100, y)
    page.mouse.down()
    page.mouse.move(stage["x"] + 500, y, steps=5)
    page.mouse.up()
    area = frame.locator("[data-part=selected-area]")
    expect(area.get_by_role("columnheader", name="rank 0")).to_be_visible()
    expect(area.get_by_role("columnheader", name="Max − min")).to_be_visible()
    expect(area.locator("[data-part=area-devices]")).to_contain_text("rank 4:")
    expect(page).to_have_url(re.compile("area="))
