"""What a click, a key, a link and an export do."""

from __future__ import annotations

import csv
import re

import pytest
from playwright.sync_api import expect

from tests.support.page import Open, Tab, lane_height
from tests.support.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TRACE = {"view": "trace", "run": "a_training"}


def wait_until_drawn(frame: Tab) -> None:
    expect(frame.locator("[data-part=timeline][data-state=drawn]")).to_be_visible()
    expect(frame.locator("[data-part=answer] [data-part=why]")).not_to_be_empty()


def test_the_first_hit_of_a_search_zooms_nothing(open_page: Open) -> None:
    page, frame = open_page(**TRACE)
    wait_until_drawn(frame)
    window = frame.locator("[data-part=crumb]").inner_text()
    frame.get_by_placeholder("Find slices and kernels").press_sequentially("sgemm\n")
    expect(frame.locator("[data-part=event-details] h2")).to_have_text("sgemm")
    expect(frame.locator("[data-part=crumb]")).to_have_text(window)
    expect(page).not_to_have_url(re.compile("pytorch_profiler.at="))


def test_a_link_keeps_its_window_though_its_slice_lies_elsewhere(open_page: Open) -> None:
    page, frame = open_page(at="3000000-4000000", event="4", **TRACE)
    wait_until_drawn(frame)
    expect(frame.locator("[data-part=event-details] h2")).to_have_text("sgemm")
    expect(page).to_have_url(re.compile("at=3000000-4000000"))


def test_another_span_selects_no_stranger(open_page: Open) -> None:
    page, frame = open_page(event="4", **TRACE)
    expect(frame.locator("[data-part=event-details] h2")).to_have_text("sgemm")
    frame.get_by_role("button", name="Next span").click()
    expect(page).to_have_url(re.compile("span=2"))
    expect(page).not_to_have_url(re.compile("event="))
    wait_until_drawn(frame)
    expect(frame.locator("[data-part=event-details]")).to_have_count(0)


def test_a_page_without_data_says_what_to_record_as_code(open_page: Open) -> None:
    _, frame = open_page(view="memory", run="a_training")
    expect(frame.locator("#page code").first).to_contain_text("profile_memory")
    expect(frame.locator("#page")).not_to_contain_text("`")
    expect(frame.locator("pre", has_text="profile_memory")).to_be_visible()
    expect(frame.get_by_role("button", name="Copy the code").first).to_be_visible()
    expect(frame.get_by_role("button", name="Trace health")).not_to_contain_text("Reading")


def test_a_worker_is_found_by_its_rank(open_page: Open) -> None:
    _, frame = open_page(run="u_ranks")
    expect(frame.locator("#page[data-shown='overview u_ranks']")).to_be_visible()
    frame.locator("#page").press("w")
    search = frame.get_by_placeholder("Find a worker")
    search.fill("rank 101")
    expect(frame.get_by_role("option")).to_have_count(1)
    search.press("Enter")
    expect(frame.locator("[data-part=crumb]")).to_contain_text("rank101")


def test_the_legend_has_what_is_in_the_picture(open_page: Open) -> None:
    _, frame = open_page(**TRACE)
    wait_until_drawn(frame)
    legend = frame.locator("[data-part=legend]")
    expect(legend).not_to_contain_text("Memset")
    for name in ("Kernel", "DataLoader", "Runtime"):
        expect(legend).to_contain_text(name)
    legend.get_by_role("button", name="more").click()
    expect(frame.locator("[data-part=trace-menu]")).to_contain_text("Memset")


def test_what_was_under_the_pointer_is_not_said_of_another_window(open_page: Open) -> None:
    page, frame = open_page(**TRACE)
    wait_until_drawn(frame)
    box = frame.locator("[data-part=stage]").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.045, lane_height(frame, 1))
    expect(frame.locator("[data-part=event-tip]")).to_contain_text("DataLoader")
    page.keyboard.press("w")
    expect(frame.locator("[data-part=event-tip]")).to_have_count(0)


def test_arguments_have_units_and_numbers_that_name_something_keep_their_digits(open_page: Open) -> None:
    _, frame = open_page(view="trace", run="w_lagging")
    wait_until_drawn(frame)
    find = frame.get_by_placeholder("Find slices and kernels")
    find.press_sequentially("long_gemm\n")
    details = frame.locator("[data-part=event-details]")
    expect(details.locator("h2")).to_have_text("long_gemm")
    for fact in ("Shared memory3.25 KiB", "Grid8 × 4 × 1", "Block128 × 1 × 1"):
        expect(details.locator("> dl > div").filter(has_text=fact)).to_be_visible()
    expect(details.get_by_text("correlation")).to_be_hidden()
    details.locator("summary").click()
    expect(details.get_by_text("correlation")).to_be_visible()
    find.fill("")
    find.press_sequentially("aten::mm\n")
    expect(details.locator("h2")).to_have_text("aten::mm")
    details.locator("summary").click()
    expect(details.locator("details div", has_text="External id").locator("dd")).to_have_text(
        re.compile(r"^123456\d$")
    )


def test_a_tree_is_saved_whole_and_stays_folded_while_away(open_page: Open) -> None:
    page, frame = open_page(view="modules", run="m_modules")
    rows = frame.locator("[data-part=table-body] [role=row]")
    frame.locator("[data-part=table-body] [role=row]", has_text="Linear_0").first.wait_for()
    net = rows.filter(has_text="Net_0").first
    net.get_by_role("button", name="Fold", exact=True).click()
    expect(rows.filter(has_text="Linear_0")).to_have_count(0)
    with page.expect_download() as saved:
        frame.get_by_label("Save as CSV").first.click()
    names = [row["name"] for row in csv.DictReader(saved.value.path().read_text().splitlines())]
    assert any("Linear_0" in name for name in names)
    frame.get_by_role("button", name="Overview", exact=True).click()
    expect(frame.get_by_role("heading", name="Breakdown")).to_be_visible()
    frame.get_by_role("button", name="Modules", exact=True).click()
    expect(rows.filter(has_text="Net_0").first).to_be_visible()
    expect(rows.filter(has_text="Linear_0")).to_have_count(0)


def test_a_table_of_the_server_is_scrolled_as_it_was_left(open_page: Open) -> None:
    _, frame = open_page(view="memory", run="n_memory")
    scroller = frame.locator("[data-part=memory-tables] [data-part=table-scroll]")
    expect(frame.locator("[data-part=memory-tables] [data-part=table-foot]")).to_contain_text("205 blocks")
    scroller.evaluate("table => table.scrollTo(0, 2000)")
    expect(frame.locator("[data-part=memory-tables] [aria-rowindex='80']")).to_be_attached()
    frame.get_by_role("button", name="Overview", exact=True).click()
    expect(frame.get_by_role("heading", name="Breakdown")).to_be_visible()
    frame.get_by_role("button", name="Memory", exact=True).click()
    expect(frame.locator("[data-part=memory-tables] [aria-rowindex='80']")).to_be_attached()
    until(lambda: scroller.evaluate("table => table.scrollTop") == 2000)


def test_a_sum_is_of_the_rows_in_sight(open_page: Open) -> None:
    _, frame = open_page(view="kernels", run="w_lagging")
    foot = frame.locator("[data-part=table]", has=frame.locator("[aria-label=kernels]")).locator(
        "[data-part=table-foot]"
    )
    expect(foot).to_contain_text("sum: 2.55 ms in 6 launches")
    frame.get_by_placeholder("Filter 2 kernels").fill("short")
    expect(foot).to_contain_text("sum: 150 µs in 3 launches")


def test_one_minus_sign_in_sentences_tables_and_charts(open_page: Open) -> None:
    _, frame = open_page(view="diff", run="p_faster", base_run="a_training")
    expect(frame.locator("[data-part=waterfall]")).to_be_visible()
    expect(frame.locator("[data-part=answer]")).to_contain_text("(−200 µs)")
    text = frame.locator("#page").evaluate("page => page.textContent")
    assert text.count("−") > 3
    assert re.findall(r"(?<![\w.-])-\d[\d.,]* ?(?:ns|µs|ms|s|%|KiB|MiB|B)\b", text) == []


def test_advice_leads_to_its_evidence(open_page: Open) -> None:
    page, frame = open_page(run="a_training")
    advice = frame.locator("[data-part=advice]")
    expect(advice).to_have_attribute("aria-busy", "false")
    rows = advice.locator("[data-part=advice-row]")
    assert rows.count() > 0
    for number in range(rows.count()):
        heading = rows.nth(number).get_by_role("heading").get_by_role("button")
        if heading.get_attribute("aria-expanded") == "false":
            heading.click()
        here = page.url
        rows.nth(number).get_by_role("button", name="Show it").click()
        expect(page).to_have_url(re.compile(r"view=(?!overview)"))
        page.go_back()
        expect(page).to_have_url(here)
