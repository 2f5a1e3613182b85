"""Ranks on one timeline: what of each is in sight, and the tools of one trace."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.page.places import go, start
from tests.e2e.timeline import trials
from tests.e2e.timeline.trials import Trial, find_failures
from tests.support.page import NewPage
from tests.support.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.slow]

RANKS = [f"rank{number}" for number in range(6)]
JOB = {"view": "trace", "run": "o_job", "ranks": ",".join(RANKS)}
"""Rank 4 keeps the others waiting."""
PART = {**JOB, "at": "1000000-2000000"}

ROWS = """() => {
  const room = document.querySelector('[data-part=tracks]').getBoundingClientRect();
  return [...document.querySelectorAll('[data-part=track-label]')].map(label => {
    const box = label.getBoundingClientRect();
    const seen = box.top >= room.top && box.bottom <= Math.min(room.bottom, innerHeight);
    return [label.dataset.kind, seen, label.innerText.split('\\n')[0].trim()];
  });
}"""


def test_each_rank_has_a_lane_of_computation_and_one_of_communication(new_page: NewPage, server: str) -> None:
    page = new_page()
    start(page, server)
    go(page, JOB)
    rows = page.evaluate(ROWS)
    ranks: dict[str, list[str]] = {}
    for kind, seen, text in rows:
        assert seen, text
        if kind == "group":
            name = text.split(" · ")[0]
            assert name not in ranks
            ranks[name] = []
        else:
            ranks[name].append(text)
    assert [*ranks] == [f"rank {number}" for number in (4, 0, 1, 2, 3, 5)]
    assert ranks.pop("rank 4") == ["Why idle", "stream 7", "stream 20"]
    assert all(lanes == ["stream 7", "stream 20"] for lanes in ranks.values())
    tracks = page.get_by_role("button", name=re.compile("^Tracks"))
    shown, among = map(int, re.findall(r"\d+", tracks.inner_text()))
    assert shown == 2 * len(RANKS) + 1 < among
    entries = page.locator("[data-part=legend] > span")
    expect(entries).to_have_count(2)
    assert {text.strip() for text in entries.all_inner_texts()} == {"Kernel", "Communication"}


def selects_and_marks(page: Page) -> None:
    page.locator("[data-part=stage]").focus()
    page.keyboard.press("Enter")
    expect(page.locator("[data-part=announcement]")).to_contain_text("rank 4")
    trials.marks_the_selection(page)


def finds(page: Page) -> None:
    page.keyboard.press("/")
    page.keyboard.type("nccl")
    for key, number in (("Enter", 1), ("Enter", 2), ("Shift+Enter", 1)):
        page.keyboard.press(key)
        expect(page.locator("[data-part=find]")).to_contain_text(re.compile(rf"\b{number} of \d+"))


def moves_on_the_strip(page: Page) -> None:
    before = trials.window(page)
    page.locator("[data-part=map] [role=slider]").focus()
    page.keyboard.press("ArrowRight")
    assert until(lambda: trials.window(page), lambda now: now != before)[0] > before[0]


def shows_what_is_selected(page: Page) -> None:
    """Check that a slice of a track that is hidden at first brings it into sight."""
    threads = page.locator("[data-part=track-label][data-kind=slices]").filter(has_text="thread")
    expect(threads).to_have_count(0)
    go(page, {**JOB, "event": "4"})
    expect(page.locator("[data-part=event-details] h2")).to_be_visible()
    expect(threads).to_have_count(1)


TOOLS = [
    Trial("zoom", PART, trials.zooms),
    Trial("pan", PART, trials.pans),
    Trial("go back", PART, trials.goes_back),
    Trial("sum up the window", PART, trials.adds_up),
    Trial("select a time range", PART, trials.drags),
    Trial("zoom at the pointer", PART, trials.zooms_at_the_pointer),
    Trial("pan with Shift", PART, trials.shifts),
    Trial("light the critical path", JOB, trials.lights_the_path),
    Trial("select and mark", JOB, selects_and_marks),
    Trial("find", JOB, finds),
    Trial("move on the strip", PART, moves_on_the_strip),
    Trial("show what is selected", JOB, shows_what_is_selected),
]


def test_the_tools_are_those_of_one_trace(new_page: NewPage, server: str) -> None:
    assert find_failures(new_page, server, TOOLS) == []
