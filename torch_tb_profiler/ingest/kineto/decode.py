"""Decode blocks of events into columns, with a decoder that learns the file's own schema.

Kineto files carry a handful of categories with a few argument keys each. A first block is decoded into plain
objects, and what was seen (category -> key -> kind) becomes one msgspec Struct per category, tagged by "cat".
Following blocks decode straight into those. A block with something new (a category, a key, another type)
fails validation, is decoded generically once, and extends the schema. So no key is lost, and the common case runs
at the speed of a fixed schema.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from functools import reduce
from operator import or_
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from torch_tb_profiler.ingest.kineto.clock import (
    EXACT_LIMIT_US,
    floats_lost_digits,
    ns_from_floats,
    ns_from_values,
)
from torch_tb_profiler.ingest.kineto.columns import EventBlock, EventColumns
from torch_tb_profiler.ingest.kineto.document import ReadAhead
from torch_tb_profiler.ingest.kineto.schema import (
    COMMON_FIELDS,
    BlockDoesNotFit,
    ColumnCells,
    EventSchema,
    StructLayout,
    astuple,
    fits_struct,
    iterate_arguments,
)
from torch_tb_profiler.model.trace import ArgKind, Int64

MAX_KEYS = 1000
"""Most keys of a learned schema; a file with more has generated keys, and its blocks are decoded generically."""


class BlockDecoder:
    """Decodes blocks (JSON arrays of events) into `columns`."""

    def __init__(self, columns: EventColumns) -> None:
        self._columns = columns
        self._schema = EventSchema()
        self._exact = False
        self._layouts: list[StructLayout] = []
        self._category_codes = columns.strings.encode(())
        self._decoder: msgspec.json.Decoder[list[Any]] | None = None

    @property
    def events(self) -> int:
        """Return the number of events read so far."""
        return self._columns.length

    @property
    def uses_decimals(self) -> bool:
        """Return whether times are read as decimals, because float64 has lost digits of one."""
        return self._exact

    def use_decimals(self) -> None:
        """Read the times of further blocks as decimals."""
        if not self._exact:
            self._exact, self._schema, self._decoder = True, EventSchema(), None

    def finish(self) -> None:
        """Pass on events that are still buffered; this decoder buffers none."""

    def create_read_ahead(self, note: Callable[[int], None]) -> ReadAhead | None:
        """Return a reader of blocks that works while further ones are cut, or None if there is none.

        note  called whenever events were added, with the number of entries that were no objects
        """
        return None

    def add(self, block: bytes | memoryview) -> int:
        """Append the events of a block; return how many entries of the array were no objects.

        Raises msgspec.DecodeError or UnicodeDecodeError, columns untouched, if the block is damaged.
        """
        if self._try_structs(block):
            return 0
        objects = msgspec.json.decode(block)
        if self._learn(objects) and self._try_structs(block):
            return 0
        if _has_inexact_times(objects):
            objects = json.loads(bytes(block), parse_float=Decimal)
        return add_objects(self._columns, objects)

    def add_objects(self, objects: Sequence[Any]) -> int:
        """Append events decoded elsewhere; return how many entries were no objects."""
        return add_objects(self._columns, objects)

    def _try_structs(self, block: bytes | memoryview) -> bool:
        if self._decoder is None:
            return False
        try:
            self._add_structs(self._decoder.decode(block))
        except (msgspec.ValidationError, BlockDoesNotFit):
            return False
        return True

    def _learn(self, objects: Sequence[Any]) -> bool:
        """Extend the schema by what these events carry; return False if nothing was new."""
        inexact = not self._exact and _has_inexact_times(objects)
        self._exact |= inexact
        grew = self._schema.learn(objects)
        if not (grew or inexact) or self._schema.key_count > MAX_KEYS or not self._schema.categories:
            return False
        time: tuple[Any, Any] = (Decimal | None, None) if self._exact else (float, float("nan"))
        fit = [(name, category) for name, category in self._schema.categories.items() if fits_struct(category)]
        if not fit:
            return False
        self._layouts = [StructLayout(name, i, category, time) for i, (name, category) in enumerate(fit)]
        self._category_codes = self._columns.strings.encode(name for name, _ in fit)
        any_event: Any = reduce(or_, (layout.event for layout in self._layouts))
        self._decoder = msgspec.json.Decoder(list[any_event])
        return True

    def _add_structs(self, events: list[Any]) -> None:
        """Append decoded events; raise BlockDoesNotFit, columns untouched, if a value is out of range."""
        if not events:
            return
        columns = self._columns
        common = tuple(zip(*map(astuple, events), strict=False))[:COMMON_FIELDS]
        phase, name, pid, tid, ts, dur, flow, args, numbers = common
        phases = "".join(phase)
        if len(phases) != len(events) or not phases.isascii():
            raise BlockDoesNotFit
        layout_of = np.fromiter(numbers, np.int16, len(numbers))
        cells = list(self._cells(events, args, layout_of))
        block = EventBlock(
            np.frombuffer(phases.encode(), np.uint8),
            self._category_codes[layout_of],
            columns.strings.encode(name),
            columns.threads.encode_pairs(pid, tid),
            self._times(ts),
            self._times(dur),
            columns.ids(flow),
        )
        columns.add_block(block)
        for key, kind, rows, values in cells:
            columns.add_cells(key, kind, rows, values)

    def _cells(
        self, events: list[Any], args: Sequence[Any], layout_of: npt.NDArray[np.int16]
    ) -> Iterator[ColumnCells]:
        """Yield the argument columns of a block, one layout after the other."""
        order = np.argsort(layout_of, kind="stable")
        for members in np.split(order, np.flatnonzero(np.diff(layout_of[order])) + 1):
            layout = self._layouts[layout_of[members[0]]]
            rows = (members + self._columns.length).astype(np.int32)
            yield from layout.cells(rows, members.tolist(), events, args)

    def _times(self, values: Sequence[Any]) -> Int64:
        if self._exact:
            return ns_from_values(values)
        floats = np.array(values, np.float64)
        if floats_lost_digits(floats):
            raise BlockDoesNotFit
        return ns_from_floats(floats)


def _has_inexact_times(objects: Sequence[Any]) -> bool:
    """Return whether float64 has lost digits of the times of these events."""
    times = (item.get(key) for item in objects if isinstance(item, dict) for key in ("ts", "dur"))
    return any(isinstance(time, float) and abs(time) >= EXACT_LIMIT_US for time in times)


def add_objects(columns: EventColumns, objects: Sequence[Any]) -> int:
    """Append decoded events that fit no schema; return how many entries were no objects."""
    events = [item for item in objects if isinstance(item, dict)]
    first = columns.add_block(
        EventBlock(
            np.array([_phase(event.get("ph")) for event in events], np.uint8),
            columns.strings.encode(_text_or_none(event.get("cat")) for event in events),
            columns.strings.encode(_text_or_none(event.get("name")) for event in events),
            columns.threads.encode((_id(event.get("pid")), _id(event.get("tid"))) for event in events),
            ns_from_values([event.get("ts") for event in events]),
            ns_from_values([event.get("dur") for event in events]),
            columns.ids([_id(event.get("id")) for event in events]),
        )
    )
    cells: dict[tuple[str, ArgKind], tuple[list[int], list[Any]]] = {}
    for row, event in enumerate(events, first):
        for key, value, kind in iterate_arguments(event):
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


def _text_or_none(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else str(value)


def _id(value: Any) -> int | str | None:
    """Return a pid, tid or flow id as an integer if it is one, else as text."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int):
        return value
    if isinstance(value, (float, Decimal)) and -1e18 < value < 1e18 and value == int(value):
        return int(value)
    return str(value)
