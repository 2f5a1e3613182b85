"""Two runs side by side in a real browser: what changed, in which part, with the sides swapped, and the link."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.e2e.page.places import expect_fits
from tests.support.page import Open

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PAIR = {"view": "diff", "run": "p_faster", "base_run": "a_training"}
ROWS = "[data-part=diff-table] [role=row]"


def in_address(name: str) -> re.Pattern[str]:
    return re.compile(rf"pytorch_profiler\.{name}=")


@pytest.mark.parametrize(("width", "theme"), [(900, "light"), (1440, "dark"), (2500, "light")])
def test_what_makes_the_difference(open_page: Open, width: int, theme: str) -> None:
    _, frame = open_page(width=width, theme=theme, **PAIR)
    expect(frame.locator("[data-part=waterfall]")).to_be_visible()
    expect(frame.locator("[data-part=waterfall] text").filter(has_text="−200 µs").first).to_be_visible()
    crumb = frame.locator("[data-part=crumb]")
    expect(crumb).to_contain_text("p_faster · w · span 1 vs. a_training · w · span 1")
    assert frame.locator("[data-part=diff-view] img").count() == 0
    expect_fits(frame)


def test_kernels_and_only_what_is_significant(open_page: Open) -> None:
    _, frame = open_page(table="kernels", **PAIR)
    expect(frame.locator(ROWS).filter(has_text="sgemm")).to_contain_text("↓ faster")
    frame.get_by_role("radiogroup", name="Table").get_by_role("radio", name="Operators").check()
    frame.get_by_label("Only significant changes").check()
    expect(frame.locator("[data-part=diff-table] [data-part=table-foot]")).to_contain_text("significant changes")
    frame.get_by_role("radiogroup", name="Time of the operators").get_by_role("radio", name="Device self").check()
    expect(frame.locator(ROWS).filter(has_text="aten::mm <img")).to_contain_text("−200 µs")


@pytest.mark.prefix(hosted=True)
def test_a_part_opens_and_the_crumbs_lead_back(open_page: Open) -> None:
    page, frame = open_page(**PAIR)
    expect(frame.locator("[data-part=part-pair]").first).to_be_visible()
    parts = frame.locator("[data-part=part-pair]").count()
    frame.locator("[data-part=part-pair]:not([data-parts='0'])").first.click()
    expect(page).to_have_url(in_address("part"))
    crumbs = frame.locator("[data-part=breadcrumbs] button")
    expect(crumbs).to_have_count(1)
    _, again = open_page(part=re.findall(r"pytorch_profiler\.part=([\d-]+)", page.url)[0], **PAIR)
    expect(again.locator("[data-part=breadcrumbs] button")).to_have_count(1)
    crumbs.first.click()
    expect(frame.locator("[data-part=part-pair]")).to_have_count(parts)


def test_the_sides_can_be_swapped(open_page: Open) -> None:
    page, frame = open_page(table="kernels", **PAIR)
    expect(frame.locator(ROWS).filter(has_text="sgemm")).to_contain_text("−200 µs")
    frame.get_by_role("button", name="Swap sides").click()
    expect(frame.locator(ROWS).filter(has_text="sgemm")).to_contain_text("+200 µs")
    crumb = frame.locator("[data-part=crumb]")
    expect(crumb).to_contain_text("a_training · w · span 1 vs. p_faster · w · span 1")
    page.go_back()
    expect(frame.locator(ROWS).filter(has_text="sgemm")).to_contain_text("−200 µs")


def test_a_run_against_itself_is_equal(open_page: Open) -> None:
    _, frame = open_page(view="diff", run="a_training", base_run="a_training", table="kernels")
    expect(frame.locator(ROWS).filter(has_text="sgemm")).to_contain_text("= equal")
    frame.locator("[data-part=diff-sides]").get_by_role("button", name="Run").click()
    frame.get_by_role("option", name=re.compile("^p_faster")).click()
    expect(frame.locator(ROWS).filter(has_text="sgemm")).to_contain_text("+200 µs")


@pytest.mark.prefix
def test_a_link_in_the_answer_opens_its_evidence_and_keeps_the_pair(open_page: Open) -> None:
    page, frame = open_page(**PAIR)
    why = frame.locator("[data-part=answer] [data-part=why]")
    operator = why.get_by_role("button").filter(has_text="aten::mm").first
    expect(operator).to_contain_text("aten::mm")
    operator.click()
    expect(page).to_have_url(in_address("metric"))
    expect(page).to_have_url(in_address("base_run"))
    expect(frame.locator(ROWS).filter(has_text="aten::mm")).to_contain_text("−200 µs")
