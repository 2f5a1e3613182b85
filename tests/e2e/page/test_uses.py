"""What people come for, and how many interactions each may take."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.support.jobs import CULPRIT
from tests.support.page import Open

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_a_newcomer_sees_the_cause_without_a_click(open_page: Open) -> None:
    _, frame = open_page(run="a_training")
    for sentence in ("The GPU waits for 50% of the average step", "of that is data loading"):
        expect(frame.locator("h1").filter(has_text=sentence)).to_be_in_viewport()
    expect(frame.get_by_role("heading", name="Load data in worker processes", exact=True)).to_be_in_viewport()


def test_from_the_kernel_of_the_headline_to_its_slice_is_one_click(open_page: Open) -> None:
    _, frame = open_page(view="trace", run="a_training")
    frame.locator("h1").get_by_role("button", name="sgemm").click()
    expect(frame.locator("[data-part=event-details] h2")).to_have_text("sgemm")
    expect(frame.locator("[data-part=spoken]")).to_contain_text("stream 7")
    expect(frame.locator("[data-part=track-label]", has_text="stream 7")).to_be_in_viewport()


def test_the_late_rank_and_its_cause_are_seen_without_a_click(open_page: Open) -> None:
    _, frame = open_page(view="distributed", run="o_job")
    expect(frame.locator("h1").filter(has_text="Rank 4 keeps the others waiting")).to_be_in_viewport()
    expect(frame.locator("[data-part=answer]").get_by_role("button", name=CULPRIT)).to_be_in_viewport()


def test_a_leak_is_seen_on_the_overview(open_page: Open) -> None:
    page, frame = open_page(run="n_memory")
    expect(frame.locator("[data-part=answer]")).to_contain_text("Memory may leak by 1.00 MiB per step")
    frame.locator("[data-part=why]").get_by_role("button", name="1.00 MiB").click()
    expect(page).to_have_url(re.compile("view=memory"))


def test_the_parts_of_a_step_open_what_they_count(open_page: Open) -> None:
    page, frame = open_page(run="a_training")
    frame.get_by_role("button", name=re.compile("^Step 2,")).click()
    expect(page).to_have_url(re.compile("step=2"))
    for name, view in (("GPU waits 500 µs", "idle"), ("DataLoader 330 µs", "idle"), ("Kernel 500 µs", "kernels")):
        frame.get_by_role("link", name=re.compile(f"^{name}")).click()
        expect(page).to_have_url(re.compile(f"view={view}.*step=2"))
        page.go_back()
        expect(frame.get_by_role("heading", name=re.compile("^Step 2"))).to_be_visible()
    frame.locator("tbody tr", has_text="Kernel").get_by_role("button", name="500 µs").press("Enter")
    expect(page).to_have_url(re.compile("view=kernels.*step=2"))


def test_threads_and_streams_are_in_sight_when_the_timeline_opens(open_page: Open) -> None:
    page, frame = open_page(view="trace", run="m_modules")
    for name in ("thread 1", "thread 2", "stream 7"):
        expect(frame.locator("[data-part=track-label]", has_text=name).first).to_be_in_viewport(ratio=1)
    label = frame.locator("[data-part=track-label]", has_text="thread 1").first
    before = label.bounding_box()
    label.get_by_role("button", name="2 more lanes of thread 1").click()
    expect(page).to_have_url(re.compile("deep="))
    expect(label.get_by_role("button", name="The first 4 lanes of thread 1")).to_be_visible()
    after = label.bounding_box()
    assert before is not None and after is not None
    assert after["height"] > before["height"] + 18
