"""The page without a pointer: it has the keys from the start, and every slice can be reached."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.support.page import Open, Tab

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TRACE = {"view": "trace", "run": "a_training"}


def wait_until_drawn(frame: Tab) -> None:
    expect(frame.locator("[data-part=timeline][data-state=drawn] [data-part=stage] canvas").first).to_be_visible()


def test_the_keys_work_from_the_start(open_page: Open) -> None:
    """Nothing is clicked before."""
    page, frame = open_page(**TRACE)
    wait_until_drawn(frame)
    expect(frame.locator("#page")).to_be_focused()
    page.keyboard.press("?")
    sheet = frame.get_by_role("dialog", name="Shortcuts")
    for key in ("W / S", "Backspace", "/", "Enter"):
        expect(sheet.locator("kbd", has_text=re.compile(f"^{re.escape(key)}$")).first).to_be_visible()
    page.keyboard.press("Escape")
    expect(sheet).to_have_count(0)
    expect(frame.locator("#page")).to_be_focused()  # given back once the sheet is gone
    page.evaluate("document.activeElement.blur()")
    expect(page.locator("body")).to_be_focused()
    page.keyboard.press("w")  # pressed in the host
    expect(page).to_have_url(re.compile(r"pytorch_profiler\.at="))


def test_the_navigation_can_be_skipped(open_page: Open) -> None:
    page, frame = open_page(**TRACE)
    wait_until_drawn(frame)
    skip = frame.get_by_role("button", name="Skip to content")
    skip.focus()
    first = "body => body.querySelector('button, a[href]') === document.activeElement"
    assert frame.locator("body").evaluate(first)
    page.keyboard.press("Enter")
    expect(frame.locator("#page")).to_be_focused()
    while not frame.locator("[data-find]").evaluate("field => field === document.activeElement"):
        page.keyboard.press("Tab")
        assert frame.locator("#page :focus").count() == 1, "the focus left the page before it came to the search"


def test_slices_are_walked_with_the_keyboard_and_announced(open_page: Open) -> None:
    page, frame = open_page(**TRACE)
    wait_until_drawn(frame)
    stage, announcement = frame.locator("[data-part=stage]"), frame.locator("[data-part=announcement]")
    title = frame.locator("[data-part=event-details] h2")
    expect(announcement).to_have_text("")
    stage.focus()
    page.keyboard.press("Enter")
    expect(title).to_contain_text("ProfilerStep")
    expect(announcement).to_contain_text("ProfilerStep")
    expect(announcement).to_contain_text("thread 1")
    page.keyboard.press("ArrowDown")
    expect(title).to_contain_text("DataLoader")
    page.keyboard.press("ArrowRight")
    expect(title).to_contain_text("aten::mm")
    page.keyboard.press("ArrowDown")
    expect(title).to_have_text("cudaLaunchKernel")
    page.keyboard.press("ArrowDown")  # nothing lies inside: the next track
    expect(title).to_have_text("sgemm")
    expect(announcement).to_contain_text("sgemm, on")
    page.keyboard.press("ArrowUp")
    expect(title).not_to_have_text("sgemm")
    page.keyboard.press("Escape")
    expect(title).to_have_count(0)
    expect(announcement).to_have_text("")
    page.keyboard.press("e")
    expect(frame.locator("[data-part=selected-area] h2")).to_contain_text("Selected")


def test_the_map_of_the_recording_is_a_slider(open_page: Open) -> None:
    page, frame = open_page(at="1000000-2000000", **TRACE)
    wait_until_drawn(frame)
    window = frame.get_by_role("slider", name=re.compile("Visible time window"))
    middle = _now(window.get_attribute("aria-valuenow"))
    window.focus()
    page.keyboard.press("ArrowRight")
    expect(window).not_to_have_attribute("aria-valuenow", str(middle))
    assert _now(window.get_attribute("aria-valuenow")) == pytest.approx(middle + 250_000, abs=2)
    page.keyboard.press("ArrowUp")
    expect(page).to_have_url(re.compile(r"at=1500000-2000000"))
    expect(window).to_have_attribute("aria-valuetext", re.compile("1.5.* ms to 2.* ms"))


def test_the_causes_of_idle_time_are_opened_with_keys(open_page: Open) -> None:
    """Those with a label in the bar have no button below it."""
    page, frame = open_page(view="idle", run="a_training", worker="w", span="1")
    bar = frame.locator("[data-part=idle-bar]")
    cause = bar.locator("svg").get_by_role("button", name="Data loading")
    expect(cause).to_be_visible()
    frame.locator("#page").focus()
    for _ in range(40):
        page.keyboard.press("Tab")
        if cause.evaluate("e => e === document.activeElement"):
            break
    expect(cause).to_be_focused()
    page.keyboard.press("Enter")
    wait_until_drawn(frame)
    expect(page).to_have_url(re.compile("view=trace"))


def _now(value: str | None) -> int:
    assert value is not None
    return int(value)
