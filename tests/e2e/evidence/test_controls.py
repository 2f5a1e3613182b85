"""What looks as if it led somewhere does: in every view of a job of eight ranks and of a run on one GPU.

Of what is alike (rows of a table, items of a list) two are clicked. In the views of one run the keyboard goes
first: no stop of the Tab key is dead or unseen, and the focus gets out again. Of what is alike one is operated,
not the chosen one if there is another.
"""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.evidence.clicks import STAYING, find_unopened, find_unreached, visit
from tests.e2e.evidence.conftest import Roam
from tests.e2e.evidence.stops import KEYS, Stop, operate, stand, stops, try_to_stand
from tests.e2e.page.places import TWO_FRAMES, VIEWS, go
from torch_tb_profiler.views import SLUGS

pytestmark = [pytest.mark.browser, pytest.mark.slow]

JOB = "simulated_8_h100_late_rank"

EACH = 2
"""Of what is alike (rows of a table, items of a list), so many are clicked."""

MAX_STOPS = 400
"""More stops than any page of these has: the focus is caught in a ring."""

EXPLAINED = {
    "memory": ("Instant in the memory of",),
    "diff": ("Parts of the step on both sides",),
}
"""By view, pictures with parts that are no places to go: a curve that is a slider as a whole, times of a
part itself that no call has."""


def find_dead_clicks(page: Page, state: dict[str, str]) -> list[str]:
    """Return what is dead on a page, by what it says."""
    clicked: dict[str, list[str]] = {}
    dead = []
    while True:
        go(page, state)
        visited = visit(page, clicked, EACH)
        clicked = visited["clicked"]
        dead += visited["dead"]
        if not visited["changed"]:
            assert clicked
            return dead
        # Back to where the others are.
        page.keyboard.press("Escape")


def find_unexplained(page: Page, view: str) -> list[str]:
    return [part for part in find_unopened(page) if not part.startswith(EXPLAINED.get(view, ()))]


def find_dead_stops(page: Page, state: dict[str, str], found: list[Stop]) -> list[Stop]:
    """Return the stops at which no key does anything; the page is as it was before when the next is tried."""
    # A tab without data is the least work to draw.
    other = {"view": "modules" if state["view"] == "lightning" else "lightning", "run": state["run"]}
    ordered = sorted(found, key=lambda stop: stop["chosen"])
    first = {stop["kind"]: stop for stop in reversed(ordered)}
    dead = []
    is_changed = False
    for stop in first.values():
        if is_changed:
            page.keyboard.press("Escape")
            go(page, state)
        page.evaluate(TWO_FRAMES)  # what closes now is no effect of the next key
        if is_changed and not try_to_stand(page, stop):
            go(page, other)  # what was operated before may have folded or moved it
            go(page, state)
        stand(page, stop, MAX_STOPS)
        effect = operate(page, stop["does"])
        if not effect:
            dead.append(stop)
        is_changed = bool(KEYS[stop["does"]]) and effect not in STAYING
    page.keyboard.press("Escape")
    return dead


@pytest.mark.parametrize("view", SLUGS)
def test_of_a_job_everything_that_can_be_clicked_does_something(roam: Roam, sample_server: str, view: str) -> None:
    with roam(sample_server) as page:
        assert find_dead_clicks(page, {"view": view, "run": JOB}) == []
        assert find_unexplained(page, view) == []
        assert find_unreached(page) == []


@pytest.mark.parametrize("view", SLUGS)
def test_of_one_run_every_stop_of_the_tab_key_is_seen_and_all_controls_do_something(
    roam: Roam, server: str, view: str
) -> None:
    state = VIEWS[view]
    with roam(server) as page:
        go(page, state)
        expect(page.locator("#page progress")).to_have_count(0)  # all ranks are read
        found = stops(page, MAX_STOPS)
        assert found
        assert [stop for stop in found if not stop["seen"]] == []
        assert find_dead_stops(page, state, found) == []
        assert find_dead_clicks(page, state) == []
        assert find_unexplained(page, view) == []
        assert find_unreached(page) == []
