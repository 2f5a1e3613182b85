"""Names in the order that people expect."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"([0-9]{1,18})")


def natural_order(name: str) -> list[tuple[int, str]]:
    """Sort key in which numbers inside a name count as numbers: rank, rank9, rank10."""
    texts_and_numbers = _NUMBER.split(name)
    return [(int(part), "") if i % 2 else (-1, part) for i, part in enumerate(texts_and_numbers)]
