"""One category's events as a msgspec Struct, and the argument columns of a group of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, Literal

import msgspec
import numpy as np

from torch_tb_profiler.ingest.kineto.schema import Category, Key
from torch_tb_profiler.model.trace import ABSENT, ArgKind, Int32

Cells = tuple[str, ArgKind, Int32, Any]
"""(key, kind, rows, values) of an argument column, without absent cells, as `Columns.add_cells` takes them."""

COMMON = 9
"""ph, name, pid, tid, ts, dur, id, args, number: the first fields of every Event."""

_NO_JSON = msgspec.Raw(b"")
_TYPES: dict[ArgKind | None, Any] = {"int": int, "float": float, "text": str, "json": msgspec.Raw, None: None}

_ID = int | str | None

# Keys that a Struct cannot have, or that our own field has; their categories take the plain way.
_UNFIT_KEY = re.compile(r'["\\\x00-\x1f]|^@(?:\(number\)|args)$')

astuple = msgspec.structs.astuple


class DoesNotFit(Exception):
    """A block is valid JSON of the learned schema and still does not fit the columns."""


def fits(category: Category) -> bool:
    """True if the events of a category can be a Struct."""
    return not any(map(_UNFIT_KEY.search, category.keys))


class Layout:
    """The Struct of one category (`event`) and how to read its columns; `number` tells it from the others."""

    def __init__(self, name: str, number: int, category: Category, time: tuple[Any, Any]) -> None:
        self._own = [(key, field) for key, field in category.keys.items() if key.startswith("@")]
        self._inner = [(key, field) for key, field in category.keys.items() if not key.startswith("@")]
        self._args_always = category.args_always
        args = msgspec.defstruct("Args", _fields(self._inner), forbid_unknown_fields=True, gc=False, kw_only=True)
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
                ("args", args) if category.args_always else ("args", args | None, None),
                # Not read from the file: a constant that makes the category a column like the others.
                ("number", Literal[number], msgspec.field(name="(number)", default=number)),
                *_fields([(key[1:], field) for key, field in self._own]),
            ],
            tag_field="cat",
            tag=name,
            forbid_unknown_fields=True,
            gc=False,
            kw_only=True,
        )

    def cells(
        self, rows: Int32, members: list[int], events: Sequence[Any], args: Sequence[Any]
    ) -> Iterator[Cells]:
        """The argument columns of the `members` of a block, its events of this category. Raises DoesNotFit."""
        if self._own:
            events = [events[i] for i in members]
            columns = [tuple(map(attrgetter(f"field_{i}"), events)) for i in range(len(self._own))]
            yield from _read(self._own, rows, columns)
        if self._inner:
            args = [args[i] for i in members]
            if not self._args_always and None in args:
                rows = rows[[one is not None for one in args]]
                args = [one for one in args if one is not None]
            yield from _read(self._inner, rows, zip(*map(astuple, args), strict=True))


def _fields(keys: Iterable[tuple[str, Key]]) -> list[tuple[str, Any, Any]]:
    fields: list[tuple[str, Any, Any]] = []
    for i, (name, key) in enumerate(keys):
        kind = _TYPES[key.kind]
        if key.always:
            fields.append((f"field_{i}", kind, msgspec.field(name=name)))
        elif key.kind == "json":
            fields.append((f"field_{i}", kind, msgspec.field(name=name, default=_NO_JSON)))
        else:
            fields.append((f"field_{i}", kind | None if kind else None, msgspec.field(name=name, default=None)))
    return fields


def _read(keys: list[tuple[str, Key]], rows: Int32, columns: Iterable[Sequence[Any]]) -> Iterator[Cells]:
    present = _Present(rows)
    for (name, key), values in zip(keys, columns, strict=False):
        where = rows
        if not key.always:
            absent = _NO_JSON if key.kind == "json" else None
            missing = values.count(absent)
            if missing == len(values):
                continue  # a key of other events of this category
            if missing:
                where, values = present.cells(values, absent, missing)
        if key.kind is not None:
            yield name, key.kind, where, _convert(key.kind, values)


class _Present:
    """Takes the absent cells out of columns; keys that come together share the search."""

    def __init__(self, rows: Int32) -> None:
        self._rows = rows
        self._known: dict[int, tuple[list[int], Int32]] = {}

    def cells(self, values: Sequence[Any], absent: Any, missing: int) -> tuple[Int32, list[Any]]:
        sparse = 2 * missing > len(values)
        few, where = self._known.get(missing, ([-1], self._rows))
        # As many are missing as in a column before: if `few` are the same, so are all.
        if few[0] < 0 or any((values[i] is absent) is sparse for i in few):
            few = [i for i, value in enumerate(values) if (value is absent) is not sparse]
            where = self._rows[few] if sparse else np.delete(self._rows, few)
            self._known[missing] = few, where
        return where, [values[i] for i in few] if sparse else [value for value in values if value is not absent]


def _convert(kind: ArgKind, values: Sequence[Any]) -> Any:
    if kind == "text":
        return values
    if kind == "json":
        return _bytes(values)
    if kind == "float":
        return np.fromiter(values, np.float64, len(values))
    try:
        numbers = np.fromiter(values, np.int64, len(values))
    except OverflowError as error:
        raise DoesNotFit from error
    if numbers.min(initial=0) == ABSENT:  # a number that would read as none
        raise DoesNotFit
    return numbers


def _bytes(values: Sequence[msgspec.Raw]) -> list[bytes]:
    """The texts of raw values, which live in the block's buffer."""
    texts = b"\0".join(values).split(b"\0")  # twice as fast as bytes() of each
    return texts if len(texts) == len(values) else list(map(bytes, values))
