"""What the events of one file carry: category -> argument key -> kind, learned as it is met."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from torch_tb_profiler.ingest.kineto.columns import unify
from torch_tb_profiler.model.trace import ArgKind

_KNOWN = frozenset(("ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "args"))


@dataclass(frozen=True)
class Key:
    """An argument key of a category.

    kind    None while every value was null, which counts as absent
    always  no event of the category has been without it
    """

    kind: ArgKind | None
    always: bool


@dataclass
class Category:
    """The keys that events of a category carry, event-level ones beyond the usual spelled "@key"."""

    keys: dict[str, Key] = field(default_factory=dict)
    args_always: bool = True


class Schema:
    """`categories` grows with what is met and never shrinks."""

    def __init__(self) -> None:
        self.categories: dict[str, Category] = {}
        self._seen: set[tuple[Any, ...]] = set()

    @property
    def keys(self) -> int:
        return sum(1 + len(category.keys) for category in self.categories.values())

    def learn(self, objects: Sequence[Any]) -> bool:
        """Take in what these decoded events carry; True if something was new."""
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
        category = self.categories.setdefault(name, Category())
        grew = new
        args = event.get("args")
        if category.args_always and args is None:
            category.args_always, grew = False, True
        met = {key: kind for key, _, kind in arguments(event)}
        for key in {**category.keys, **met}:
            known = category.keys.get(key, Key(None, always=new))
            kinds = [kind for kind in (known.kind, met.get(key)) if kind is not None]
            absent = met.get(key) is None and (key.startswith("@") or args is not None)
            learned = Key(unify(kinds) if kinds else None, known.always and not absent)
            grew |= learned != category.keys.get(key)
            category.keys[key] = learned
        return grew


def _shape(item: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(item), tuple(map(kind_of, item.values()))


def arguments(event: dict[str, Any]) -> Iterator[tuple[str, Any, ArgKind | None]]:
    """(key, value, kind) of all arguments of a decoded event, event-level ones as "@key"; null has no kind."""
    for key, value in event.items():
        if key not in _KNOWN:
            yield f"@{key}", value, kind_of(value)
    args = event.get("args")
    if isinstance(args, dict):
        for key, value in args.items():
            yield key, value, kind_of(value)
    elif args is not None:
        yield "@args", args, "json"


_KINDS: dict[type, ArgKind | None] = {str: "text", float: "float", Decimal: "float", type(None): None}


def kind_of(value: Any) -> ArgKind | None:
    """The column kind that holds a decoded JSON value, None for null."""
    if type(value) is int:
        return "int" if -(2**63) < value < 2**63 else "json"
    return _KINDS.get(type(value), "json")
