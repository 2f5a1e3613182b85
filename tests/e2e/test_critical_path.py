"""The critical path in a browser: what limits the step, a slider of savings, the way to the timeline."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.e2e.page.places import choose, expect_fits
from tests.support.page import Open

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PATH = {"view": "critical_path", "run": "a_training"}


@pytest.mark.parametrize(("width", "theme"), [(900, "light"), (1440, "dark")])
def test_the_page_says_what_limits_the_step_and_what_its_model_leaves_out(
    open_page: Open, width: int, theme: str
) -> None:
    _, frame = open_page(width=width, theme=theme, **PATH)
    expect(frame.locator("h1")).to_contain_text(re.compile(r"host-bound: \d"))
    limits = frame.get_by_text("contention for SMs and memory")
    expect(limits).to_be_hidden()
    frame.get_by_text("How we know").press("Enter")
    expect(limits).to_be_visible()
    expect_fits(frame)


def test_a_slider_says_what_a_faster_target_would_save(open_page: Open) -> None:
    page, frame = open_page(**PATH)
    table = frame.get_by_role("grid", name="what-if targets")
    table.get_by_role("row", name=re.compile("Data loading")).click()
    expect(frame.get_by_role("heading", name="What if: Data loading")).to_be_visible()
    expect(page).to_have_url(re.compile("select=data_loading"))
    slider = frame.get_by_role("slider", name="Less time")
    slider.press("Home")
    expect(frame.get_by_text("Saves 0 ns, 0% of the step")).to_be_visible()
    slider.press("ArrowRight")
    expect(slider).to_have_attribute("aria-valuetext", "5%")
    slider.press("End")
    expect(frame.get_by_text(re.compile(r"^Saves [1-9].*, [1-9].*% of the step$"))).to_be_visible()


def test_the_path_by_operator_sums_to_the_step_and_answers_what_if(open_page: Open) -> None:
    page, frame = open_page(**PATH)
    choose(frame, "Path by", "source line")
    expect(frame.get_by_text("No Python source was recorded")).to_be_visible()
    choose(frame, "Path by", "operator")
    table = frame.get_by_role("grid", name="path by operator")
    row = table.get_by_role("row", name=re.compile("aten::")).first
    name = re.search(r"aten::\w+", row.inner_text())
    assert name is not None
    row.click()
    expect(frame.get_by_role("heading", name=f"What if: {name[0]}")).to_be_visible()
    expect(page).to_have_url(re.compile("path_by=operator"))


@pytest.mark.prefix
def test_a_target_opens_on_the_timeline_and_back(open_page: Open) -> None:
    page, frame = open_page(**PATH)
    table = frame.get_by_role("grid", name="what-if targets")
    table.get_by_role("row", name=re.compile("Data loading")).dblclick()
    expect(page).to_have_url(re.compile("view=trace"))
    expect(frame.locator("[data-part=event-details] h2")).to_contain_text("DataLoader")
    page.go_back()
    page.go_back()
    expect(frame.locator("h1")).to_contain_text(re.compile(r"host-bound: \d"))
