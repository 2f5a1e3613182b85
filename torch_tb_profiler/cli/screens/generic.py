"""The screen of any payload: its fields, named in words."""

from __future__ import annotations

from typing import Any

from torch_tb_profiler.api.tables import split_sentences, tables
from torch_tb_profiler.base.grammar import capitalize
from torch_tb_profiler.cli.screens.screen import Column, Kind, Row, Screen, Table, format_value, reasons_of

_UNITS: dict[str, Kind] = {
    "ns": "duration",
    "bytes": "bytes",
    "ratio": "ratio",
    "share": "ratio",
    "utilization": "ratio",
    "efficiency": "ratio",
    "bandwidth": "rate",
}
"""Last word of a field's name -> the kind of its values."""

_UNSPOKEN = ("ns", "bytes", "ratio")
"""Units at the end of a name that its values show."""

_WORDS = {"ns": "time", "tc": "TC", "mfu": "MFU", "hfu": "HFU", "id": "id", "cpu": "CPU", "sm": "SM"}

_INTERNAL = ("event", "place", "trace_start_ns", "base_ns")
"""Fields that other views take as a parameter, or that only the page needs."""

_SHORT = "short_"
"""Prefix of the field with the short name of another field."""


def lay_out(payload: dict[str, Any], rows: str = "rows") -> Screen:
    """Return the screen of a payload; the table `rows` comes first."""
    lines, others = split_sentences(payload)
    facts = [
        (title_of(key), format_value(Column(key, "", kind_of(key, [value])), value))
        for key, value in others.items()
        if isinstance(value, (str, int, float)) and value != "" and key not in _INTERNAL
    ]
    found = {name: each for name, each in tables(payload, rows).items() if name != "reasons"}
    return Screen(
        lines,
        facts,
        [table_of(each, title_of(name) if len(found) > 1 else "") for name, each in found.items()],
        reasons=reasons_of(payload),
    )


def table_of(rows: list[Row], title: str = "") -> Table:
    """Return a table of rows with a column per field."""
    return Table(_columns(rows), rows, title=title)


def _columns(rows: list[Row]) -> list[Column]:
    keys = list(dict.fromkeys(key for row in rows for key in row))
    columns = []
    for key in keys:
        if key.removeprefix(_SHORT) in keys and key.startswith(_SHORT):
            continue
        short = _SHORT + key
        columns.append(
            Column(
                short if short in keys else key,
                title_of(key),
                kind_of(key, [row.get(key) for row in rows]),
                full=key if short in keys else "",
                hidden=key in _INTERNAL,
            )
        )
    return columns


def kind_of(key: str, values: list[Any]) -> Kind:
    """Return the kind of a field from the end of its name, and from its values."""
    known = [value for value in values if value is not None]
    if any(isinstance(value, (str, list)) for value in known):
        return "text"
    if any(isinstance(value, bool) for value in known):
        return "flag"
    kind = _UNITS.get(key.rsplit(".", 1)[-1].rsplit("_", 1)[-1])
    if kind is None and "categories." in key:
        return "duration"
    return kind or ("count" if all(isinstance(value, int) for value in known) else "number")


def title_of(key: str) -> str:
    """Return a field's name in words: "Host self" for `host_self_ns`, "Speed bound" for `speed.bound`."""
    words = key.replace(".", "_").split("_")
    if len(words) > 1 and words[-1] in _UNSPOKEN:
        words = words[:-1]
    return capitalize(" ".join(_WORDS.get(word, word) for word in words))
