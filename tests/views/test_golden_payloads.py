from __future__ import annotations

from tests.support.payloads import ASKS, GOLDEN, goldens
from torch_tb_profiler.views import all_tabs

LARGEST = 60_000  # bytes of a file


def test_the_payloads_that_the_page_is_tested_with_are_fresh() -> None:
    fresh = dict(goldens())
    committed = {path.name: path.read_text(encoding="utf-8") for path in GOLDEN.glob("*.json")}
    assert committed == fresh, "run `python -m tests.support.payloads`"
    assert all(len(text.encode()) < LARGEST for text in fresh.values())


def test_every_view_is_among_them() -> None:
    views = {view.slug for tab in all_tabs() for view in tab.views}
    assert {ask.slug for ask in ASKS} == views, "add an Ask to tests/support/payloads.py"
