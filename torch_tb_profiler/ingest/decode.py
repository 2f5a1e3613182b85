"""Blocks of events to columns: a decoder that learns the file's own schema.

Kineto files carry a handful of categories with a few argument keys each. A first block is decoded into plain
objects, and what was seen (category -> key -> kind) becomes one msgspec Struct per category, tagged by "cat".
Following blocks decode straight into those. A block with something new (a category, a key, another type)
fails validation, takes the plain way once, and the schema grows. So no key is lost, and the common case runs
at the speed of a fixed schema.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import reduce
from operator import or_
from typing import Any, Literal

import msgspec
import numpy as np

from torch_tb_profiler.ingest.clock import EXACT_LIMIT_US, needs_text, ns_from_floats, ns_from_values
from torch_tb_profiler.ingest.columns import Block, Columns
from torch_tb_profiler.ingest.objects import add_objects
from torch_tb_profiler.ingest.schema import Schema
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

    def __init__(self, name: str, code: int, keys: dict[str, ArgKind], time: tuple[Any, Any]) -> None:
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
                ("id", _ID, int(ABSENT)),
                ("args", args | None, None),
                # Not read from the file: a constant that makes the category a column like the others.
                ("category", Literal[code], msgspec.field(name="(category)", default=code)),
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


# Keys that a Struct cannot have, or that our own field has; their categories take the plain way.
_UNFIT_KEY = re.compile(r'["\\\x00-\x1f]|^@(?:\(category\)|args)$')

_COMMON = 9  # ph, name, pid, tid, ts, dur, id, args, category: the first fields of every Event

_astuple = msgspec.structs.astuple


class BlockDecoder:
    """Decodes blocks (JSON arrays of events) into `columns`."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._schema = Schema()
        self._exact = False
        self._categories: dict[type, _Category] = {}
        self._decoder: msgspec.json.Decoder[list[Any]] | None = None

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
        except (msgspec.ValidationError, _DoesNotFit):
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
        code = self._columns.strings.__getitem__
        categories = [
            _Category(name, code(name), keys, time)
            for name, keys in self._schema.categories.items()
            if not any(map(_UNFIT_KEY.search, keys))
        ]
        if not categories:
            return False
        self._categories = {category.event: category for category in categories}
        any_event: Any = reduce(or_, self._categories)
        self._decoder = msgspec.json.Decoder(list[any_event])
        return True

    def _add_structs(self, events: list[Any]) -> None:
        """Raises _DoesNotFit, columns untouched, if a value is outside its column's range."""
        if not events:
            return
        columns = self._columns
        common = tuple(zip(*map(_astuple, events), strict=False))[:_COMMON]
        phase, name, pid, tid, ts, dur, flow, args, codes = common
        phases = "".join(phase).encode("latin-1", "replace")
        if len(phases) != len(events):
            raise _DoesNotFit
        category = np.array(codes, np.int32)
        numbers, texts, jsons = self._split(events, args, category)
        block = Block(
            np.frombuffer(phases, np.uint8),
            category,
            columns.strings.of(name),
            columns.threads.of_runs(pid, tid),
            self._times(ts),
            self._times(dur),
            columns.ids(flow),
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
                    if values.count(_TYPES[kind][1]) == len(values):
                        continue  # a key of other events of this category
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


def _inexact(objects: Sequence[Any]) -> bool:
    """True if float64 has lost digits of the start times of these events."""
    starts = (item.get("ts") for item in objects if isinstance(item, dict))
    return any(isinstance(start, float) and abs(start) >= EXACT_LIMIT_US for start in starts)


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
