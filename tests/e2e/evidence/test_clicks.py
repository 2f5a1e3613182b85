"""What looks as if it led somewhere does: in every view of a job of eight ranks and of a run on one GPU."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from tests.e2e.evidence.clicks import click, find_unopened, find_unreached, targets
from tests.e2e.evidence.conftest import Roam
from tests.e2e.page.places import VIEWS, go
from torch_tb_profiler.views import SLUGS

pytestmark = [pytest.mark.browser, pytest.mark.slow]

JOB = "simulated_8_h100_late_rank"

EACH = 2
"""Of what is alike (rows of a table, items of a list), so many are clicked."""

EXPLAINED = {
    "memory": ("Instant in the memory of",),
    "diff": ("Parts of the step on both sides",),
}
"""By view, pictures with parts that are no places to go: a curve that is a slider as a whole, times of a
part itself that no call has."""


def walk(page: Page, state: dict[str, str]) -> list[str]:
    """Return what is dead on a page, by what it says."""
    clicked: dict[str, list[str]] = {}
    dead = []
    while True:
        go(page, state)
        for target in targets(page):
            alike = clicked.setdefault(target["kind"], [])
            if len(alike) >= EACH or target["text"] in alike:
                continue
            alike.append(target["text"])
            if click(page, target) is None:
                dead.append(f"{target['text']!r} ({target['kind']})")
                continue
            # Back to where the others are.
            page.keyboard.press("Escape")
            break
        else:
            assert clicked
            return dead


def find_unexplained(page: Page, view: str) -> list[str]:
    return [part for part in find_unopened(page) if not part.startswith(EXPLAINED.get(view, ()))]


@pytest.mark.parametrize("view", SLUGS)
def test_of_a_job_everything_that_can_be_clicked_does_something(roam: Roam, sample_server: str, view: str) -> None:
    with roam(sample_server) as page:
        assert walk(page, {"view": view, "run": JOB}) == []
        assert find_unexplained(page, view) == []
        assert find_unreached(page) == []


@pytest.mark.parametrize("view", SLUGS)
def test_of_one_run_everything_that_can_be_clicked_does_something(roam: Roam, server: str, view: str) -> None:
    with roam(server) as page:
        assert walk(page, VIEWS[view]) == []
        assert find_unexplained(page, view) == []
        assert find_unreached(page) == []
