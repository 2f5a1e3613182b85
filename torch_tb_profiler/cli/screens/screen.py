"""What a screen consists of, and the parts that several views share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from torch_tb_profiler.base.format import (
    UNKNOWN_TEXT,
    Rounding,
    format_bytes,
    format_duration,
    format_number,
    format_rate,
    format_ratio,
    replace_unprintable,
)

Kind = Literal["text", "count", "number", "duration", "bytes", "ratio", "rate", "probability", "flag"]
"""Kinds of values: durations in ns, rates in bytes per second, ratios and probabilities 0..1."""

Row = dict[str, Any]

UNIT_GIGA, UNIT_TERA = 1e9, 1e12
"""What a number is divided by where its title names GB/s, GFLOP or TFLOP/s."""

MIN_PROBABILITY = 0.001
"""A probability below this is shown as being below it."""


@dataclass(frozen=True)
class Column:
    """A column of a table.

    key     the field of a row that it shows; nested fields are `outer.inner`
    title   as on the page
    total   what the value is a share of: drawn as a bar and in percent
    largest the largest value where they are no parts of a whole: drawn as a bar alone
    unit    what a number is divided by before it is shown
    rounding  of a bound, to the side on which it holds
    bound   the field that says whether the value of a row is the most, where not all are; else it is the least
    limit   the field that says whether the value of a row is the most; else it is exact
    full    the field with the full name that `--wide` shows
    signed  whether a plus is written before what is above 0
    hidden  only `--wide` and `--columns` show it
    """

    key: str
    title: str
    kind: Kind = "duration"
    total: float | None = None
    largest: float | None = None
    unit: float = 1
    rounding: Rounding = "half"
    bound: str = ""
    limit: str = ""
    full: str = ""
    signed: bool = False
    hidden: bool = False

    @property
    def is_text(self) -> bool:
        return self.kind == "text"


@dataclass(frozen=True)
class Table:
    """A table; `noun` is what a row is, `detail` the field with a sentence that is shown below its row."""

    columns: Sequence[Column]
    rows: Sequence[Row]
    noun: str = "row"
    title: str = ""
    detail: str = ""


@dataclass(frozen=True)
class Screen:
    """A view on a terminal: sentences (the finding first), facts (label, value), tables, and its limits.

    reasons  field -> why it is unknown, for the columns that are left out because of it
    """

    sentences: Sequence[str]
    facts: Sequence[tuple[str, str]] = ()
    tables: Sequence[Table] = ()
    notes: Sequence[str] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)


def format_value(column: Column, value: Any) -> str:
    """Return a value of a column as text: "–" where it is unknown, empty where it doesn't apply."""
    if value is None:
        return UNKNOWN_TEXT
    if column.signed and value > 0:
        return f"+{format_value(replace(column, signed=False), value)}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return replace_unprintable(value)
    if isinstance(value, list):
        return replace_unprintable(", ".join(map(_item_text, value)))
    if column.kind == "duration":
        return format_duration(value, column.rounding)
    if column.kind == "bytes":
        return format_bytes(value)
    if column.kind == "ratio":
        return format_ratio(value)
    if column.kind == "probability":
        return f"{value:.3f}" if value >= MIN_PROBABILITY else f"<{MIN_PROBABILITY}"
    if column.kind == "rate":
        return format_rate(value)
    if column.kind == "count" and value == int(value):
        return f"{int(value):,}"
    return format_number(value / column.unit)


def _item_text(item: Any) -> str:
    """Return an item of a list as text: a frame of a stack has one."""
    return str(item["text"]) if isinstance(item, dict) and "text" in item else str(item)


def facts_of(*facts: tuple[str, str | None]) -> list[tuple[str, str]]:
    """Return the facts that are known: those with a value that isn't None, "" or a dash."""
    return [(label, value) for label, value in facts if value and value != UNKNOWN_TEXT]


def with_share(text: str, part: float | None, whole: float | None) -> str:
    """Return `text` with the share that `part` is of `whole`: "551 ms (45.5%)"."""
    return f"{text} ({format_ratio(part / whole)})" if part is not None and whole else text


def sentences_of(payload: Mapping[str, Any], *names: str) -> list[str]:
    """Return the sentences of these fields as plain text, each once."""
    found: dict[str, None] = {}
    for name in names:
        value = payload.get(name) or []
        for each in value if value and isinstance(value[0], list) else [value]:
            if each:
                found[payload_text(each)] = None
    return list(found)


def reasons_of(payload: Mapping[str, Any]) -> dict[str, str]:
    """Return field -> why it is unknown, as plain text; nothing where `reasons` are those of something else."""
    reasons = payload.get("reasons")
    if not isinstance(reasons, Mapping):
        return {}
    return {name: text if isinstance(text, str) else payload_text(text) for name, text in reasons.items()}


def payload_text(text: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of a `views._shared.text.Text` as JSON."""
    return "".join(phrase["text"] for phrase in text)


def flat_rows(rows: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Return rows with their nested fields as `outer.inner`; a tree's in order, names indented by depth."""
    from torch_tb_profiler.api.tables import flatten

    flat: list[Row] = []

    def add(rows: Iterable[Mapping[str, Any]], depth: int) -> None:
        for row in rows:
            cells = flatten({key: value for key, value in row.items() if key != "children"})
            flat.append({**cells, "name": "  " * depth + str(cells["name"])} if depth else cells)
            add(row.get("children") or (), depth + 1)

    add(rows, 0)
    return flat


def speed_columns(prefix: str = "speed.", hidden: Sequence[str] = ()) -> list[Column]:
    """Return the columns of achieved speed, of which those in `hidden` start hidden."""
    columns = (
        Column("flops_per_s", "TFLOP/s", "number", unit=UNIT_TERA),
        Column("bytes_per_s", "GB/s", "number", unit=UNIT_GIGA),
        Column("efficiency", "Share of roofline", "ratio", total=1),
        Column("bound", "Bound by", "text"),
    )
    return [
        Column(
            prefix + each.key,
            each.title,
            each.kind,
            total=each.total,
            unit=each.unit,
            hidden=each.key in hidden,
        )
        for each in columns
    ]
