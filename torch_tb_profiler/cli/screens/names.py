"""Names in narrow columns: cut in the middle, or wherever keeps those apart that would look the same."""

from __future__ import annotations

import os
from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size

_CUT = "…"


def shorten_names(names: Sequence[str], width: int) -> list[str]:
    """Return the names in at most `width` cells; different ones stay different where a cut can show why.

    Leading spaces stay, as they show the depth of a tree.
    """
    short = {name: _cut(name, width) for name in dict.fromkeys(names)}
    alike: dict[str, list[str]] = {}
    for name, text in short.items():
        alike.setdefault(text, []).append(name)
    for group in alike.values():
        if len(group) > 1:
            common = len(os.path.commonprefix(group))
            short.update({name: _cut(name, width, common) for name in group})
    return [short[name] for name in names]


def _cut(name: str, width: int, differs_at: int | None = None) -> str:
    """Return the name with "…" for its middle, or for what precedes the letter at which it differs from others."""
    if cell_len(name) <= width:
        return name
    indent = min(len(name) - len(name.lstrip(" ")), width // 2)
    text, width = name.lstrip(" "), width - indent
    tail_width = (width - 1) // 2
    if differs_at is None:
        tail = _last_cells(text, tail_width)
    else:
        # What follows the difference is shown as far as there is space beside the beginning of the name.
        tail_width = width - 1 - width // 3
        tail = name[max(differs_at - 2, len(name) - len(text)) :]
        if cell_len(tail) > tail_width:
            tail = set_cell_size(tail, tail_width - 1).rstrip() + _CUT
    return " " * indent + set_cell_size(text, width - 1 - cell_len(tail)).rstrip() + _CUT + tail


def _last_cells(text: str, width: int) -> str:
    start = len(text)
    while start > 0 and cell_len(text[start - 1 :]) <= width:
        start -= 1
    return text[start:]
