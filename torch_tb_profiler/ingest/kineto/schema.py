"""Learn what the events of one file carry, and lay out a msgspec Struct for each category of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from operator import attrgetter
from typing import Any, Literal

import msgspec
import numpy as np

from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.ingest.kineto.columns import common_kind
from torch_tb_profiler.model.trace import ABSENT, ArgKind, Int32

ColumnCells = tuple[str, ArgKind, Int32, Any]
"""(key, kind, rows, values) of an argument column without absent cells; parameters of `EventColumns.add_cells`."""

COMMON_FIELDS = 9
"""Number of leading fields that every Event has: ph, name, pid, tid, ts, dur, id, args, number."""

_COMMON_KEYS = frozenset(("ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "args"))
"""Keys of an event that are no arguments."""

_KINDS: dict[type, ArgKind | None] = {str: "text", float: "float", Decimal: "float", type(None): None}
_NO_JSON = msgspec.Raw(b"")
_TYPES: dict[ArgKind | None, Any] = {"int": int, "float": float, "text": str, "json": msgspec.Raw, None: None}
_ID = int | str | None

_UNFIT_KEY = lazy_regex(r'["\\\x00-\x1f]|^@(?:\(number\)|args)$')
"""Keys that a Struct can't have, or that our own field uses; their categories are decoded generically."""

astuple = msgspec.structs.astuple


class BlockDoesNotFit(Exception):
    """A block is valid JSON of the learned schema, but doesn't fit the columns."""


class ArgumentKey(msgspec.Struct, frozen=True):
    """What is known of an argument key of a category.

    kind    None while every value was null, which counts as absent
    always  every event of the category has had it
    """

    kind: ArgKind | None
    always: bool


class CategoryKeys(msgspec.Struct):
    """The argument keys of a category; extra event-level keys are written "@key"."""

    keys: dict[str, ArgumentKey] = {}
    args_always: bool = True


class EventSchema:
    """The argument keys of all categories of a file; it only grows."""

    def __init__(self) -> None:
        self.categories: dict[str, CategoryKeys] = {}
        self._seen: set[tuple[Any, ...]] = set()

    @property
    def key_count(self) -> int:
        """Return the number of categories and of their keys."""
        return sum(1 + len(category.keys) for category in self.categories.values())

    def learn(self, objects: Sequence[Any]) -> bool:
        """Add what these decoded events carry; return True if something was new."""
        grew = False
        for event in objects:
            if not isinstance(event, dict) or not isinstance(event.get("cat"), str):
                continue
            args = event.get("args")
            inner = _shape(args) if isinstance(args, dict) else type(args)
            shape = (event["cat"], _shape(event), inner)
            if shape in self._seen:
                continue
            self._seen.add(shape)
            grew |= self._note(event, event["cat"])
        return grew

    def _note(self, event: dict[str, Any], name: str) -> bool:
        new = name not in self.categories
        category = self.categories.setdefault(name, CategoryKeys())
        grew = new
        args = event.get("args")
        if category.args_always and args is None:
            category.args_always, grew = False, True
        met = {key: kind for key, _, kind in iterate_arguments(event)}
        for key in {**category.keys, **met}:
            known = category.keys.get(key, ArgumentKey(None, always=new))
            kinds = [kind for kind in (known.kind, met.get(key)) if kind is not None]
            absent = met.get(key) is None and (key.startswith("@") or args is not None)
            learned = ArgumentKey(common_kind(kinds) if kinds else None, known.always and not absent)
            grew |= learned != category.keys.get(key)
            category.keys[key] = learned
        return grew


def _shape(item: dict[str, Any]) -> tuple[Any, ...]:
    """Return the keys of a JSON object and the kinds of its values."""
    return tuple(item), tuple(map(value_kind, item.values()))


def iterate_arguments(event: dict[str, Any]) -> Iterator[tuple[str, Any, ArgKind | None]]:
    """Yield (key, value, kind) of all arguments of an event, event-level ones as "@key"; null has no kind."""
    for key, value in event.items():
        if key not in _COMMON_KEYS:
            yield f"@{key}", value, value_kind(value)
    args = event.get("args")
    if isinstance(args, dict):
        for key, value in args.items():
            yield key, value, value_kind(value)
    elif args is not None:
        yield "@args", args, "json"


def value_kind(value: Any) -> ArgKind | None:
    """Return the column kind that can hold a decoded JSON value, None for null."""
    if type(value) is int:
        return "int" if -(2**63) < value < 2**63 else "json"
    return _KINDS.get(type(value), "json")


def fits_struct(category: CategoryKeys) -> bool:
    """Return whether the events of a category can be decoded into a Struct."""
    return not any(map(_UNFIT_KEY.search, category.keys))


class StructLayout:
    """The Struct of one category (`event`) and how to read its columns; `number` identifies the category."""

    def __init__(self, name: str, number: int, category: CategoryKeys, time: tuple[Any, Any]) -> None:
        self._event_keys = [(key, known) for key, known in category.keys.items() if key.startswith("@")]
        self._argument_keys = [(key, known) for key, known in category.keys.items() if not key.startswith("@")]
        self._args_always = category.args_always
        args = msgspec.defstruct(
            "Args", _fields(self._argument_keys), forbid_unknown_fields=True, gc=False, kw_only=True
        )
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
                *_fields([(key[1:], known) for key, known in self._event_keys]),
            ],
            tag_field="cat",
            tag=name,
            forbid_unknown_fields=True,
            gc=False,
            kw_only=True,
        )

    def cells(
        self, rows: Int32, members: list[int], events: Sequence[Any], args: Sequence[Any]
    ) -> Iterator[ColumnCells]:
        """Yield the argument columns of a block's events of this category (`members`); raise BlockDoesNotFit."""
        if self._event_keys:
            events = [events[i] for i in members]
            columns = [tuple(map(attrgetter(f"field_{i}"), events)) for i in range(len(self._event_keys))]
            yield from _column_cells(self._event_keys, rows, columns)
        if self._argument_keys:
            args = [args[i] for i in members]
            if not self._args_always and None in args:
                rows = rows[[one is not None for one in args]]
                args = [one for one in args if one is not None]
            yield from _column_cells(self._argument_keys, rows, zip(*map(astuple, args), strict=True))


def _fields(keys: Iterable[tuple[str, ArgumentKey]]) -> list[tuple[str, Any, Any]]:
    """Return the fields of a Struct with these keys, in the form that `msgspec.defstruct` takes."""
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


def _column_cells(
    keys: list[tuple[str, ArgumentKey]], rows: Int32, columns: Iterable[Sequence[Any]]
) -> Iterator[ColumnCells]:
    present = _PresentCells(rows)
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


class _PresentCells:
    """Removes the absent cells of columns; keys that occur together share the search."""

    def __init__(self, rows: Int32) -> None:
        self._rows = rows
        self._known: dict[int, tuple[list[int], Int32]] = {}

    def cells(self, values: Sequence[Any], absent: Any, missing: int) -> tuple[Int32, list[Any]]:
        """Return the rows and values of a column, without the `missing` cells that are `absent`."""
        sparse = 2 * missing > len(values)
        few, where = self._known.get(missing, ([-1], self._rows))
        # As many are missing as in an earlier column: if the rows in `few` match, all do.
        if few[0] < 0 or any((values[i] is absent) is sparse for i in few):
            few = [i for i, value in enumerate(values) if (value is absent) is not sparse]
            where = self._rows[few] if sparse else np.delete(self._rows, few)
            self._known[missing] = few, where
        return where, [values[i] for i in few] if sparse else [value for value in values if value is not absent]


def _convert(kind: ArgKind, values: Sequence[Any]) -> Any:
    if kind == "text":
        return values
    if kind == "json":
        return _copy_texts(values)
    if kind == "float":
        return np.fromiter(values, np.float64, len(values))
    try:
        numbers = np.fromiter(values, np.int64, len(values))
    except OverflowError as error:
        raise BlockDoesNotFit from error
    if numbers.min(initial=0) == ABSENT:  # a number that would read as none
        raise BlockDoesNotFit
    return numbers


def _copy_texts(values: Sequence[msgspec.Raw]) -> list[bytes]:
    """Copy the texts of raw values out of the block's buffer."""
    texts = b"\0".join(values).split(b"\0")  # twice as fast as bytes() of each
    return texts if len(texts) == len(values) else list(map(bytes, values))
