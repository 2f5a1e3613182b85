"""What a page without data says, and names of their own for the files that are saved."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.e2e.page.places import VIEWS, go, start
from tests.support.page import NewPage, Open

pytestmark = [pytest.mark.browser, pytest.mark.slow]

JOB = {"view": "kernels", "run": "o_job"}


def test_the_badge_of_a_page_without_data_says_that_it_was_read(new_page: NewPage, server: str) -> None:
    page = new_page()
    start(page, server)
    go(page, {"view": "idle", "run": "n_memory"})
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
