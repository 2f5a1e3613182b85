"""What keys and pointer do on a timeline; each trial fails where they do not."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Iterable
from typing import NamedTuple

import pytest
from playwright.sync_api import Error, Page, expect

from tests.e2e.page.places import go, start
from tests.support.page import NewPage, address
from tests.support.waiting import until

TRACE = {"view": "trace", "run": "a_training"}
CHOSEN = {**TRACE, "event": "2"}
"""The first aten::mm."""

MAIN = "[data-part=track-label]:has-text('main 1/1')"

WIDTH, HEIGHT = 1440, 900


class Trial(NamedTuple):
    """What is tried, the state of the page to try it in, and how; it fails where the page does something else."""

    name: str
    state: dict[str, str]
    run: Callable[[Page], None]


def find_failures(new_page: NewPage, server: str, trials: Iterable[Trial]) -> list[str]:
    """Try one after the other on one page, as its user does, and return what failed; then a new page goes on."""
    page: Page | None = None
    failures: list[str] = []
    for trial in trials:
        if page is None:
            page = new_page(WIDTH, HEIGHT)
            start(page, server)
        try:
            go(page, trial.state)
            trial.run(page)
            leave(page)
        except (AssertionError, Error):
            failures.append(f"{trial.name} {trial.state}\n{traceback.format_exc(limit=-2)}")
            page = None
    return failures


def leave(page: Page) -> None:
    """Close what a trial opened, and leave neither focus nor pointer behind."""
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.evaluate("document.activeElement?.blur()")
    page.mouse.move(0, 0)
    page.set_viewport_size({"width": WIDTH, "height": HEIGHT})


def window(page: Page) -> tuple[int, int]:
    """Return the window in the address."""
    found = re.search(r"\.at=(-?\d+)-(-?\d+)", address(page))
    return (int(found.group(1)), int(found.group(2))) if found else (0, 0)


def press_and_compare(page: Page, key: str) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the window before a key and after it."""
    before = window(page)
    page.keyboard.press(key)
    return before, until(lambda: window(page), lambda now: now not in ((0, 0), before))


def expect_name(page: Page, name: str) -> None:
    expect(page.locator("[data-part=event-details] h2")).to_contain_text(name)


def says(page: Page, key: str) -> None:
    expect(page).to_have_url(re.compile(rf"pytorch_profiler\.{key}="))


def zooms(page: Page) -> None:
    (begin, end), near = press_and_compare(page, "w")
    assert near[1] - near[0] < end - begin
    near, far = press_and_compare(page, "s")
    assert far[1] - far[0] > near[1] - near[0]


def pans(page: Page) -> None:
    before, later = press_and_compare(page, "d")
    assert later[0] > before[0]
    later, earlier = press_and_compare(page, "a")
    assert earlier[0] < later[0]


def zooms_to_the_selection(page: Page) -> None:
    go(page, {**TRACE, "view": "overview"})
    go(page, CHOSEN)  # opens at the selection
    expect_name(page, "aten::mm")
    begin, end = until(lambda: window(page), lambda now: now != (0, 0))
    assert begin <= 340_000 and end >= 440_000 and end - begin < 300_000
    for _ in range(2):
        press_and_compare(page, "s")
    page.keyboard.press("f")
    until(lambda: window(page), lambda now: now == (begin, end))
    clears(page)
    page.keyboard.press("f")
    until(lambda: window(page), lambda now: now == (0, 0) or now[1] - now[0] > 5_000_000)
    thread, stage = (page.locator(part).bounding_box() for part in (MAIN, "[data-part=stage]"))
    assert thread and stage
    page.mouse.dblclick(stage["x"] + 300, thread["y"] + 10)
    expect_name(page, "ProfilerStep")
    until(lambda: window(page), lambda now: 0 < now[1] - now[0] < 5_000_000)


def goes_back(page: Page) -> None:
    before, _ = press_and_compare(page, "w")
    page.keyboard.press("Backspace")
    until(lambda: window(page), lambda now: now == before)


def marks(page: Page) -> None:
    expect_name(page, "aten::mm")
    marks_the_selection(page)


def marks_the_selection(page: Page) -> None:
    page.keyboard.press("m")
    says(page, "marks")
    clears(page)
    page.keyboard.press("m")
    expect(page).not_to_have_url(re.compile(r"pytorch_profiler\.marks="))


def toggles(page: Page, key: str, name: str) -> None:
    button = page.get_by_role("button", name=name, exact=True)
    for pressed in ("true", "false"):
        page.keyboard.press(key)
        expect(button).to_have_attribute("aria-pressed", pressed)


def folds_python(page: Page) -> None:
    toggles(page, "p", "Python")


def selects_on_the_drawing(page: Page) -> None:
    page.locator("[data-part=stage]").focus()
    page.keyboard.press("Enter")
    expect_name(page, "ProfilerStep")
    expect(page.locator("[data-part=announcement]")).to_contain_text("ProfilerStep")


def walks_along(page: Page) -> None:
    expect_name(page, "aten::mm")
    before, later = press_and_compare(page, "ArrowRight")
    assert later[0] > before[0]
    go(page, {**CHOSEN, "at": "0-2000000"})
    expect_name(page, "aten::mm")
    page.keyboard.press("ArrowRight")
    expect_name(page, "DataLoader")
    page.keyboard.press("ArrowLeft")
    expect_name(page, "aten::mm")


def walks_across(page: Page) -> None:
    expect_name(page, "aten::mm")
    page.keyboard.press("ArrowDown")
    expect_name(page, "cudaLaunchKernel")
    page.keyboard.press("ArrowUp")
    expect_name(page, "aten::mm")
    page.keyboard.press("ArrowUp")
    expect_name(page, "ProfilerStep")


def adds_up(page: Page) -> None:
    page.keyboard.press("e")
    expect(page.locator("[data-part=selected-area] h2")).to_contain_text("Selected")


def lights_the_path(page: Page) -> None:
    toggles(page, "c", "Path")


def follows(page: Page) -> None:
    expect_name(page, "aten::mm")
    page.keyboard.press("ArrowDown")
    expect_name(page, "cudaLaunchKernel")
    page.keyboard.press("]")
    expect_name(page, "sgemm")
    page.keyboard.press("[")
    expect_name(page, "cudaLaunchKernel")


def finds(page: Page) -> None:
    page.keyboard.press("/")
    page.keyboard.type("sgemm")
    found = page.locator("[data-part=find]")
    for key, text in (("Enter", "1 of 6"), ("Enter", "2 of 6"), ("Shift+Enter", "1 of 6")):
        page.keyboard.press(key)
        expect(found).to_contain_text(text)


def clears(page: Page) -> None:
    expect(page.locator("[data-part=event-details] h2")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("[data-part=event-details]")).to_have_count(0)


def middle(page: Page) -> tuple[float, float]:
    box = page.locator("[data-part=stage]").bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] - 40


def drags(page: Page) -> None:
    x, y = middle(page)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 200, y, steps=4)
    page.mouse.up()
    says(page, "area")


def scrolls(page: Page) -> None:
    tracks = page.locator("[data-part=tracks]")
    page.set_viewport_size({"width": 900, "height": 500})
    until(lambda: tracks.evaluate("e => e.scrollHeight > e.clientHeight + 1"))
    page.locator("[data-part=timeline]").scroll_into_view_if_needed()
    box = page.locator("[data-part=stage]").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 100, box["y"] + 60)
    page.mouse.wheel(0, 60)
    until(lambda: tracks.evaluate("e => e.scrollTop") > 0)


def zooms_at_the_pointer(page: Page) -> None:
    before = window(page)
    page.mouse.move(*middle(page))
    page.keyboard.down("Control")
    page.mouse.wheel(0, -100)
    page.keyboard.up("Control")
    near = until(lambda: window(page), lambda now: now != before)
    assert near[1] - near[0] < before[1] - before[0]
    assert sum(near) / 2 == pytest.approx(sum(before) / 2, rel=0.01)


def shifts(page: Page) -> None:
    x, y = middle(page)
    before = window(page)
    page.mouse.move(x, y)
    page.keyboard.down("Shift")
    page.mouse.down()
    page.mouse.move(x - 200, y, steps=4)
    page.mouse.up()
    later = until(lambda: window(page), lambda now: now != before)
    assert later[0] > before[0]
    page.mouse.wheel(0, 100)
    page.keyboard.up("Shift")
    assert until(lambda: window(page), lambda now: now != later)[0] > later[0]
