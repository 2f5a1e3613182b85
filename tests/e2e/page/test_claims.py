"""What the page claims holds: of what is cut off, of one step, of work that the host only launches."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.support.page import Open

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_of_a_file_that_is_cut_off_no_verdict_is_given(open_page: Open) -> None:
    _, frame = open_page(run="b_damaged", worker="rank1")
    expect(frame.locator("h1")).to_contain_text("The file is cut off")
    expect(frame.locator("h1")).not_to_contain_text("waits")
    expect(frame.locator("[data-part=advice]")).to_contain_text("Nothing is advised: the file is cut off")


def test_one_step_is_never_called_every_step(open_page: Open) -> None:
    _, frame = open_page(run="c <b>bold</b>")
    expect(frame.locator("h1")).to_contain_text("of the step")
    expect(frame.locator("[data-part=answer]")).to_contain_text("1 complete step")
    for phrase in ("every step", "average step", "1 steps"):
        expect(frame.locator("#page")).not_to_contain_text(phrase)


def test_a_step_alone_says_nothing_of_the_others(open_page: Open) -> None:
    _, frame = open_page(run="a_training", step="2")
    heading = frame.get_by_role("heading", name=re.compile("^Step 2, 1.00 ms"))
    expect(heading).to_be_visible()
    expect(frame.locator("#page")).not_to_contain_text("every step")


def test_an_operator_opens_where_its_device_work_is_said(open_page: Open) -> None:
    _, frame = open_page(view="operators", run="a_training")
    frame.locator("[data-part=table-body] [role=row]", has_text="aten::mm").click()
    frame.get_by_role("button", name="Show on timeline").click()
    details = frame.locator("[data-part=event-details]")
    expect(details.locator("h2")).to_contain_text("aten::mm")
    expect(frame.locator("h1")).not_to_contain_text("Nothing ran")


def test_no_share_of_a_window_exceeds_the_whole(open_page: Open) -> None:
    _, frame = open_page(view="trace", run="m_modules")
    expect(frame.locator("[data-part=timeline][data-state=drawn]")).to_be_visible()
    expect(frame.locator("[data-part=answer] [data-part=why]")).not_to_be_empty()
    said = frame.locator("[data-part=answer]").inner_text()
    shares = [float(share) for share in re.findall(r"([\d.]+)%", said)]
    assert shares
    assert max(shares) <= 100


def test_the_wait_in_the_queue_is_said_as_one(open_page: Open) -> None:
    _, frame = open_page(view="trace", run="a_training", event="4")
    expect(frame.locator("[data-part=event-details] h2")).to_have_text("sgemm")
    expect(frame.locator("[data-part=event-details]")).to_contain_text("50.0 µs")
