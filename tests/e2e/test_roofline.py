"""The roofline in a browser: points, ceilings, the way to a row and to the timeline, other peaks."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.support.page import SCRIPT, Open

pytestmark = [pytest.mark.browser, pytest.mark.slow]

ROOFLINE = {"view": "roofline", "run": "r_roofline"}


@pytest.mark.parametrize(("width", "theme"), [(900, "light"), (1440, "dark")])
def test_points_stand_under_the_ceilings_of_the_device(open_page: Open, width: int, theme: str) -> None:
    _, frame = open_page(width=width, theme=theme, **ROOFLINE)
    expect(frame.locator("h1")).to_contain_text("at least 24.7% of the peak FLOP/s of H100 SXM")
    expect(frame.locator("[data-part=ceiling]")).to_have_count(3)
    expect(frame.locator("[data-part=point]")).to_have_count(4)
    expect(frame.locator("[data-part=coverage]")).to_contain_text("76.2%")
    expect(frame.get_by_role("gridcell", name=f"aten::add {SCRIPT}")).to_be_visible()
    assert frame.locator("html").evaluate("e => e.scrollWidth <= innerWidth")


@pytest.mark.prefix
def test_a_point_leads_to_its_row_and_the_timeline(open_page: Open) -> None:
    page, frame = open_page(**ROOFLINE)
    frame.get_by_role("button", name=re.compile(r"^aten::mm: 250")).click()
    expect(page).to_have_url(re.compile("select=aten%3A%3Amm"))
    detail = frame.locator("[data-part=row-detail]")
    expect(detail).to_contain_text("55.6%")
    detail.get_by_role("button", name="Show on timeline").click()
    expect(frame.locator("[data-part=event-details] h2")).to_have_text("aten::mm")


def test_other_peaks_and_groups_are_in_the_address(open_page: Open) -> None:
    page, frame = open_page(**ROOFLINE)
    frame.get_by_label("Rows", exact=True).select_option("kernel")
    expect(frame.get_by_role("columnheader", name="Kernel")).to_be_visible()
    frame.get_by_label("Other peaks").fill("H200 SXM")
    frame.get_by_role("button", name="Use").click()
    expect(page).to_have_url(re.compile("peaks=H200"))
    expect(frame.locator("[data-part=peaks]")).to_contain_text("4,800 GB/s")
