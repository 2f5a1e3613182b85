"""The critical path on a terminal: what it consists of, and what each target would save."""

from __future__ import annotations

from typing import Any

from torch_tb_profiler.base.format import format_duration
from torch_tb_profiler.cli.screens.screen import (
    Column,
    Row,
    Screen,
    Table,
    facts_of,
    reasons_of,
    sentences_of,
    with_share,
)

_PERCENTS = (25, 50, 100)
"""Reductions of a target whose savings have a column."""

_GROUPS = {"host": "Host", "device": "Device", "latency": "Latency"}


def lay_out(payload: dict[str, Any]) -> Screen:
    """Return the screen of `CriticalPathPayload`."""
    path = payload["path"]
    total = path["duration_ns"]
    groups = {
        title: sum(part["time_ns"] for part in path["categories"] if part["group"] == group)
        for group, title in _GROUPS.items()
    }
    parts = [Column("title", "Category", "text"), Column("time_ns", "On the path", total=total)]
    targets = [
        Column("title", "Target, including what it calls", "text"),
        Column("kind", "Kind", "text"),
        Column("calls", "Calls", "count"),
        Column("path_ns", "On the path", total=total),
        Column("slack_ns", "Slack"),
        *(Column(f"off_{percent}", f"{percent}% off") for percent in _PERCENTS),
        Column("target", "Target (--param)", "text", hidden=True),
        Column("event", "Event", "number", hidden=True),
    ]
    return Screen(
        sentences_of(payload, "headline", "explanation"),
        facts_of(
            *(
                (title, with_share(format_duration(time), time, total) if time else None)
                for title, time in groups.items()
            )
        ),
        [
            Table(targets, [_target_row(row, payload["percents"]) for row in payload["targets"]], "target"),
            Table(
                parts,
                sorted(path["categories"], key=lambda part: -part["time_ns"]),
                "category",
                "What the path consists of",
            ),
        ],
        sentences_of(payload, "limits"),
        {name: text for name, text in reasons_of(payload).items() if name != "explained"},
    )


def _target_row(row: Row, percents: list[int]) -> Row:
    saved: Row = {}
    if row["step_ns"]:
        times = dict(zip(percents, row["step_ns"], strict=True))
        saved = {f"off_{percent}": times[0] - times[percent] for percent in _PERCENTS if percent in times}
    calls = None if row["kind"] == "host" else row["calls"]
    return {**row, **saved, "kind": row["kind"].replace("_", " "), "calls": calls}
