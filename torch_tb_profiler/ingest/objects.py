"""Events as plain decoded objects to columns: the way for whatever does not fit a fixed schema."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import msgspec
import numpy as np

from torch_tb_profiler.ingest.clock import ns_from_values
from torch_tb_profiler.ingest.columns import Block, Columns, unify
from torch_tb_profiler.model.trace import ArgKind

Schema = dict[str, dict[str, ArgKind]]
"""category -> argument key -> kind; event-level keys beyond the known ones are spelled "@key"."""

_KNOWN = frozenset(("ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "args"))


def add_objects(columns: Columns, objects: Sequence[Any], schema: Schema) -> int:
    """Append decoded events, note in `schema` what was met; returns how many entries were no objects."""
    events = [item for item in objects if isinstance(item, dict)]
    first = columns.add_block(
        Block(
            np.array([_phase(event.get("ph")) for event in events], np.uint8),
            columns.strings.of(_text(event.get("cat")) for event in events),
            columns.strings.of(_text(event.get("name")) for event in events),
            columns.threads.of((_id(event.get("pid")), _id(event.get("tid"))) for event in events),
            ns_from_values([event.get("ts") for event in events]),
            ns_from_values([event.get("dur") for event in events]),
            columns.flow_ids.of(_id(event.get("id")) for event in events),
        )
    )
    cells: dict[tuple[str, ArgKind], tuple[list[int], list[Any]]] = {}
    for row, event in enumerate(events, first):
        for key, value, kind in _arguments(event):
            rows, values = cells.setdefault((key, kind), ([], []))
            rows.append(row)
            values.append(value)
        category = event.get("cat")
        if isinstance(category, str):
            _note(schema.setdefault(category, {}), event)
    for (key, kind), (rows, values) in cells.items():
        where = np.array(rows, np.int32)
        if kind == "int":
            columns.add_numbers(key, kind, where, np.array(values, np.int64))
        elif kind == "float":
            columns.add_numbers(key, kind, where, np.array(values, np.float64))
        elif kind == "text":
            columns.add_texts(key, where, values)
        else:
            columns.add_jsons(key, where, map(msgspec.json.encode, values))
    return len(objects) - len(events)


def _arguments(event: dict[str, Any]) -> list[tuple[str, Any, ArgKind]]:
    found = [(f"@{key}", value, _kind(value)) for key, value in event.items() if key not in _KNOWN]
    args = event.get("args")
    if isinstance(args, dict):
        found += [(key, value, _kind(value)) for key, value in args.items()]
    elif args is not None:
        found.append(("@args", args, "json"))
    return found


def _note(keys: dict[str, ArgKind], event: dict[str, Any]) -> None:
    for key, _, kind in _arguments(event):
        known = keys.get(key)
        keys[key] = kind if known is None else unify((known, kind))


def _kind(value: Any) -> ArgKind:
    if isinstance(value, str):
        return "text"
    if isinstance(value, bool):
        return "json"
    if isinstance(value, int):
        return "int" if -(2**63) < value < 2**63 else "json"
    return "float" if isinstance(value, (float, Decimal)) else "json"


def _phase(value: Any) -> int:
    return ord(value) if isinstance(value, str) and len(value) == 1 and value.isascii() else 0


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else str(value)


def _id(value: Any) -> int | str | None:
    """A pid, tid or flow id as an integer where it is one, else as text."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int):
        return value
    if isinstance(value, (float, Decimal)) and value == value and value % 1 == 0:
        return int(value)
    return str(value)
