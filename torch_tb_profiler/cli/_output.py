"""What commands write: tables for people, JSON and CSV for programs, and files."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterable
from typing import Any, TextIO

from torch_tb_profiler.base.errors import StorageError
from torch_tb_profiler.base.format import format_cell, shorten_middle

MIN_NAME_WIDTH = 12
"""Fewest characters of a shortened name; a shorter one would be unreadable."""

_COLUMN_GAP = 2
"""Spaces between two columns of a table."""

_SHORT_PREFIX = "short_"
"""Prefix of the column that holds the short names of another column."""


def print_payload(payload: dict[str, Any], form: str, first: str = "rows", wide: bool = False) -> None:
    """Print `payload` to stdout as `form`: "json", "csv", or "table".

    first  the table that CSV consists of, and that comes first among several tables
    wide   print all columns and full names, however wide the terminal is
    """
    if form == "json":
        sys.stdout.write(json.dumps(payload, indent=1) + "\n")
        return
    from torch_tb_profiler.api.tables import sentences, tables

    lines, payload = sentences(payload)
    titled = [(title, [*map(_with_json_lists, rows)]) for title, rows in tables(payload, first).items()]
    if form == "csv":
        _print_csv(titled[0][1] if titled else [])
        return
    if not wide:
        titled = [(title, [*map(_with_short_names, rows)]) for title, rows in titled]
    for sentence in lines:
        sys.stdout.write(f"{sentence}\n")
    for key, value in payload.items():
        if not isinstance(value, (list, dict)):
            sys.stdout.write(f"{key}: {format_cell(key, value)}\n")
    for title, rows in titled:
        sys.stdout.write(f"\n{emphasize(title, sys.stdout)}\n" if len(titled) > 1 else "")
        sys.stdout.write(format_table(rows, None if wide else terminal_width(sys.stdout)))


def _print_csv(rows: list[dict[str, Any]]) -> None:
    import csv

    buffer = io.StringIO()
    columns = list(dict.fromkeys(key for row in rows for key in row))
    writer = csv.DictWriter(buffer, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    sys.stdout.write(buffer.getvalue())


def _with_json_lists(row: dict[str, Any]) -> dict[str, Any]:
    return {name: json.dumps(cell) if isinstance(cell, list) else cell for name, cell in row.items()}


def _with_short_names(row: dict[str, Any]) -> dict[str, Any]:
    """Replace full names by their short ones, as a kernel's signature alone would fill the line."""
    short = {
        name.removeprefix(_SHORT_PREFIX): cell for name, cell in row.items() if name.startswith(_SHORT_PREFIX)
    }
    full = {name: cell for name, cell in row.items() if not name.startswith(_SHORT_PREFIX)}
    return {name: cell if (label := short.get(name)) is None else label for name, cell in full.items()}


def terminal_width(stream: TextIO) -> int | None:
    """Return the characters in a line of `stream`, or None if it's a pipe or a file."""
    if not stream.isatty():
        return None
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError):
        return None


def emphasize(text: str, stream: TextIO, code: str = "1") -> str:
    """Return `text` in bold (or red, "31") on a terminal, unless NO_COLOR is set (https://no-color.org)."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not stream.isatty()
    return text if plain else f"\033[{code}m{text}\033[0m"


def format_table(rows: list[dict[str, Any]], width: int | None = None) -> str:
    """Return a text table with lines of at most `width` characters; None means as wide as it gets.

    To fit, it drops columns without values, then shortens names in the middle, then drops columns from the right
    and says below how many.
    """
    columns = list(dict.fromkeys(key for row in rows for key in row))
    if width is not None:
        columns = [name for name in columns if any(row.get(name) is not None for row in rows)] or columns
    cells = [[format_cell(column, row.get(column)) for column in columns] for row in rows]
    widths = [max(len(c), *(len(line[i]) for line in cells)) for i, c in enumerate(columns)]
    numeric = [all(not isinstance(row.get(c), str) for row in rows) for c in columns]
    shown = len(columns) if width is None else _fit_columns(widths, numeric, columns, width)

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


def _fit_columns(widths: list[int], numeric: list[bool], columns: list[str], width: int) -> int:
    """Return how many columns fit into `width`; change `widths` of names in place to the space left for them."""
    min_widths = [
        full if right else min(full, max(MIN_NAME_WIDTH, len(column)))
        for full, right, column in zip(widths, numeric, columns, strict=True)
    ]
    shown, used = 0, -_COLUMN_GAP
    while shown < len(min_widths) and used + _COLUMN_GAP + min_widths[shown] <= width:
        used += _COLUMN_GAP + min_widths[shown]
        shown += 1
    shown = max(shown, 1)
    names = [index for index in range(shown) if not numeric[index]]
    spare = width - used
    while names:
        # The narrowest first, so that the others share what it doesn't need.
        narrowest = min(names, key=lambda index: widths[index])
        extra = min(widths[narrowest] - min_widths[narrowest], max(spare, 0) // len(names))
        widths[narrowest], spare = min_widths[narrowest] + extra, spare - extra
        names.remove(narrowest)
    del widths[shown:]
    return shown


def save_file(path: str, pieces: Iterable[bytes]) -> None:
    """Write `pieces` to a file that appears only when it is complete; "-" is stdout, and .gz is compressed.

    Raises StorageError if it can't be written.
    """
    if path == "-":
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        return
    import gzip

    partial = f"{path}.part"
    try:
        with gzip.open(partial, "wb", 5) if path.endswith(".gz") else open(partial, "wb") as file:
            for piece in pieces:
                file.write(piece)
        os.replace(partial, path)
    except OSError as error:
        raise StorageError(f"cannot be written: {error.strerror or error}", where=path) from error
    finally:
        if os.path.exists(partial):
            os.remove(partial)
