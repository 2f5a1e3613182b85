"""How many random examples a property is tried with."""

from __future__ import annotations

from hypothesis import settings

BRIEF = "brief"
"""The profile for further Pythons: properties have been tried with all examples on the first one."""


def examples(count: int) -> int:
    """Return `count`, or the few of the brief profile where that is in use."""
    brief = settings.get_current_profile_name() == BRIEF
    return min(count, settings.get_profile(BRIEF).max_examples) if brief else count
