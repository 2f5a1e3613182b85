"""What the command line prints: tables for people, JSON and CSV for programs."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterator
from typing import Any

from torch_tb_profiler.base.units import format_bytes, format_duration


def print_payload(payload: dict[str, Any], form: str) -> None:
    if form == "json":
        sys.stdout.write(json.dumps(payload, indent=1) + "\n")
        return
    sentences, payload = _sentences(payload)
    tables = _tables(payload)
    if form == "csv":
        _, rows = tables[0] if tables else ("", [])
        writer = io.StringIO()
        columns = list(dict.fromkeys(key for row in rows for key in row))
        output = csv.DictWriter(writer, columns, lineterminator="\n")
        output.writeheader()
        output.writerows(rows)
        sys.stdout.write(writer.getvalue())
        return
    for sentence in sentences:
        sys.stdout.write(f"{sentence}\n")
    for key, value in payload.items():
        if not isinstance(value, (list, dict)):
            sys.stdout.write(f"{key}: {_cell(key, value)}\n")
    for title, rows in tables:
        sys.stdout.write(f"\n{title}\n" if len(tables) > 1 else "")
        sys.stdout.write(format_table(rows))


def _sentences(payload: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """(the sentences of a payload without their links, its other fields)."""
    sentences, others = [], {}
    for key, value in payload.items():
        if _is_text(value):
            sentences.append(_plain(value))
        elif isinstance(value, list) and value and all(map(_is_text, value)):
            sentences += map(_plain, value)
        else:
            others[key] = value
    return sentences, others


def _is_text(value: Any) -> bool:
    """Whether a value is a `views._shared.text.Text`, decoded."""
    return isinstance(value, list) and bool(value) and all(_is_phrase(part) for part in value)


def _is_phrase(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"text", "link"}


def _plain(text: list[dict[str, Any]]) -> str:
    return "".join(phrase["text"] for phrase in text)


def _tables(payload: dict[str, Any]) -> list[tuple[str, list[dict[str, Any]]]]:
    """The lists of objects, and the objects, of a payload as tables; `rows` goes first."""
    tables = []
    for key, value in payload.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            tables.append((key, [_flat(row) for row in _unfolded(value)]))
        elif isinstance(value, dict) and value:
            tables.append((key, [_flat(value)]))
    return sorted(tables, key=lambda titled: titled[0] != "rows")


def _unfolded(rows: list[dict[str, Any]], depth: int = 0) -> Iterator[dict[str, Any]]:
    """A tree of rows as lines, each row before its `children`, with its `depth`."""
    for row in rows:
        children = row.get("children")
        if not isinstance(children, list):
            yield row
            continue
        yield {"depth": depth, **{key: value for key, value in row.items() if key != "children"}}
        yield from _unfolded(children, depth + 1)


def _flat(row: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, dict):
            flat.update(_flat(value, f"{prefix}{key}."))
        elif _is_text(value):
            flat[prefix + key] = _plain(value)
        else:
            flat[prefix + key] = json.dumps(value) if isinstance(value, list) else value
    return flat


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
