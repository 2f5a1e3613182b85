"""The tables of operators and kernels in a browser: sorting, search, columns, keys, links, 100,000 rows."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.page.places import choose, expect_fits, start
from tests.support.browser.work import record, tasks
from tests.support.page import SCRIPT, Open, Tab
from tests.support.servers.tensorboard import UNCHANGED_POLL_S, tensorboard
from tests.support.traces import document

pytestmark = [pytest.mark.browser, pytest.mark.slow]

OPERATORS = {"view": "operators", "run": "a_training"}
KERNELS = {"view": "kernels", "run": "a_training"}


def names(frame: Tab, table: str = "operators") -> Locator:
    return frame.locator(f"[aria-label={table}] [data-part=table-body] [role=row] [role=gridcell]:first-child")


@pytest.mark.parametrize(("width", "theme"), [(900, "light"), (1440, "dark"), (2500, "light")])
def test_operators_say_what_takes_the_time(open_page: Open, width: int, theme: str) -> None:
    _, frame = open_page(width=width, theme=theme, **OPERATORS)
    expect(frame.locator("h1")).to_contain_text("of operator GPU time")
    expect(names(frame)).to_have_text([f"aten::mm {SCRIPT}"])
    expect(frame.locator("[data-part=donut]")).to_have_count(2)
    expect_fits(frame)


@pytest.mark.prefix
def test_a_row_leads_to_its_kernels_and_to_the_timeline_and_back(open_page: Open) -> None:
    page, frame = open_page(**OPERATORS)
    frame.locator("[data-part=table-body] [role=row]").first.click()
    detail = frame.locator("[data-part=row-detail]")
    expect(detail.locator("h2")).to_have_text(f"aten::mm {SCRIPT}")
    expect(detail).to_contain_text("with_stack")
    expect(detail.locator("[data-part=histogram] svg")).to_be_visible()
    detail.get_by_role("button", name="Its kernels").click()
    expect(frame.locator("[data-part=crumb]")).to_contain_text("launched by aten::mm")
    expect(names(frame, "kernels")).to_have_text(["sgemm"])
    frame.locator("[aria-label=kernels] [data-part=table-body] [role=row]").first.click()
    frame.get_by_role("button", name="Launched by").click()
    expect(names(frame)).to_have_text([f"aten::mm {SCRIPT}"])
    page.go_back()
    expect(frame.locator("[data-part=row-detail] h2")).to_have_text("sgemm")
    frame.get_by_role("button", name="Show on timeline").click()
    expect(frame.locator("[data-part=event-details] h2")).to_have_text("sgemm")


def test_groups_and_filters_are_in_the_address(open_page: Open) -> None:
    page, frame = open_page(**OPERATORS)
    choose(frame, "Rows", "shape")
    expect(frame.get_by_role("columnheader", name="Input shapes")).to_be_visible()
    expect(page).to_have_url(re.compile("group_by=shape"))
    choose(frame, "Phase", "backward")
    expect(frame.locator("[data-part=table-empty]")).to_have_text("No operator matches these filters.")
    frame.get_by_role("button", name="Clear filters").click()
    expect(frame.locator("[data-part=table-body] [role=row]")).to_have_count(1)


@pytest.mark.prefix(hosted=True)
def test_the_csv_holds_base_units(open_page: Open) -> None:
    page, frame = open_page(**KERNELS)
    with page.expect_download() as saved:
        frame.get_by_label("Save as CSV").first.click()
    header, row = saved.value.path().read_text().splitlines()
    cells = dict(zip(header.split(","), row.split(","), strict=True))
    assert (cells["name"], cells["calls"], cells["total_ns"]) == ("sgemm", "6", "3000000")


def test_what_the_profiler_did_not_record_is_no_column(open_page: Open) -> None:
    _, frame = open_page(view="kernels", run="a_training")
    expect(frame.get_by_role("columnheader", name="Occupancy")).to_have_count(1)
    expect(frame.get_by_role("columnheader", name="Limited by")).to_have_count(0)


# ---- a hundred thousand rows ----------------------------------------------------------------------------

MANY = 100_000


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("large")
    (folder / "many").mkdir()
    events: list[object] = [
        {
            "ph": "X",
            "cat": "cpu_op",
            "name": f"custom::operator_{i * 7919 % MANY:06}",
            "pid": 1,
            "tid": 1,
            "ts": 10 * i,
            "dur": 1 + i % 9,
        }
        for i in range(MANY)
    ]
    (folder / "many" / "w.pt.trace.json").write_bytes(document(events))
    cache = tmp_path_factory.mktemp("cache")
    with tensorboard("--logdir", str(folder), cache=cache, poll=UNCHANGED_POLL_S) as address:
        yield address


def test_a_hundred_thousand_rows_stay_pleasant(measured_page: Page, large: str) -> None:
    page, browser = measured_page, measured_page.context.browser
    assert browser
    start(page, large, view="operators")
    expect(page.locator("[data-part=table-foot]")).to_contain_text("100,000 operators")
    thread = record(browser, page, lambda: use(page))
    long = sorted((task.get("tdur", 0) / 1000 for task in tasks(thread)), reverse=True)
    assert all(ms <= 200 for ms in long[1:]), long[:5]  # one may be the sort


def use(page: Page) -> None:
    """Scroll, search and sort."""
    scroller = page.locator("[data-part=table-scroll]")
    for _ in range(10):
        scroller.evaluate("e => { e.scrollTop += e.scrollHeight / 12 }")
        page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    page.get_by_label("Filter 100,000 operators").fill("operator_0777")
    expect(page.locator("[data-part=table-foot]")).to_contain_text("100 of 100,000")
    page.get_by_label("Regular expression").click()
    page.get_by_label("Filter 100,000 operators").fill("_0+42$")
    expect(page.locator("[data-part=table-foot]")).to_contain_text("1 of 100,000")
    page.get_by_label("Filter 100,000 operators").fill("(")
    expect(page.get_by_role("alert")).to_contain_text("Not a regular expression")
    page.get_by_label("Filter 100,000 operators").fill("")
    expect(page.locator("[data-part=table-foot] > span").first).to_have_text("100,000 operators")
    page.get_by_role("columnheader", name="Operator").get_by_role("button").click()
    expect(page.locator("[data-part=table-body] [role=row]").first).to_be_visible()
    scroller.press("Home")
    expect(page.locator("[data-part=row-detail] h2")).to_have_text("custom::operator_000000")
    scroller.press("ArrowDown")
    expect(page.locator("[data-part=row-detail] h2")).to_have_text("custom::operator_000001")
    scroller.press("End")
    expect(page.locator("[data-part=row-detail] h2")).to_have_text("custom::operator_099999")
