"""What the command line prints: tables for people, JSON and CSV for programs."""

from __future__ import annotations

import csv
import io
import json
import sys
from typing import Any

from torch_tb_profiler.base.format import format_cell
from torch_tb_profiler.cli._print.table import emphasized, format_table, terminal_width

_SHORT = "short_"
"""What the column with the short names of another one begins with."""


def print_payload(payload: dict[str, Any], form: str, first: str = "rows", wide: bool = False) -> None:
    """`first`: the table that stands for the payload where there is room for one; `wide`: all columns, with whole
    names as well as short ones, as programs get them."""
    if form == "json":
        sys.stdout.write(json.dumps(payload, indent=1) + "\n")
        return
    from torch_tb_profiler.api.tables import sentences, tables

    lines, payload = sentences(payload)
    titled = [(title, [*map(_printable, rows)]) for title, rows in tables(payload, first).items()]
    if form == "table" and not wide:
        titled = [(title, [*map(_with_short_names, rows)]) for title, rows in titled]
    if form == "csv":
        _, rows = titled[0] if titled else ("", [])
        writer = io.StringIO()
        columns = list(dict.fromkeys(key for row in rows for key in row))
        output = csv.DictWriter(writer, columns, lineterminator="\n")
        output.writeheader()
        output.writerows(rows)
        sys.stdout.write(writer.getvalue())
        return
    for sentence in lines:
        sys.stdout.write(f"{sentence}\n")
    for key, value in payload.items():
        if not isinstance(value, (list, dict)):
            sys.stdout.write(f"{key}: {format_cell(key, value)}\n")
    for title, rows in titled:
        sys.stdout.write(f"\n{emphasized(title, sys.stdout)}\n" if len(titled) > 1 else "")
        sys.stdout.write(format_table(rows, None if wide else terminal_width(sys.stdout)))


def _printable(row: dict[str, Any]) -> dict[str, Any]:
    return {name: json.dumps(cell) if isinstance(cell, list) else cell for name, cell in row.items()}


def _with_short_names(row: dict[str, Any]) -> dict[str, Any]:
    """A short name stands for the whole one, which a kernel's signature would fill the line with."""
    short = {name.removeprefix(_SHORT): cell for name, cell in row.items() if name.startswith(_SHORT)}
    whole = {name: cell for name, cell in row.items() if not name.startswith(_SHORT)}
    return {name: cell if (called := short.get(name)) is None else called for name, cell in whole.items()}
