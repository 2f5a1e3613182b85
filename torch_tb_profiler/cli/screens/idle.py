"""Idle time on a terminal: causes, and below each what the device waited for."""

from __future__ import annotations

from typing import Any

from torch_tb_profiler.base.format import format_duration, format_ratio
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
from torch_tb_profiler.views._shared.wording import CAUSE_TITLES

_SUBMITTED, _UNKNOWN = "work already submitted", "launch not recorded"

_NO_HOST_DELAY = {
    "launch_latency": _SUBMITTED,
    "kernel_gap": _SUBMITTED,
    "graph_gap": _SUBMITTED,
    "waits_for_stream": _SUBMITTED,
    "device_wait": _SUBMITTED,
    "unlinked": _UNKNOWN,
    "before_recording": _SUBMITTED,
    "tail": "no further work",
}
_NOT_RECORDED = {
    "cause": "nothing recorded",
    "operator": "outside operators",
    "module": "outside modules",
    "frame": "no source line recorded",
}


def lay_out(payload: dict[str, Any]) -> Screen:
    """Return the screen of `IdlePayload`; times are per step."""
    steps, total, idle = max(payload["counted"], 1), payload["duration_ns"], payload["idle_ns"]
    per_step = f" per {payload['step_noun']}" if payload["steps_recorded"] else ""
    columns = [
        Column("title", "Cause, then subject", "text", full="full"),
        Column("time_ns", f"Time{per_step}", total=idle / steps),
        Column("gaps", "Gaps", "count"),
        Column("median_ns", "Median"),
        Column("drained_by", "Queue drained by", "text"),
        Column("gain_ns", "Saves up to", rounding="up"),
        Column("event", "Event", "number", hidden=True),
    ]

    def part(label: str, name: str) -> tuple[str, str | None]:
        ns = payload[name]
        return label, None if not ns else with_share(format_duration(ns / steps), ns, total)

    return Screen(
        sentences_of(payload, "headline", "explanation"),
        facts_of(
            ("Compute", part("", "compute_ns")[1]),
            part("Exposed communication", "exposed_communication_ns"),
            part("Exposed copies", "exposed_copy_ns"),
            part("Idle", "idle_ns"),
            ("Gaps", f"{payload['gaps']:,}"),
        ),
        [Table(columns, _cause_rows(payload, steps), "row")],
        sentences_of(payload, "limits"),
        reasons_of(payload),
    )


def _cause_rows(payload: dict[str, Any], steps: int) -> list[Row]:
    """Return a row per cause, most time first, each followed by its subjects."""
    groups: dict[str, list[Row]] = {}
    for row in payload["causes"]:
        groups.setdefault(row["cause"], []).append(row)
    sums = {row["cause"]: row for row in payload["sums"]}
    rows: list[Row] = []
    for cause, below in sorted(groups.items(), key=lambda group: -sums[group[0]]["time_ns"]):
        title = CAUSE_TITLES.get(cause, cause)
        longest = max(below, key=lambda row: row["end_ns"] - row["begin_ns"])
        rows.append(
            {
                **sums[cause],
                "title": title,
                "full": title,
                "time_ns": sums[cause]["time_ns"] / steps,
                "median_ns": below[0]["median_ns"] if len(below) == 1 else None,
                "drained_by": _drained_by(below),
                "event": longest["event"],
            }
        )
        rows += [_subject_row(row, payload["by"], steps) for row in below]
    return rows


def _subject_row(row: Row, by: str, steps: int) -> Row:
    if row["others"]:
        short = full = f"{row['others']:,} more"
    else:
        short = row["short_subject"] or (
            _not_drained(row["cause"])
            if by == "emptied_by"
            else _NO_HOST_DELAY.get(row["cause"], _NOT_RECORDED[by])
        )
        full = row["subject"] or short
    return {
        **row,
        "title": f"  {short}",
        "full": f"  {full}",
        "time_ns": row["time_ns"] / steps,
        "median_ns": None if row["others"] else row["median_ns"],
        "drained_by": _drained_by([row]),
    }


def _not_drained(cause: str) -> str:
    """Return what stands for a call that drained the queue: only before a launch did the device catch up."""
    return "caught up" if cause == "launch_latency" else _NO_HOST_DELAY.get(cause, "caught up")


def _drained_by(rows: list[Row]) -> str:
    emptied, time = sum(row["emptied_ns"] for row in rows), sum(row["time_ns"] for row in rows)
    if emptied <= 0 or time <= 0:
        return _not_drained(rows[0]["cause"])
    callers = [row for row in rows if row["emptied_by"]]
    caller = max(callers, key=lambda row: row["emptied_ns"])["emptied_by"] if callers else "several calls"
    return f"{caller} {format_ratio(emptied / time)}"
