"""What all views say: one spelling, nothing twice, and names of their own for the files that are saved."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.page.places import VIEWS, go, start
from tests.support.page import NewPage, Open

pytestmark = [pytest.mark.browser, pytest.mark.slow]

MANY = (
    "slices|names|steps|calls|kernels|ranks|launches|operators|collectives|blocks|gaps|runs|workers|files|events|rows|"
    "issues|copies|nodes|groups|others"
)

UNLIKE = {
    "µs": r"\d us\b",
    "the minus sign": r"(?:^|[\s(])-\d",
    "8%": r"\d\s%",
    "a rank is no measure": r"(?<!other )\b[Rr]ank \d+\.\d",
    "one of many": rf"(?:^|[^\d.,])1 (?:{MANY})\b",
    "GPU 0": r"\bGPU\d|\bDevice \d",
}
"""How something is written, and what is none of it."""

JOB = {"view": "kernels", "run": "o_job"}
WITHOUT_DATA = {"view": "idle", "run": "n_memory"}

READ_PAGE = """() => {
  const shown = document.querySelector('#page').innerText;
  const sentences = [...document.querySelectorAll('#page p, #page h1')]
    .filter(e => !e.closest('table, [role=grid], [role=row]') && e.checkVisibility())
    .flatMap(e => e.innerText.replaceAll('\\n', ' ').split(/(?<=[.?!]) (?=[A-Z])/));
  return [shown, sentences];
}"""


def read_page(page: Page) -> tuple[str, list[str]]:
    """Return (all text in sight of a view, its sentences outside of tables)."""
    shown, sentences = page.evaluate(READ_PAGE)
    return shown, sentences


@pytest.fixture
def page(new_page: NewPage, server: str) -> Page:
    page = new_page()
    start(page, server)
    return page


def test_all_views_write_alike(page: Page) -> None:
    found = []
    for state in [*VIEWS.values(), WITHOUT_DATA]:
        go(page, state)
        shown, _ = read_page(page)
        assert len(shown) > 100
        for right, unlike in UNLIKE.items():
            for hit in re.finditer(unlike, shown, re.M):
                around = shown[max(0, hit.start() - 40) : hit.end() + 40]
                found.append(f"{state['view']}: {right}: {hit.group()!r} in {around!r}")
    assert found == []


def test_no_view_says_a_sentence_twice(page: Page) -> None:
    found = {}
    for state in [*VIEWS.values(), WITHOUT_DATA]:
        go(page, state)
        _, sentences = read_page(page)
        assert sentences
        times = Counter(each.strip() for each in sentences if len(each.split()) > 4)
        found[state["view"]] = [each for each, count in times.items() if count > 1]
    assert {view: twice for view, twice in found.items() if twice} == {}


def test_the_badge_of_a_page_without_data_says_that_it_was_read(page: Page) -> None:
    go(page, WITHOUT_DATA)
    badge = page.get_by_title("Trace health: what was skipped or repaired")
    expect(badge).to_be_visible()
    expect(badge).not_to_contain_text("Reading")


def test_what_is_saved_has_a_name_of_its_own(open_page: Open) -> None:
    """Tables of several views, and the same one of two workers."""
    names = []
    states = [
        VIEWS["memory"],
        VIEWS["critical_path"],
        VIEWS["distributed"],
        *({**JOB, "worker": f"rank{rank}"} for rank in (0, 1)),
    ]
    for state in states:
        page, frame = open_page(**state)
        buttons = frame.get_by_label("Save as CSV")
        expect(buttons.first).to_be_visible()
        for i in range(buttons.count()):
            with page.expect_download() as saved:
                buttons.nth(i).click()
            names.append(saved.value.suggested_filename)
    assert len(names) >= len(states) and len(set(names)) == len(names), names
