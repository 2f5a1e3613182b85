"""What people come for, and how many interactions each may take."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.e2e.page.places import TWO_FRAMES, go, start, wait_until_answered
from tests.support.jobs import CULPRIT
from tests.support.page import NewPage, Open
from tests.support.servers.tensorboard import tensorboard
from tests.support.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_a_newcomer_sees_the_cause_without_a_click(open_page: Open) -> None:
    _, frame = open_page(run="a_training")
    for sentence in ("GPU 0 is idle for 50% of an average step", "while the host is loading data"):
        expect(frame.locator("h1").filter(has_text=sentence)).to_be_in_viewport()
    expect(frame.get_by_role("heading", name="1 Load data in worker processes")).to_be_in_viewport()


@pytest.mark.parametrize(("view", "run"), [("overview", "w_busy"), ("trace", "a_training")])
def test_from_the_kernel_of_the_headline_to_its_slice_is_one_click(open_page: Open, view: str, run: str) -> None:
    _, frame = open_page(view=view, run=run)
    frame.locator("[data-part=answer]").get_by_role("button", name="sgemm").click()
    expect(frame.locator("[data-part=event-details] h2")).to_have_text("sgemm")
    expect(frame.locator("[data-part=announcement]")).to_contain_text("stream 7")
    expect(frame.locator("[data-part=track-label]", has_text="stream 7")).to_be_in_viewport()


def test_a_row_of_a_kernel_is_one_click_from_its_slice(open_page: Open) -> None:
    page, frame = open_page(view="kernels", run="a_training")
    row = frame.locator("[data-part=table-body] [role=row]", has_text="sgemm")
    row.get_by_role("button", name="Show the first on the timeline").click()
    expect(frame.locator("[data-part=event-details] h2")).to_have_text("sgemm")
    expect(frame.locator("[data-part=announcement]")).to_contain_text("stream 7")


def test_of_160_ranks_the_late_one_and_its_cause_are_seen_without_a_click(open_page: Open) -> None:
    _, frame = open_page(view="distributed", run="u_ranks")
    expect(frame.locator("h1").filter(has_text="Rank 101 is a straggler")).to_be_in_viewport()
    expect(frame.locator("[data-part=answer]").get_by_role("button", name=CULPRIT)).to_be_in_viewport()


def test_a_leak_is_seen_on_the_overview(open_page: Open) -> None:
    page, frame = open_page(run="n_memory")
    expect(frame.locator("[data-part=answer]")).to_contain_text("Memory may leak: it grows by 1.00 MiB per step")
    frame.locator("[data-part=why]").get_by_role("button", name=re.compile(r"1\.00\s+MiB")).click()
    expect(page).to_have_url(re.compile("view=memory"))


def test_what_two_recordings_differ_by_is_one_click_away(open_page: Open) -> None:
    # A base is proposed among the runs that somebody has opened.
    _, opened = open_page(run="a_training")
    expect(opened.locator("h1")).to_contain_text("GPU 0 is idle")
    _, frame = open_page(run="p_faster")
    frame.get_by_role("button", name="Diff", exact=True).click()
    answer = frame.locator("[data-part=answer]")
    expect(answer.filter(has_text="Significant changes within the step: kernels (−200 µs)")).to_be_in_viewport()
    expect(frame.locator("[data-part=waterfall] text").filter(has_text="−200 µs").first).to_be_visible()


def test_the_ends_of_a_range_show_their_steps(open_page: Open) -> None:
    page, frame = open_page(run="o_job")
    row = frame.locator("tbody tr", has_text="Communication").first
    longest = row.get_by_role("button").last
    name = longest.get_attribute("aria-label") or ""
    longest.click()
    step = re.search("step (\\d+) has the most", name)
    assert step
    expect(page).to_have_url(re.compile(f"step={step.group(1)}"))
    expect(frame.get_by_role("heading", name=re.compile(f"^Step {step.group(1)}, "))).to_be_visible()


def test_a_view_that_is_come_back_to_is_as_it_was_left(open_page: Open) -> None:
    page, frame = open_page(view="kernels", run="d_many")
    frame.locator("[data-part=table-body] [role=row]", has_text="sgemm").click()
    expect(page).to_have_url(re.compile("select=sgemm"))
    frame.get_by_role("button", name="Overview", exact=True).click()
    expect(frame.get_by_role("heading", name="Breakdown")).to_be_visible()
    wait_until_answered(frame)  # its height is final
    scroller = frame.locator("#page")
    scroller.evaluate("page => page.scrollTo(0, 150)")
    scroller.evaluate(TWO_FRAMES)  # the page has heard of it
    expect(page).not_to_have_url(re.compile("select=sgemm"))
    frame.get_by_role("button", name="Kernels", exact=True).click()
    expect(page).to_have_url(re.compile("select=sgemm"))
    expect(frame.locator("[data-part=row-detail] h2")).to_have_text("sgemm")
    frame.get_by_role("button", name="Overview", exact=True).click()
    expect(frame.get_by_role("heading", name="Breakdown")).to_be_visible()
    until(lambda: scroller.evaluate("page => page.scrollTop") == 150)


def test_the_parts_of_a_step_open_what_they_count(open_page: Open) -> None:
    page, frame = open_page(run="a_training")
    frame.get_by_role("button", name=re.compile("^Step 2,")).click()
    expect(page).to_have_url(re.compile("step=2"))
    for name, view in (("GPU idle 500 µs", "idle"), ("DataLoader 330 µs", "idle"), ("Kernel 500 µs", "kernels")):
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


def test_lanes_without_room_are_a_click_away(new_page: NewPage, tmp_path: Path) -> None:
    nested = [
        {"ph": "X", "cat": "cpu_op", "name": f"level {i}", "pid": 1, "tid": 1, "ts": i, "dur": 200 - 2 * i}
        for i in range(60)
    ]
    (tmp_path / "log" / "deep").mkdir(parents=True)
    (tmp_path / "log" / "deep" / "w.pt.trace.json").write_text(json.dumps({"traceEvents": nested}))
    with tensorboard("--logdir", str(tmp_path / "log"), cache=tmp_path / "cache") as address:
        page = new_page()
        start(page, address)
        go(page, {"view": "trace", "run": "deep"})
        label = page.locator("[data-part=track-label]", has_text="thread 1").first
        button = label.get_by_role("button", name="56 more lanes of thread 1")
        expect(button).to_be_visible()
        before = label.bounding_box()
        button.click()
        expect(page).to_have_url(re.compile("deep="))
        expect(label.get_by_role("button", name="The first 4 lanes of thread 1")).to_be_visible()
        after = label.bounding_box()
        assert before is not None and after is not None
        assert after["height"] > before["height"] + 18
