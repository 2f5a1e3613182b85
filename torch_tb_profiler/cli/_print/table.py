"""A table as text: numbers whole, names as wide as there is room for them."""

from __future__ import annotations

import os
from typing import Any, TextIO

from torch_tb_profiler.base.format import format_cell, shorten_middle

LEAST_NAME = 12
"""A name shortened to less tells nothing."""

_GAP = 2


def terminal_width(stream: TextIO) -> int | None:
    """Characters in a line; None where nobody looks (a pipe, a file)."""
    if not stream.isatty():
        return None
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError):
        return None


def emphasized(text: str, stream: TextIO, code: str = "1") -> str:
    """In bold (or red, "31") on a terminal, unless NO_COLOR is set (https://no-color.org)."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not stream.isatty()
    return text if plain else f"\033[{code}m{text}\033[0m"


def format_table(rows: list[dict[str, Any]], width: int | None = None) -> str:
    """Lines of at most `width` characters: names lose their middle, then columns are left out from the right on;
    those without any value are left out at once.

    What does not fit is said below; None is as wide as it gets.
    """
    columns = list(dict.fromkeys(key for row in rows for key in row))
    if width is not None:
        columns = [name for name in columns if any(row.get(name) is not None for row in rows)] or columns
    cells = [[format_cell(column, row.get(column)) for column in columns] for row in rows]
    widths = [max(len(c), *(len(line[i]) for line in cells)) for i, c in enumerate(columns)]
    numeric = [all(not isinstance(row.get(c), str) for row in rows) for c in columns]
    shown = len(columns) if width is None else _fitting(widths, numeric, columns, width)

    def line(values: list[str]) -> str:
        padded = (
            value.rjust(width) if right else shorten_middle(value, width).ljust(width)
            for value, width, right in zip(values, widths, numeric[:shown], strict=False)
        )
        return "  ".join(padded).rstrip() + "\n"

    lines = [line(columns), line(["-" * width for width in widths]), *map(line, cells)]
    left_out = columns[shown:]
    if left_out:
        lines.append(f"({len(left_out)} columns do not fit; --wide shows them)\n")
    return "".join(lines)


def _fitting(widths: list[int], numeric: list[bool], columns: list[str], width: int) -> int:
    """How many columns fit; the widths of names become what is left for them."""
    least = [
        full if right else min(full, max(LEAST_NAME, len(column)))
        for full, right, column in zip(widths, numeric, columns, strict=True)
    ]
    shown, used = 0, -_GAP
    while shown < len(least) and used + _GAP + least[shown] <= width:
        used += _GAP + least[shown]
        shown += 1
    shown = max(shown, 1)
    names = [at for at in range(shown) if not numeric[at]]
    spare = width - used
    while names:
        # The narrowest first, so that what it does not need is shared by the others.
        at = min(names, key=lambda at: widths[at])
        more = min(widths[at] - least[at], max(spare, 0) // len(names))
        widths[at], spare = least[at] + more, spare - more
        names.remove(at)
    del widths[shown:]
    return shown
