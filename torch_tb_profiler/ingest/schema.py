"""What the events of a file carry: category -> argument key -> kind, learned as it is met."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from torch_tb_profiler.ingest.columns import unify
from torch_tb_profiler.model.trace import ArgKind

_KNOWN = frozenset(("ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "args"))


class Schema:
    """`categories` maps a category to its keys and their kinds; grows, never shrinks.

    Event-level keys beyond the usual ones count as arguments spelled "@key".
    """

    def __init__(self) -> None:
        self.categories: dict[str, dict[str, ArgKind]] = {}
        self._seen: set[tuple[Any, ...]] = set()

    @property
    def keys(self) -> int:
        return sum(1 + len(keys) for keys in self.categories.values())

    def learn(self, objects: Sequence[Any]) -> bool:
        """Take in what these decoded events carry; True if something was new."""
        grew = False
        for event in objects:
            if not isinstance(event, dict) or not isinstance(event.get("cat"), str):
                continue
            args = event.get("args")
            inner = args.items() if isinstance(args, dict) else ()
            own = frozenset(event) - _KNOWN
            shape = (event["cat"], own, *((key, kind_of(value)) for key, value in inner))
            if shape in self._seen:
                continue
            self._seen.add(shape)
            grew |= self._note(event)
        return grew

    def _note(self, event: dict[str, Any]) -> bool:
        grew = event["cat"] not in self.categories
        keys = self.categories.setdefault(event["cat"], {})
        for key, _, kind in arguments(event):
            known = keys.get(key)
            keys[key] = kind if known is None else unify((known, kind))
            grew |= keys[key] != known
        return grew


def arguments(event: dict[str, Any]) -> Iterator[tuple[str, Any, ArgKind]]:
    """(key, value, kind) of all arguments of a decoded event, event-level ones as "@key"."""
    for key, value in event.items():
        if key not in _KNOWN:
            yield f"@{key}", value, kind_of(value)
    args = event.get("args")
    if isinstance(args, dict):
        for key, value in args.items():
            yield key, value, kind_of(value)
    elif args is not None:
        yield "@args", args, "json"


def kind_of(value: Any) -> ArgKind:
    """The column kind that holds a decoded JSON value."""
    if isinstance(value, str):
        return "text"
    if isinstance(value, bool):
        return "json"
    if isinstance(value, int):
        return "int" if -(2**63) < value < 2**63 else "json"
    return "float" if isinstance(value, (float, Decimal)) else "json"
