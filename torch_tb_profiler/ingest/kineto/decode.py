"""Blocks of events to columns: a decoder that learns the file's own schema.

Kineto files carry a handful of categories with a few argument keys each. A first block is decoded into plain
objects, and what was seen (category -> key -> kind) becomes one msgspec Struct per category, tagged by "cat".
Following blocks decode straight into those. A block with something new (a category, a key, another type)
fails validation, takes the plain way once, and the schema grows. So no key is lost, and the common case runs
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

from torch_tb_profiler.ingest.kineto.ahead import Ahead
from torch_tb_profiler.ingest.kineto.clock import EXACT_LIMIT_US, needs_text, ns_from_floats, ns_from_values
from torch_tb_profiler.ingest.kineto.columns import Block, Columns
from torch_tb_profiler.ingest.kineto.layout import COMMON, Cells, DoesNotFit, Layout, astuple, fits
from torch_tb_profiler.ingest.kineto.objects import add_objects
from torch_tb_profiler.ingest.kineto.schema import Schema
from torch_tb_profiler.model.trace import Int64

MAX_KEYS = 1000
"""A schema larger than this is generated text, not a trace's: it stops growing, the plain way goes on."""


class BlockDecoder:
    """Decodes blocks (JSON arrays of events) into `columns`."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._schema = Schema()
        self._exact = False
        self._layouts: list[Layout] = []
        self._codes = columns.strings.of(())
        self._decoder: msgspec.json.Decoder[list[Any]] | None = None

    @property
    def events(self) -> int:
        """How many were read."""
        return self._columns.length

    @property
    def uses_decimals(self) -> bool:
        """True once float64 has lost digits of a time: from there on times are read as decimals."""
        return self._exact

    def use_decimals(self) -> None:
        """Read the times of further blocks as decimals."""
        if not self._exact:
            self._exact, self._schema, self._decoder = True, Schema(), None

    def finish(self) -> None:
        """Hand on what is still held back: nothing here."""

    def ahead(self, note: Callable[[int], None]) -> Ahead | None:
        """What reads blocks while further ones are cut, None if nothing does.

        note  called whenever events were added, with the number of entries that were no objects
        """
        return None

    def add(self, block: bytes | memoryview) -> int:
        """Append the events of a block; returns how many entries of the array were no objects.

        Raises msgspec.DecodeError or UnicodeDecodeError, columns untouched, if the block is damaged.
        """
        if self._try_structs(block):
            return 0
        objects = msgspec.json.decode(block)
        if self._learn(objects) and self._try_structs(block):
            return 0
        if _inexact(objects):
            objects = json.loads(bytes(block), parse_float=Decimal)
        return add_objects(self._columns, objects)

    def add_objects(self, objects: Sequence[Any]) -> int:
        """Append events decoded elsewhere; returns how many entries were no objects."""
        return add_objects(self._columns, objects)

    def _try_structs(self, block: bytes | memoryview) -> bool:
        if self._decoder is None:
            return False
        try:
            self._add_structs(self._decoder.decode(block))
        except (msgspec.ValidationError, DoesNotFit):
            return False
        return True

    def _learn(self, objects: Sequence[Any]) -> bool:
        """Widen the schema by what these events carry; False if it knew them all."""
        inexact = not self._exact and _inexact(objects)
        self._exact |= inexact
        grew = self._schema.learn(objects)
        if not (grew or inexact) or self._schema.keys > MAX_KEYS or not self._schema.categories:
            return False
        time: tuple[Any, Any] = (Decimal | None, None) if self._exact else (float, float("nan"))
        fit = [(name, category) for name, category in self._schema.categories.items() if fits(category)]
        if not fit:
            return False
        self._layouts = [Layout(name, i, category, time) for i, (name, category) in enumerate(fit)]
        self._codes = self._columns.strings.of(name for name, _ in fit)
        any_event: Any = reduce(or_, (layout.event for layout in self._layouts))
        self._decoder = msgspec.json.Decoder(list[any_event])
        return True

    def _add_structs(self, events: list[Any]) -> None:
        """Raises DoesNotFit, columns untouched, if a value is outside its column's range."""
        if not events:
            return
        columns = self._columns
        common = tuple(zip(*map(astuple, events), strict=False))[:COMMON]
        phase, name, pid, tid, ts, dur, flow, args, numbers = common
        phases = "".join(phase)
        if len(phases) != len(events) or not phases.isascii():
            raise DoesNotFit
        layout_of = np.fromiter(numbers, np.int16, len(numbers))
        cells = list(self._cells(events, args, layout_of))
        block = Block(
            np.frombuffer(phases.encode(), np.uint8),
            self._codes[layout_of],
            columns.strings.of(name),
            columns.threads.of_pairs(pid, tid),
            self._times(ts),
            self._times(dur),
            columns.ids(flow),
        )
        columns.add_block(block)
        for key, kind, rows, values in cells:
            columns.add_cells(key, kind, rows, values)

    def _cells(self, events: list[Any], args: Sequence[Any], layout_of: npt.NDArray[np.int16]) -> Iterator[Cells]:
        """The argument columns of a block, one layout after the other."""
        order = np.argsort(layout_of, kind="stable")
        for members in np.split(order, np.flatnonzero(np.diff(layout_of[order])) + 1):
            layout = self._layouts[layout_of[members[0]]]
            rows = (members + self._columns.length).astype(np.int32)
            yield from layout.cells(rows, members.tolist(), events, args)

    def _times(self, values: Sequence[Any]) -> Int64:
        if self._exact:
            return ns_from_values(values)
        floats = np.array(values, np.float64)
        if needs_text(floats):
            raise DoesNotFit
        return ns_from_floats(floats)


def _inexact(objects: Sequence[Any]) -> bool:
    """True if float64 has lost digits of the times of these events."""
    times = (item.get(key) for item in objects if isinstance(item, dict) for key in ("ts", "dur"))
    return any(isinstance(time, float) and abs(time) >= EXACT_LIMIT_US for time in times)
