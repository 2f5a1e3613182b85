"""What a notebook shows of an object: HTML without a script or a request, in the colors of what is around it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from torch_tb_profiler.base.format import format_cell, replace_unprintable, shorten_middle

MAX_ROWS = 20

MAX_CELL_LENGTH = 80
"""Of a name; the whole one is its tooltip."""

# Text keeps the color that the notebook gives it, light or dark; lines and bars are translucent.
_LINE = "1px solid rgba(128,128,128,.35)"
_BAR = "rgba(80,140,230,.3)"
# What notebooks would take for formulas are names with a dollar sign.
_PLAIN = "tex2jax_ignore mathjax_ignore"


def render_block(title: str, paragraphs: Iterable[str], *tables: str) -> str:
    """A title, sentences, tables."""
    lines = "".join(f'<p style="margin:.2em 0">{_text(sentence)}</p>' for sentence in paragraphs)
    return (
        f'<div class="{_PLAIN}"><p style="margin:.2em 0"><b>{_text(title)}</b></p>{lines}{"".join(tables)}</div>'
    )


def render_table(title: str, rows: Sequence[Mapping[str, Any]], count: int | None = None) -> str:
    """The first rows of a table with `count` of them, times with a bar as long as they are; "" without any.

    The keys of the rows say what their values are: `_ns` and `_bytes` get units.
    """
    if not rows:
        return ""
    shown = rows[:MAX_ROWS]
    names = list(dict.fromkeys(name for row in shown for name in row))
    head = "".join(f'<th style="text-align:left;padding:2px 8px">{_text(name)}</th>' for name in names)
    longest = {name: max((_length(name, row) for row in shown), default=0.0) for name in names}
    body = "".join(
        f'<tr style="border-top:{_LINE}">{"".join(_cell(name, row, longest[name]) for name in names)}</tr>'
        for row in shown
    )
    number = len(rows) if count is None else count
    rest = f" ({len(shown)} of {number:,} rows)" if number > len(shown) else ""
    return (
        f'<p style="margin:.6em 0 .2em">{_text(title)}{rest}</p><div style="overflow-x:auto">'
        f'<table style="border-collapse:collapse"><tr>{head}</tr>{body}</table></div>'
    )


def _cell(name: str, row: Mapping[str, Any], longest: float) -> str:
    value = row.get(name)
    style = "padding:2px 8px;white-space:nowrap"
    if isinstance(value, (list, dict)):
        value = str(value)
    if not isinstance(value, str):
        style += ";text-align:right"
    if length := _length(name, row):
        style += f";background:linear-gradient(90deg,{_BAR} {100 * length / longest:.1f}%,transparent 0)"
    text = format_cell(name, value)
    short = shorten_middle(text, MAX_CELL_LENGTH)
    whole = "" if short == text else f' title="{escape(text)}"'
    return f'<td style="{style}"{whole}>{escape(short)}</td>'


def _length(name: str, row: Mapping[str, Any]) -> float:
    """Of the bar behind a value: durations have one, not points in time."""
    value = row.get(name)
    spent = name.endswith("_ns") and not name.endswith(("start_ns", "begin_ns", "end_ns"))
    return float(value) if spent and isinstance(value, (int, float)) and 0 < value < float("inf") else 0.0


def _text(text: str) -> str:
    return escape(replace_unprintable(text))
