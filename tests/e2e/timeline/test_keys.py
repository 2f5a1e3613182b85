"""Every entry of the sheet of shortcuts does what the sheet says."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.page.places import go, start
from tests.e2e.timeline import trials
from tests.e2e.timeline.trials import CHOSEN, TRACE, Trial, find_failures
from tests.support.page import NewPage

pytestmark = [pytest.mark.browser, pytest.mark.slow]

ZOOMED = {**TRACE, "at": "1000000-2000000"}
NEAR = {**CHOSEN, "at": "345000-350000"}
"""Within it: no other slice of its lane is near."""

OVERVIEW = {"view": "overview", "run": "a_training"}
MANY = {"view": "overview", "run": "o_job"}
FRAMED = {"view": "trace", "run": "x_framed"}


class ShortcutCase(NamedTuple):
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
        ShortcutCase("r", "Choose a run", OVERVIEW, chooses_a_run),
        ShortcutCase("w", "Choose a worker; on the timeline, zoom in", MANY, chooses_a_worker),
        ShortcutCase("h", "Trace health", OVERVIEW, shows_health),
        ShortcutCase("t", "Theme: auto, light, dark", OVERVIEW, changes_theme),
        ShortcutCase("← →", "Previous / next step in the chart", OVERVIEW, walks_the_steps),
        ShortcutCase("Enter", "Show only the focused step, or the average again", OVERVIEW, shows_a_step_alone),
        ShortcutCase("Esc", "Close", OVERVIEW, closes),
        ShortcutCase("?", "Keyboard shortcuts", OVERVIEW, closes),
    ],
    "Timeline": [
        ShortcutCase("W / S", "Zoom in / out", ZOOMED, trials.zooms),
        ShortcutCase("A / D", "Move earlier / later", ZOOMED, trials.pans),
        ShortcutCase(
            "F, double click",
            "Zoom to the selection; without one, show everything",
            CHOSEN,
            trials.zooms_to_the_selection,
        ),
        ShortcutCase("Backspace", "Back to the previous time window", ZOOMED, trials.goes_back),
        ShortcutCase("M", "Mark the selected slice, or clear the marks", CHOSEN, trials.marks),
        ShortcutCase("P", "Unfold / fold Python frames", FRAMED, trials.folds_python),
        ShortcutCase(
            "Enter", "With the tracks focused, select a visible slice", TRACE, trials.selects_on_the_drawing
        ),
        ShortcutCase(
            "← →",
            "Previous / next slice on the track; without one, move earlier / later",
            NEAR,
            trials.walks_along,
        ),
        ShortcutCase(
            "↑ ↓", "Enclosing / nested slice; without one, the track above / below", CHOSEN, trials.walks_across
        ),
        ShortcutCase("E", "Summarize the visible time window", ZOOMED, trials.adds_up),
        ShortcutCase("C", "Highlight the critical path, or nothing", TRACE, trials.lights_the_path),
        ShortcutCase(
            "[ ]", "Back / forward along the highlighted path; without one, along the flow", CHOSEN, trials.follows
        ),
        ShortcutCase("/", "Find; Enter and Shift+Enter go to the next and previous match", TRACE, trials.finds),
        ShortcutCase("Esc", "Clear the selection", CHOSEN, trials.clears),
        ShortcutCase("drag", "Select a time range", ZOOMED, trials.drags),
        ShortcutCase("wheel", "Scroll the tracks", CHOSEN, trials.scrolls),
        ShortcutCase("Ctrl + wheel, ⌘ + wheel, pinch", "Zoom at the pointer", ZOOMED, trials.zooms_at_the_pointer),
        ShortcutCase("Shift + drag, Shift + wheel", "Pan", ZOOMED, trials.shifts),
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


@pytest.mark.parametrize("title", SHEET)
def test_a_key_does_what_the_sheet_says(new_page: NewPage, server: str, title: str) -> None:
    trials = [Trial(f"{entry.key}: {entry.says}", entry.state, entry.trial) for entry in SHEET[title]]
    assert find_failures(new_page, server, trials) == []
