"""Events as plain decoded objects to columns: the way for whatever does not fit a fixed schema."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import msgspec
import numpy as np

from torch_tb_profiler.ingest.kineto.clock import ns_from_values
from torch_tb_profiler.ingest.kineto.columns import Block, Columns
from torch_tb_profiler.ingest.kineto.schema import arguments
from torch_tb_profiler.model.trace import ArgKind


def add_objects(columns: Columns, objects: Sequence[Any]) -> int:
    """Append decoded events; returns how many entries were no objects."""
    events = [item for item in objects if isinstance(item, dict)]
    first = columns.add_block(
        Block(
            np.array([_phase(event.get("ph")) for event in events], np.uint8),
            columns.strings.of(_text(event.get("cat")) for event in events),
            columns.strings.of(_text(event.get("name")) for event in events),
            columns.threads.of((_id(event.get("pid")), _id(event.get("tid"))) for event in events),
            ns_from_values([event.get("ts") for event in events]),
            ns_from_values([event.get("dur") for event in events]),
            columns.ids([_id(event.get("id")) for event in events]),
        )
    )
    cells: dict[tuple[str, ArgKind], tuple[list[int], list[Any]]] = {}
    for row, event in enumerate(events, first):
        for key, value, kind in arguments(event):
            if kind is None:
                continue
            rows, values = cells.setdefault((key, kind), ([], []))
            rows.append(row)
            values.append(value)
    for (key, kind), (rows, values) in cells.items():
        encoded = map(msgspec.json.encode, values) if kind == "json" else values
        columns.add_cells(key, kind, np.array(rows, np.int32), encoded)
    return len(objects) - len(events)


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
    if isinstance(value, (float, Decimal)) and -1e18 < value < 1e18 and value == int(value):
        return int(value)
    return str(value)
