"""Every entry of the sheet of shortcuts does what the sheet says."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.page.places import go, start
from tests.e2e.timeline import trials
from tests.e2e.timeline.trials import CHOSEN, TRACE
from tests.support.page import NewPage

pytestmark = [pytest.mark.browser, pytest.mark.slow]

ZOOMED = {**TRACE, "at": "1000000-2000000"}
NEAR = {**CHOSEN, "at": "345000-350000"}
"""Within it: no other slice of its lane is near."""

OVERVIEW = {"view": "overview", "run": "a_training"}
MANY = {"view": "overview", "run": "o_job"}
FRAMED = {"view": "trace", "run": "x_framed"}


class Entry(NamedTuple):
    """A line of the sheet, a state of the page to try it in, and the trial."""

    key: str
    says: str
    state: dict[str, str]
    trial: Callable[[Page], None]


def chooses_a_run(page: Page) -> None:
    page.keyboard.press("r")
    expect(page.get_by_placeholder("Find a run")).to_be_focused()


def chooses_a_worker(page: Page) -> None:
    page.keyboard.press("w")
    expect(page.get_by_placeholder(re.compile("Find a worker"))).to_be_focused()


def shows_health(page: Page) -> None:
    page.keyboard.press("h")
    expect(page.get_by_role("dialog")).to_contain_text("health")


def changes_theme(page: Page) -> None:
    for choice in ("light", "dark", "auto"):
        page.keyboard.press("t")
        expect(page.get_by_role("button", name="Theme")).to_contain_text(choice)
        if choice != "auto":
            expect(page.locator("html")).to_have_attribute("data-theme", choice)


def walks_the_steps(page: Page) -> None:
    step = page.get_by_role("button", name=re.compile("^Step 2,"))
    step.focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("button", name=re.compile("^Step 3,"))).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(step).to_be_focused()


def shows_a_step_alone(page: Page) -> None:
    step = page.get_by_role("button", name=re.compile("^Step 2,"))
    step.focus()
    for pressed in ("true", "false"):
        page.keyboard.press("Enter")
        expect(step).to_have_attribute("aria-pressed", pressed)


def closes(page: Page) -> None:
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Shortcuts")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


SHEET = {
    "Everywhere": [
        Entry("r", "Choose a run", OVERVIEW, chooses_a_run),
        Entry("w", "Choose a worker; on the timeline, zoom in", MANY, chooses_a_worker),
        Entry("h", "Trace health", OVERVIEW, shows_health),
        Entry("t", "Theme: auto, light, dark", OVERVIEW, changes_theme),
        Entry("← →", "Previous / next step in the chart", OVERVIEW, walks_the_steps),
        Entry("Enter", "Show only the focused step, or the average again", OVERVIEW, shows_a_step_alone),
        Entry("Esc", "Close", OVERVIEW, closes),
        Entry("?", "Keyboard shortcuts", OVERVIEW, closes),
    ],
    "Timeline": [
        Entry("W / S", "Zoom in / out", ZOOMED, trials.zooms),
        Entry("A / D", "Move earlier / later", ZOOMED, trials.pans),
        Entry(
            "F, double click",
            "Zoom to the selection; without one, show everything",
            CHOSEN,
            trials.zooms_to_the_selection,
        ),
        Entry("Backspace", "Back to the previous time window", ZOOMED, trials.goes_back),
        Entry("M", "Mark the selected slice, or clear the marks", CHOSEN, trials.marks),
        Entry("P", "Unfold / fold Python frames", FRAMED, trials.folds_python),
        Entry("Enter", "With the tracks focused, select a visible slice", TRACE, trials.selects_on_the_drawing),
        Entry(
            "← →",
            "Previous / next slice on the track; without one, move earlier / later",
            NEAR,
            trials.walks_along,
        ),
        Entry(
            "↑ ↓", "Enclosing / nested slice; without one, the track above / below", CHOSEN, trials.walks_across
        ),
        Entry("E", "Sum up the visible time window", ZOOMED, trials.adds_up),
        Entry("C", "Highlight the critical path, or nothing", TRACE, trials.lights_the_path),
        Entry(
            "[ ]", "Back / forward along the highlighted path; without one, along the flow", CHOSEN, trials.follows
        ),
        Entry("/", "Find; Enter and Shift+Enter go to the next and previous match", TRACE, trials.finds),
        Entry("Esc", "Clear the selection", CHOSEN, trials.clears),
        Entry("drag", "Select a time range", ZOOMED, trials.drags),
        Entry("wheel", "Scroll the tracks", CHOSEN, trials.scrolls),
        Entry("Ctrl + wheel, ⌘ + wheel, pinch", "Zoom at the pointer", ZOOMED, trials.zooms_at_the_pointer),
        Entry("Shift + drag, Shift + wheel", "Pan", ZOOMED, trials.shifts),
    ],
}


def test_the_sheet_lists_what_is_tried_here(new_page: NewPage, server: str) -> None:
    page = new_page()
    start(page, server)
    go(page, TRACE)
    page.keyboard.press("?")
    sheet = page.get_by_role("dialog", name="Shortcuts")
    for title, entries in SHEET.items():
        section = sheet.locator("section", has=page.get_by_role("heading", name=title))
        expect(section.locator("kbd")).to_have_text([entry.key for entry in entries])
        expect(section.locator("dd")).to_have_text([entry.says for entry in entries])


@pytest.mark.parametrize("entry", [*SHEET["Everywhere"], *SHEET["Timeline"]], ids=lambda entry: entry.says)
def test_a_key_does_what_the_sheet_says(new_page: NewPage, server: str, entry: Entry) -> None:
    page = new_page()
    start(page, server)
    go(page, entry.state)
    entry.trial(page)
