"""The roofline in a browser: points, ceilings, the way to a row and to the timeline, other peaks."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.e2e.page.places import choose, expect_fits
from tests.support.page import SCRIPT, Open

pytestmark = [pytest.mark.browser, pytest.mark.slow]

ROOFLINE = {"view": "roofline", "run": "r_roofline"}


@pytest.mark.parametrize(("width", "theme"), [(900, "light"), (1440, "dark")])
def test_points_stand_under_the_ceilings_of_the_device(open_page: Open, width: int, theme: str) -> None:
    _, frame = open_page(width=width, theme=theme, **ROOFLINE)
    expect(frame.locator("h1")).to_contain_text("MFU is at least 24.7% on H100 SXM")
    expect(frame.locator("[data-part=ceiling]")).to_have_count(3)
    expect(frame.locator("[data-part=point]")).to_have_count(4)
    expect(frame.locator("[data-part=coverage]")).to_contain_text("76.2%")
    expect(frame.get_by_role("gridcell", name=f"aten::add {SCRIPT}")).to_be_visible()
    expect_fits(frame)


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
    choose(frame, "Rows", "kernel")
    expect(frame.get_by_role("columnheader", name="Kernel")).to_be_visible()
    frame.get_by_label("Other peaks").fill("H200 SXM")
    frame.get_by_role("button", name="Use").click()
    expect(page).to_have_url(re.compile("peaks=H200"))
    expect(frame.locator("[data-part=peaks]")).to_contain_text("4,800 GB/s")


@pytest.mark.parametrize(("width", "theme"), [(900, "dark"), (1440, "light")])
def test_counters_stand_beside_what_the_shapes_say(open_page: Open, width: int, theme: str) -> None:
    _, frame = open_page(view="roofline", run="w_counters", width=width, theme=theme)
    expect(frame.locator("h1")).to_contain_text("Hardware counters measured 0.0000140 GFLOP in 3 kernels")
    grid = frame.get_by_role("grid", name="hardware counters")
    product = grid.get_by_role("row", name=re.compile("GEMM 32x32 nn"))
    expect(product).to_contain_text("aten::mmaten::linear10.00001300.0000120")
    expect(grid.get_by_role("row", name=re.compile("add"))).to_contain_text("aten::add")
    expect(frame.get_by_text(re.compile("Measured by CUPTI's range profiler"))).to_be_visible()
    expect_fits(frame)
    product.get_by_role("gridcell").first.dblclick()
    expect(frame.locator("[data-part=event-details] h2")).to_be_visible()


def test_counters_beside_a_trace_win_and_say_so(open_page: Open) -> None:
    """13,824 FLOPs were counted where the shapes say 12,000."""
    _, frame = open_page(view="roofline", run="x_rocprof")
    rows = frame.get_by_role("grid", name="roofline rows")
    expect(rows.get_by_role("row", name=re.compile(r"aten::mm.*\*"))).to_be_visible()
    counters = frame.get_by_role("grid", name="hardware counters")
    expect(counters.get_by_role("row", name=re.compile("aten::mm"))).to_contain_text("0.00001380.0000120")
    expect(frame.get_by_text(re.compile("occur 2 times in the files"))).to_be_visible()
    clock = frame.locator("[data-part=peaks] [role=note]")
    expect(clock).to_contain_text("sclk MHz averaged 1,680 MHz")
    expect(clock).to_contain_text("At 80% of that clock, bf16 reaches at most 1,046 TFLOP/s")
