"""The Trace tab on a terminal: its tracks and steps, as slices need a canvas."""

from __future__ import annotations

from typing import Any

from torch_tb_profiler.base.format import format_duration
from torch_tb_profiler.base.grammar import capitalize
from torch_tb_profiler.cli.screens.screen import (
    Column,
    Row,
    Screen,
    Table,
    facts_of,
    flat_rows,
    reasons_of,
    sentences_of,
)

_PARTS = (("python_slices", "Python"), ("instants", "Instants"), ("samples", "Samples"))
"""What only some traces have, with the titles of its columns."""


def lay_out(payload: dict[str, Any]) -> Screen:
    """Return the screen of `TracePayload`."""
    counts, groups = payload["counts"], payload["groups"]
    shown = [track for track in payload["tracks"] if track["slices"] or track["instants"] or track["samples"]]
    rows: list[Row] = [
        {**track, "group_name": "" if track["group"] is None else groups[track["group"]]["name"]}
        for track in shown
    ]
    tracks = [
        Column("name", "Track", "text"),
        Column("slices", "Slices", "count", total=sum(row["slices"] for row in rows)),
        Column("group_name", "Process or device", "text"),
        Column("kind", "Kind", "text"),
        Column("role", "Role", "text"),
        *(Column(key, title, "count") for key, title in _PARTS if any(row[key] for row in rows)),
        Column("thread", "Thread", "text"),
        Column("id", "Id", "number", hidden=True),
    ]
    noun = capitalize(payload["step_noun"])
    steps = [Column("name", noun, "text"), Column("start_ns", "Start"), Column("duration_ns", "Duration")]
    return Screen(
        sentences_of(payload, "headline"),
        facts_of(
            ("Recorded", format_duration(payload["end_ns"] - payload["begin_ns"])),
            ("Slices", f"{counts['slices']:,}"),
            ("Flows", f"{counts['flows']:,}" if counts["flows"] else None),
            ("Outside the window", f"{counts['outside']:,}" if counts["outside"] else None),
            ("Without a time", f"{counts['untimed']:,}" if counts["untimed"] else None),
        ),
        [
            Table(tracks, rows, "track", "Tracks"),
            Table(steps, flat_rows(payload["steps"]) if payload["steps_recorded"] else [], "step", f"{noun}s"),
        ],
        reasons=reasons_of(payload),
    )
