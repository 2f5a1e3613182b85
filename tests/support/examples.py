"""How many random examples a property is tried with, and which tests and cases run where not all do."""

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


def take_turns(names: Sequence[str], part: str, turn: int, turns: int) -> list[int]:
    """Return which of `names` remain if every `turns`-th test of each file in `part` does, and all others.

    part  a folder or a file
    turn  which test of a file is its first that remains, from 1; a file with fewer tests keeps one, too
    """
    tests: dict[str, dict[str, None]] = {}
    for name in names:
        file, _, test = name.partition("[")[0].partition("::")
        tests.setdefault(file, {})[test] = None
    remaining = {
        (file, test)
        for file, members in tests.items()
        for index, test in enumerate(members)
        if not f"{file}/".startswith(f"{part}/") or index % turns == (turn - 1) % min(turns, len(members))
    }
    places = (tuple(name.partition("[")[0].partition("::")[::2]) for name in names)
    return [index for index, place in enumerate(places) if place in remaining]
