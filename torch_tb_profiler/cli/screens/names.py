"""Names in narrow columns: cut in the middle, or wherever keeps those apart that would look the same."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise

from rich.cells import cell_len, set_cell_size

_CUT = "…"

MAX_PLACES = 4
"""Most places at which a cut name shows how it differs from others."""


def shorten_names(names: Sequence[str], width: int) -> list[str]:
    """Return the names in at most `width` cells; different ones stay different where cuts can show why.

    Leading spaces stay, as they show the depth of a tree.
    """
    places: dict[str, tuple[int, ...]] = dict.fromkeys(names, ())
    while True:
        short = {name: _cut(name, width, places[name]) for name in places}
        if not _show_differences(short, places):
            return [short[name] for name in names]


def _show_differences(short: dict[str, str], places: dict[str, tuple[int, ...]]) -> bool:
    """Add to `places` where names that look the same differ; return whether any was added."""
    groups: dict[str, list[str]] = {}
    for name, text in short.items():
        groups.setdefault(text, []).append(name)
    found = False
    for group in groups.values():
        common = len(os.path.commonprefix(group))
        for name in group if len(group) > 1 else ():
            if common not in places[name] and len(places[name]) < MAX_PLACES:
                places[name] = tuple(sorted((*places[name], common)))
                found = True
    return found


def _cut(name: str, width: int, places: Sequence[int]) -> str:
    """Return the name with "…" for its middle, or for what precedes the places at which it differs from others."""
    if cell_len(name) <= width:
        return name
    indent = min(len(name) - len(name.lstrip(" ")), width // 2)
    text, width = name.lstrip(" "), width - indent
    if places:
        tail = _differences(name, width - 1 - width // 3, places, len(name) - len(text))
    else:
        tail = _last_cells(text, (width - 1) // 2)
    return " " * indent + set_cell_size(text, width - 1 - cell_len(tail)).rstrip() + _CUT + tail


def _differences(name: str, width: int, places: Sequence[int], start: int) -> str:
    """Return what follows each place, as far as there is space, from two letters before it."""
    begins = [max(place - 2, start) for place in places]
    each = (width - len(places) + 1) // len(places)
    parts = []
    for begin, end in pairwise([*begins, len(name)]):
        part = name[begin:end]
        is_last = end == len(name)
        if cell_len(part) > each:
            part = set_cell_size(part, each - 1 if is_last else each).rstrip() + (_CUT if is_last else "")
            parts.append(part if is_last else part + _CUT)
        else:
            parts.append(part)
    return "".join(parts)


def _last_cells(text: str, width: int) -> str:
    start = len(text)
    while start > 0 and cell_len(text[start - 1 :]) <= width:
        start -= 1
    return text[start:]
