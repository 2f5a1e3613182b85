"""HTML that a notebook shows for an object: without scripts or requests, in the notebook's own colors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from torch_tb_profiler.base.format import format_cell, replace_unprintable, shorten_middle

MAX_ROWS = 20

MAX_CELL_LENGTH = 80
"""Maximum length of a table cell in characters; the tooltip has the full text."""

# Text has the notebook's color, light or dark; lines and bars are translucent.
_LINE = "1px solid rgba(128,128,128,.35)"
_BAR = "rgba(80,140,230,.3)"
# Notebooks would take names with dollar signs for formulas.
_NO_MATH = "tex2jax_ignore mathjax_ignore"


def render_block(title: str, paragraphs: Iterable[str], *tables: str) -> str:
    """Return HTML of a title, sentences, and tables."""
    lines = "".join(f'<p style="margin:.2em 0">{_text(sentence)}</p>' for sentence in paragraphs)
    return (
        f'<div class="{_NO_MATH}"><p style="margin:.2em 0"><b>{_text(title)}</b></p>{lines}{"".join(tables)}</div>'
    )


def render_table(title: str, rows: Sequence[Mapping[str, Any]], count: int | None = None) -> str:
    """Return HTML of the first rows of a table, with a bar behind each duration; "" without rows.

    The keys of the rows determine the units of their values (`_ns`, `_bytes`).

    count  number of all rows, if `rows` are only some of them
    """
    if not rows:
        return ""
    shown = rows[:MAX_ROWS]
    names = list(dict.fromkeys(name for row in shown for name in row))
    head = "".join(f'<th style="text-align:left;padding:2px 8px">{_text(name)}</th>' for name in names)
    longest = {name: max((_bar_length(name, row) for row in shown), default=0.0) for name in names}
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
    if length := _bar_length(name, row):
        style += f";background:linear-gradient(90deg,{_BAR} {100 * length / longest:.1f}%,transparent 0)"
    text = format_cell(name, value)
    short = shorten_middle(text, MAX_CELL_LENGTH)
    tooltip = "" if short == text else f' title="{escape(text)}"'
    return f'<td style="{style}"{tooltip}>{escape(short)}</td>'


def _bar_length(name: str, row: Mapping[str, Any]) -> float:
    """Return the length of the bar behind a value: the duration in ns, else 0 (also for points in time)."""
    value = row.get(name)
    is_duration = name.endswith("_ns") and not name.endswith(("start_ns", "begin_ns", "end_ns"))
    return float(value) if is_duration and isinstance(value, (int, float)) and 0 < value < float("inf") else 0.0


def _text(text: str) -> str:
    return escape(replace_unprintable(text))
