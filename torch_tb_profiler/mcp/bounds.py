"""An answer as JSON text that fits into a conversation, says what it leaves out, and how to get that."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from torch_tb_profiler.base.errors import NotFoundError, UsageError
from torch_tb_profiler.base.format import shorten_middle

MAX_BYTES = 20_000
"""Of the UTF-8 of an answer."""

MOST_NOTES = 20

SHORT = 8
"""A list in a list that is not longer is shortened no more than the one around it."""

HOW = "ask the same tool with one of these as `field`, and with `first` for what follows"


class _Level(NamedTuple):
    """items of a list (of a list in it a quarter of them but for `SHORT`), letters of a text, keys of an object"""

    items: int
    letters: int
    keys: int


_LEVELS = (
    *(_Level(max(round(4096 * 0.8**power), 1), 400 if power < 34 else 100, 100) for power in range(38)),
    _Level(0, 60, 100),
    _Level(0, 40, 20),
    _Level(0, 20, 4),
    _Level(0, 0, 0),
)


def as_text(payload: Any, field: str = "", first: int = 0) -> str:
    """A JSON object of at most `MAX_BYTES`: the value of a field as `answer`, with what is missing as `left_out`.

    field  a JSON Pointer (RFC 6901): "/rows" or "/rows/3/name"; "" is all
    first  number of the item (letter, key) of this field that the answer begins with
    Raises NotFoundError for an unknown field, UsageError for a `first` that cannot be.
    """
    whole = _at(payload, field)
    if first < 0 or (first and not isinstance(whole, (list, str, dict))):
        raise UsageError(
            f"first cannot be {first} of this field", hint="a list, text or object has parts, from 0 on"
        )
    low, high = 0, len(_LEVELS) - 1  # by halving; the last level always fits
    while low < high:
        middle = (low + high) // 2
        if len(_text(whole, field, first, _LEVELS[middle]).encode()) <= MAX_BYTES:
            high = middle
        else:
            low = middle + 1
    return _text(whole, field, first, _LEVELS[high])


def _text(whole: Any, field: str, first: int, level: _Level) -> str:
    notes: dict[str, dict[str, Any]] = {}
    answer: dict[str, Any] = {"answer": _shortened(whole, field, first, level, level.items, notes)}
    if notes:
        listed = [*notes.values()]
        answer["left_out"] = listed[:MOST_NOTES]
        if len(listed) > MOST_NOTES:
            answer["left_out_elsewhere"] = len(listed) - MOST_NOTES
        answer["to_see_more"] = HOW
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":"))


def _shortened(
    value: Any, field: str, first: int, level: _Level, items: int, notes: dict[str, dict[str, Any]]
) -> Any:
    if not isinstance(value, (list, str, dict)):
        return value
    most = items if isinstance(value, list) else level.letters if isinstance(value, str) else level.keys
    shown = max(min(len(value) - first, most), 0)
    if shown < len(value):
        _note(notes, field, {"first": first, "shown": shown, "of": len(value)})
    part = slice(first, first + shown)
    if isinstance(value, str):
        return value[part]
    if isinstance(value, list):
        inner = min(items, max(items // 4, SHORT))
        return [_shortened(each, f"{field}/*", 0, level, inner, notes) for each in value[part]]
    return {
        key: _shortened(each, f"{field}/{_escaped(key)}", 0, level, items, notes)
        for key, each in [*value.items()][part]
    }


def _note(notes: dict[str, dict[str, Any]], field: str, cut: dict[str, Any]) -> None:
    """One for all items of a list: `*` stands for their numbers, and the longest of them is told."""
    known = notes.get(field)
    if known is None or cut["of"] > known["of"]:
        notes[field] = {"field": shorten_middle(field, 100), **cut}


def _at(value: Any, field: str) -> Any:
    if field and not field.startswith("/"):
        raise UsageError(f"{_shown(field)} is no field", hint='a JSON Pointer such as "/rows/3", or "" for all')
    for word in field.split("/")[1:]:
        key = word.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdecimal() and int(key[:9]) < len(value):
            value = value[int(key[:9])]
        else:
            raise NotFoundError(f"there is no field {_shown(field)}", hint=_hint(value, key))
    return value


def _hint(value: Any, key: str) -> str:
    if isinstance(value, Mapping):
        return f"instead of {_shown(key)}: {shorten_middle(', '.join(value), 500)}"
    if isinstance(value, list):
        return f"instead of {_shown(key)}: a number below {len(value)}"
    return f"nothing lies below the value before {_shown(key)}"


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _shown(text: str) -> str:
    return repr(shorten_middle(text, 100))
