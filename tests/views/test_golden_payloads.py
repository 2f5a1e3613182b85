from __future__ import annotations

from tests.support.payloads import GOLDEN, goldens

LARGEST = 60_000  # bytes of a file


def test_the_payloads_that_the_page_is_tested_with_are_fresh() -> None:
    fresh = dict(goldens())
    committed = {path.name: path.read_text(encoding="utf-8") for path in GOLDEN.glob("*.json")}
    assert committed == fresh, "run `python -m tests.support.payloads`"
    assert all(len(text.encode()) < LARGEST for text in fresh.values())
