"""Idle time in a browser: the sentence, the bar, the table whose rows open their gaps on the timeline."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.e2e.page.places import choose, expect_fits
from tests.support.page import Open

pytestmark = [pytest.mark.browser, pytest.mark.slow]

IDLE = {"view": "idle", "run": "a_training"}


@pytest.mark.parametrize(("width", "theme"), [(900, "light"), (1440, "dark"), (2500, "light")])
def test_the_page_says_what_the_device_waits_for(open_page: Open, width: int, theme: str) -> None:
    _, frame = open_page(width=width, theme=theme, **IDLE)
    expect(frame.locator("h1")).to_have_text(
        "GPU 0 is idle for 50% of an average step (500 µs of 1.00 ms), 330 µs of it waiting for data loading."
    )
    expect(frame.locator("[data-part=idle-bar] svg")).to_have_attribute("aria-label", re.compile("Data loading"))
    for title in ("Launches", "Queue length", "Bandwidth", "Sequences"):
        expect(frame.get_by_role("heading", name=title, exact=True)).to_be_visible()
    expect(frame.locator("[data-part=flame]")).to_be_visible()
    limits = frame.get_by_text("The recorded launches and syncs")
    expect(limits).to_be_hidden()
    frame.get_by_text("How we know").click()
    expect(limits).to_be_visible()
    expect_fits(frame)


@pytest.mark.prefix
def test_a_row_opens_its_gaps_and_a_gap_the_timeline(open_page: Open) -> None:
    page, frame = open_page(**IDLE)
    table = frame.get_by_role("treegrid", name="idle")
    table.get_by_role("row", name=re.compile("Data loading")).first.click()
    gaps = frame.locator("[data-part=row-detail]")
    expect(gaps.locator("h2")).to_have_text("Data loading")
    expect(gaps.locator("li")).to_have_count(6)
    gaps.locator("li").first.get_by_role("button").click()
    expect(page).to_have_url(re.compile("view=trace"))
    expect(frame.locator("[data-part=moment-details] h2")).to_have_text("Data loading")
    page.go_back()
    expect(gaps.locator("h2")).to_have_text("Data loading")


def test_what_stands_below_a_cause_and_the_step_are_in_the_address(open_page: Open) -> None:
    page, frame = open_page(**IDLE)
    choose(frame, "Below a cause", "operator")
    expect(page).to_have_url(re.compile("by=operator"))
    expect(frame.get_by_role("combobox", name="Below a cause")).to_have_attribute("data-value", "operator")
    choose(frame, "Step", "2")
    expect(page).to_have_url(re.compile("step=2"))
    expect(frame.locator("h1")).to_contain_text("of the step")


def test_the_headline_opens_the_longest_gap(open_page: Open) -> None:
    page, frame = open_page(**IDLE)
    frame.locator("h1").get_by_role("button", name="waiting for data loading").click()
    expect(page).to_have_url(re.compile("view=trace"))
    expect(frame.locator("[data-part=moment-details] h2")).to_have_text("Data loading")


def test_a_trace_without_a_device_says_what_to_record(open_page: Open) -> None:
    _, frame = open_page(view="idle", run="n_memory")
    expect(frame.locator("body")).to_contain_text("ProfilerActivity.CUDA")


def test_what_the_device_works_on_opens_its_longest_stretch(open_page: Open) -> None:
    page, frame = open_page(**IDLE)
    compute = frame.locator("[data-part=idle-bar] svg").get_by_role("button", name="Compute")
    compute.focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("view=trace"))
    details = frame.locator("[data-part=moment-details]")
    expect(details.locator("h2")).to_have_text("Compute")
    page.go_back()
    choose(frame, "Step", "2")
    compute.click()
    expect(details).to_contain_text(re.compile("Step ?2"))
