"""Every view without a pointer: no stop of the Tab key is dead or unseen, and the focus gets out again.

Of what is alike (rows of a table, items of a list) one is operated: not the chosen one if there is another.
"""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.e2e.evidence.conftest import Roam
from tests.e2e.evidence.stops import KEYS, operate, stand, stops, try_to_stand
from tests.e2e.page.places import TWO_FRAMES, VIEWS, go
from torch_tb_profiler.views import SLUGS

pytestmark = [pytest.mark.browser, pytest.mark.slow]

MAX_STOPS = 400
"""More stops than any page of these has: the focus is caught in a ring."""


@pytest.mark.parametrize("view", SLUGS)
def test_every_stop_of_the_tab_key_is_seen_and_does_something(roam: Roam, server: str, view: str) -> None:
    state = VIEWS[view]
    # A tab without data is the least work to draw.
    other = {"view": "modules" if view == "lightning" else "lightning", "run": state["run"]}
    with roam(server) as page:
        go(page, other)
        go(page, state)
        expect(page.locator("#page progress")).to_have_count(0)  # all ranks are read
        found = stops(page, MAX_STOPS)
        assert found
        assert [stop for stop in found if not stop["seen"]] == []
        ordered = sorted(found, key=lambda stop: stop["chosen"])
        first = {stop["kind"]: stop for stop in reversed(ordered)}
        is_operated = False
        for stop in first.values():
            if is_operated:
                page.keyboard.press("Escape")
                go(page, state)
                page.evaluate(TWO_FRAMES)  # what closes now is no effect of the next key
                if not try_to_stand(page, stop):
                    go(page, other)  # what was operated before may have folded or moved it
                    go(page, state)
            stand(page, stop, MAX_STOPS)
            assert operate(page, stop["does"]), stop
            is_operated = bool(KEYS[stop["does"]])
