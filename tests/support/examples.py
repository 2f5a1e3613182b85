"""How many random examples a property is tried with, and which cases of a test run where not all do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hypothesis import settings

BRIEF = "brief"
"""The profile for further Pythons: properties have been tried with all examples on the first one."""


def examples(count: int) -> int:
    """Return `count`, or the few of the brief profile where that is in use."""
    brief = settings.get_current_profile_name() == BRIEF
    return min(count, settings.get_profile(BRIEF).max_examples) if brief else count


def spread_cases(names: Sequence[str], most: int, shift: int) -> list[int]:
    """Return which of `names` remain if `most` cases of each test do: evenly spread, others for each `shift`."""
    tests = [name.partition("[")[0] for name in names]
    cases = {
        test: {(index * count // most + shift) % count for index in range(most)}
        for test, count in Counter(tests).items()
    }
    seen: Counter[str] = Counter()
    remaining = []
    for index, test in enumerate(tests):
        if seen[test] in cases[test]:
            remaining.append(index)
        seen[test] += 1
    return remaining
