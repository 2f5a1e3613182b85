"""Answers as JSON text of limited size, which lists what it leaves out and how to request it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from torch_tb_profiler.base.errors import NotFoundError, UsageError
from torch_tb_profiler.base.format import shorten_middle

MAX_BYTES = 20_000
"""Size limit of an answer in UTF-8."""

MAX_NOTES = 20
"""Most entries of `left_out`."""

MIN_INNER_ITEMS = 8
"""A list inside a list keeps at least this many items, if the outer one may have as many."""

TO_SEE_MORE = "call the same tool with one of these as `field`, and `first` to skip what you have seen"


class _SizeLimits(NamedTuple):
    """The most items of a list, characters of a text, and keys of an object.

    A list inside a list gets a quarter of the items, but see `MIN_INNER_ITEMS`.
    """

    items: int
    characters: int
    keys: int


_LEVELS = (
    *(_SizeLimits(max(round(4096 * 0.8**power), 1), 400 if power < 34 else 100, 100) for power in range(38)),
    _SizeLimits(0, 60, 100),
    _SizeLimits(0, 40, 20),
    _SizeLimits(0, 20, 4),
    _SizeLimits(0, 0, 0),
)


def as_text(payload: Any, field: str = "", first: int = 0) -> str:
    """Return JSON of at most `MAX_BYTES`: a field's value as `answer`, and what is omitted as `left_out`.

    field  a JSON Pointer (RFC 6901): "/rows" or "/rows/3/name"; "" is the entire payload
    first  index of the first item (character, key) of this field to include
    Raises NotFoundError for an unknown field, UsageError for an invalid `first`.
    """
    value = _resolve(payload, field)
    if first < 0 or (first and not isinstance(value, (list, str, dict))):
        raise UsageError(
            f"first cannot be {first} for this field", hint="it is an index into a list, text or object, from 0"
        )
    low, high = 0, len(_LEVELS) - 1  # binary search; the last level always fits
    while low < high:
        middle = (low + high) // 2
        if len(_render(value, field, first, _LEVELS[middle]).encode()) <= MAX_BYTES:
            high = middle
        else:
            low = middle + 1
    return _render(value, field, first, _LEVELS[high])


def _render(value: Any, field: str, first: int, limits: _SizeLimits) -> str:
    notes: dict[str, dict[str, Any]] = {}
    answer: dict[str, Any] = {"answer": _shorten(value, field, first, limits, limits.items, notes)}
    if notes:
        listed = [*notes.values()]
        answer["left_out"] = listed[:MAX_NOTES]
        if len(listed) > MAX_NOTES:
            answer["left_out_elsewhere"] = len(listed) - MAX_NOTES
        answer["to_see_more"] = TO_SEE_MORE
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":"))


def _shorten(
    value: Any, field: str, first: int, limits: _SizeLimits, items: int, notes: dict[str, dict[str, Any]]
) -> Any:
    if not isinstance(value, (list, str, dict)):
        return value
    max_shown = items if isinstance(value, list) else limits.characters if isinstance(value, str) else limits.keys
    shown = max(min(len(value) - first, max_shown), 0)
    if shown < len(value):
        _note(notes, field, {"first": first, "shown": shown, "of": len(value)})
    part = slice(first, first + shown)
    if isinstance(value, str):
        return value[part]
    if isinstance(value, list):
        inner = min(items, max(items // 4, MIN_INNER_ITEMS))
        return [_shorten(each, f"{field}/*", 0, limits, inner, notes) for each in value[part]]
    return {
        key: _shorten(each, f"{field}/{_escape(key)}", 0, limits, items, notes)
        for key, each in [*value.items()][part]
    }


def _note(notes: dict[str, dict[str, Any]], field: str, cut: dict[str, Any]) -> None:
    """Add one note for all items of a list, with `*` for their index and the size of the longest."""
    known = notes.get(field)
    if known is None or cut["of"] > known["of"]:
        notes[field] = {"field": shorten_middle(field, 100), **cut}


def _resolve(value: Any, field: str) -> Any:
    if field and not field.startswith("/"):
        raise UsageError(f"{_quote(field)} is not a field", hint='a JSON Pointer such as "/rows/3", or "" for all')
    for token in field.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdecimal() and int(key[:9]) < len(value):
            value = value[int(key[:9])]
        else:
            raise NotFoundError(f"there is no field {_quote(field)}", hint=_hint(value, key))
    return value


def _hint(value: Any, key: str) -> str:
    if isinstance(value, Mapping):
        return f"instead of {_quote(key)}: {shorten_middle(', '.join(value), 500)}"
    if isinstance(value, list):
        return f"instead of {_quote(key)}: an index below {len(value)}"
    return f"there is nothing below the value before {_quote(key)}"


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _quote(text: str) -> str:
    return repr(shorten_middle(text, 100))
