"""Names in sentences."""

from __future__ import annotations

SPOKEN = 48
"""Characters of a name in a sentence."""


def spoken_name(name: str) -> str:
    """A name in a sentence: cut where it is long."""
    return name if len(name) <= SPOKEN else f"{name[: SPOKEN - 1]}…"
