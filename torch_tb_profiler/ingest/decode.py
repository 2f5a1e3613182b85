"""Blocks of events to columns: a decoder that learns the file's own schema.

Kineto files carry a handful of categories with a few argument keys each. A first block is decoded into plain
objects, and what was seen (category -> key -> kind) becomes one msgspec Struct per category, tagged by "cat".
Following blocks decode straight into those. A block with something new (a category, a key, another type)
fails validation, takes the plain way once, and the schema grows. So no key is lost, and the common case runs
at the speed of a fixed schema.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import reduce
from operator import or_
from typing import Any

import msgspec
import numpy as np

from torch_tb_profiler.ingest.clock import needs_text, ns_from_floats, ns_from_values
from torch_tb_profiler.ingest.columns import Block, Columns
from torch_tb_profiler.ingest.objects import Schema, add_objects
from torch_tb_profiler.model.trace import ABSENT, ArgKind, Int32, Int64

MAX_KEYS = 1000
"""A schema larger than this is generated text, not a trace's: it stops growing, the plain way goes on."""

_TYPES: dict[ArgKind, tuple[Any, Any]] = {
    "int": (int, int(ABSENT)),
    "float": (float, float("nan")),
    "text": (str | None, None),
    "json": (msgspec.Raw, msgspec.Raw(b"")),
}
_ID = int | str | None


class _Category:
    """The Struct of one category and how to read its columns."""

    def __init__(self, name: str, keys: dict[str, ArgKind], time: tuple[Any, Any]) -> None:
        self.name = name
        self.own = [(key, kind) for key, kind in keys.items() if key.startswith("@")]
        self.inner = [(key, kind) for key, kind in keys.items() if not key.startswith("@")]
        args = msgspec.defstruct("Args", _fields(self.inner), forbid_unknown_fields=True, gc=False)
        self.event = msgspec.defstruct(
            "Event",
            [
                ("ph", str, "\0"),
                ("name", str | None, None),
                ("pid", _ID, None),
                ("tid", _ID, None),
                ("ts", *time),
                ("dur", *time),
                ("id", _ID, None),
                ("args", args | None, None),
                *_fields([(key[1:], kind) for key, kind in self.own]),
            ],
            tag_field="cat",
            tag=name,
            forbid_unknown_fields=True,
            gc=False,
        )


def _fields(keys: Iterable[tuple[str, ArgKind]]) -> list[tuple[str, Any, Any]]:
    return [
        (f"field_{i}", _TYPES[kind][0], msgspec.field(name=key, default=_TYPES[kind][1]))
        for i, (key, kind) in enumerate(keys)
    ]


_COMMON = 8  # ph, name, pid, tid, ts, dur, id, args: the first fields of every Event

_astuple = msgspec.structs.astuple


class BlockDecoder:
    """Decodes blocks (JSON arrays of events) into `columns`."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._schema: Schema = {}
        self._learned = 0
        self._exact = False
        self._categories: dict[type, _Category] = {}
        self._decoder: msgspec.json.Decoder[list[Any]] | None = None

    def add(self, block: bytes) -> int:
        """Append the events of a block; returns how many entries of the array were no objects.

        Raises msgspec.DecodeError or UnicodeDecodeError, columns untouched, if the block is damaged.
        """
        if self._decoder is not None:
            try:
                self._add_structs(self._decoder.decode(block))
                return 0
            except (msgspec.ValidationError, _DoesNotFit):
                pass  # something new: the plain way below learns it
        objects = msgspec.json.decode(block)
        times = [item.get("ts") for item in objects if isinstance(item, dict)]
        if needs_text(np.array([time for time in times if isinstance(time, float)])):
            self._exact = True
            objects = json.loads(block, parse_float=Decimal)
        return self.add_objects(objects)

    def add_objects(self, objects: Sequence[Any]) -> int:
        """Append events decoded elsewhere; returns how many entries were no objects."""
        skipped = add_objects(self._columns, objects, self._schema)
        self._learn()
        return skipped

    def _learn(self) -> None:
        state = hash(tuple((name, *keys.items()) for name, keys in self._schema.items()))
        if not self._schema or state == self._learned or sum(map(len, self._schema.values())) > MAX_KEYS:
            return
        self._learned = state
        time: tuple[Any, Any] = (Decimal | None, None) if self._exact else (float, float("nan"))
        categories = [_Category(name, keys, time) for name, keys in self._schema.items()]
        self._categories = {category.event: category for category in categories}
        any_event: Any = reduce(or_, self._categories)
        self._decoder = msgspec.json.Decoder(list[any_event])

    def _add_structs(self, events: list[Any]) -> None:
        """Raises _DoesNotFit, columns untouched, if a value is outside its column's range."""
        if not events:
            return
        columns = self._columns
        common = tuple(zip(*map(_astuple, events), strict=False))[:_COMMON]
        phase, name, pid, tid, ts, dur, flow, args = common
        phases = "".join(phase).encode("latin-1", "replace")
        if len(phases) != len(events):
            raise _DoesNotFit
        kinds = list(map(type, events))
        category = columns.strings.of([self._categories[kind].name for kind in kinds])
        numbers, texts, jsons = self._split(events, args, category)
        block = Block(
            np.frombuffer(phases, np.uint8),
            category,
            columns.strings.of(name),
            columns.threads.of(zip(pid, tid, strict=True)),
            self._times(ts),
            self._times(dur),
            columns.flow_ids.of(flow),
        )
        columns.add_block(block)
        for key, kind, rows, values in numbers:
            columns.add_numbers(key, kind, rows, values)
        for key, rows, values in texts:
            columns.add_texts(key, rows, values)
        for key, rows, values in jsons:
            columns.add_jsons(key, rows, map(bytes, values))

    def _split(
        self, events: list[Any], args: Sequence[Any], category: Int32
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """Argument columns of a block, by kind, rows already absolute."""
        numbers: list[Any] = []
        texts: list[Any] = []
        jsons: list[Any] = []
        order = np.argsort(category, kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(category[order])) + 1)
        for rows in groups:
            kind_of = self._categories[type(events[rows[0]])]
            members = rows.tolist()
            sources = []
            if kind_of.inner:
                sources.append((kind_of.inner, [args[i] for i in members], 0))
            if kind_of.own:
                sources.append((kind_of.own, [events[i] for i in members], _COMMON))
            for keys, structs, skip in sources:
                where = rows
                if None in structs:
                    where = rows[[struct is not None for struct in structs]]
                    structs = [struct for struct in structs if struct is not None]
                absolute = (where + self._columns.length).astype(np.int32)
                cells = list(zip(*map(_astuple, structs), strict=True))[skip:]
                for (key, kind), values in zip(keys, cells, strict=True):
                    if kind == "text":
                        texts.append((key, absolute, values))
                    elif kind == "json":
                        jsons.append((key, absolute, values))
                    else:
                        numbers.append((key, kind, *_numbers(kind, absolute, values)))
        return numbers, texts, jsons

    def _times(self, values: Sequence[Any]) -> Int64:
        if self._exact:
            return ns_from_values(values)
        floats = np.array(values, np.float64)
        if needs_text(floats):
            raise _DoesNotFit
        return ns_from_floats(floats)


class _DoesNotFit(Exception):
    """A block is valid JSON of the learned schema and still does not fit the columns."""


def _numbers(kind: ArgKind, rows: Int32, values: Sequence[Any]) -> tuple[Int32, Any]:
    if kind == "float":
        floats = np.array(values, np.float64)
        present = floats == floats
        return (rows, floats) if present.all() else (rows[present], floats[present])
    try:
        integers = np.array(values, np.int64)
    except OverflowError as error:
        raise _DoesNotFit from error
    present = integers != ABSENT
    return (rows, integers) if present.all() else (rows[present], integers[present])
