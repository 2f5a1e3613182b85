"""What the command line prints: tables for people, JSON and CSV for programs."""

from __future__ import annotations

import csv
import io
import json
import sys
from typing import Any

from torch_tb_profiler.base.units import format_bytes, format_duration


def print_payload(payload: dict[str, Any], form: str, first: str = "rows") -> None:
    """`first`: the table that stands for the payload where there is room for one."""
    if form == "json":
        sys.stdout.write(json.dumps(payload, indent=1) + "\n")
        return
    from torch_tb_profiler.api.tables import sentences, tables

    said, payload = sentences(payload)
    titled = [(title, [*map(_printable, rows)]) for title, rows in tables(payload, first).items()]
    if form == "csv":
        _, rows = titled[0] if titled else ("", [])
        writer = io.StringIO()
        columns = list(dict.fromkeys(key for row in rows for key in row))
        output = csv.DictWriter(writer, columns, lineterminator="\n")
        output.writeheader()
        output.writerows(rows)
        sys.stdout.write(writer.getvalue())
        return
    for sentence in said:
        sys.stdout.write(f"{sentence}\n")
    for key, value in payload.items():
        if not isinstance(value, (list, dict)):
            sys.stdout.write(f"{key}: {_cell(key, value)}\n")
    for title, rows in titled:
        sys.stdout.write(f"\n{title}\n" if len(titled) > 1 else "")
        sys.stdout.write(format_table(rows))


def _printable(row: dict[str, Any]) -> dict[str, Any]:
    return {name: json.dumps(cell) if isinstance(cell, list) else cell for name, cell in row.items()}


def _cell(key: str, value: Any) -> str:
    name = key.rsplit(".", 1)[-1]
    if value is None:
        return "-"
    if isinstance(value, bool) or isinstance(value, str):
        return str(value)
    if name.endswith("_bytes") or name == "bytes":
        return format_bytes(value)
    if (name.endswith("_ns") and key not in ("trace_start_ns", "base_ns")) or "categories." in key:
        return format_duration(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def format_table(rows: list[dict[str, Any]]) -> str:
    columns = list(dict.fromkeys(key for row in rows for key in row))
    cells = [[_cell(column, row.get(column)) for column in columns] for row in rows]
    widths = [max(len(c), *(len(line[i]) for line in cells)) for i, c in enumerate(columns)]
    numeric = [all(not isinstance(row.get(c), str) for row in rows) for c in columns]

    def line(values: list[str]) -> str:
        padded = (
            value.rjust(width) if right else value.ljust(width)
            for value, width, right in zip(values, widths, numeric, strict=True)
        )
        return "  ".join(padded).rstrip() + "\n"

    return line(columns) + line(["-" * width for width in widths]) + "".join(map(line, cells))
