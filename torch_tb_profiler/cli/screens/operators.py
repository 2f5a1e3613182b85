"""Operators on a terminal."""

from __future__ import annotations

from typing import Any

from torch_tb_profiler.base.format import format_duration
from torch_tb_profiler.cli.screens.screen import (
    Column,
    Screen,
    Table,
    facts_of,
    flat_rows,
    reasons_of,
    sentences_of,
    speed_columns,
)

_RATES = ("flops_per_s", "bytes_per_s")


def lay_out(payload: dict[str, Any]) -> Screen:
    """Return the screen of `OperatorsPayload`."""
    totals = payload["totals"]
    device = totals["device_self_ns"] is not None
    most_host = max((row["host_self_ns"] for row in payload["rows"]), default=0)
    columns = [
        Column("name", "Operator", "text"),
        *_group_columns(payload["group_by"]),
        Column("calls", "Calls", "count"),
        Column("device_self_ns", "Device self", total=totals["device_self_ns"]),
        Column("device_total_ns", "Device total"),
        # One column in percent is enough: two bases in one row would be a riddle.
        Column(
            "host_self_ns",
            "Host self",
            **({"largest": most_host} if device else {"total": totals["host_self_ns"]}),
        ),
        Column("host_total_ns", "Host total"),
        Column("host_mean_ns", "Host mean", hidden=device),
        Column("tc_eligible", "TC eligible", "flag", hidden=True),
        Column("tc_self_ratio", "TC", "ratio"),
        Column("tc_self_unknown", "TC unknown", "ratio", hidden=True),
        Column("tc_total_ratio", "TC total", "ratio", hidden=True),
        *speed_columns(hidden=_RATES),
        Column("event", "Event", "number", hidden=True),
    ]
    replayed = payload["replayed"]
    replayed_ns = sum(row["ns"] for row in replayed)
    # Only graphs ran: no operator was called, which is no finding.
    of_calls = (
        ("Calls", f"{totals['calls']:,}"),
        ("Host self", format_duration(totals["host_self_ns"])),
        ("Device self", format_duration(totals["device_self_ns"])),
    )
    return Screen(
        sentences_of(payload, "headline"),
        facts_of(
            *(of_calls if payload["rows"] or not replayed else ()),
            ("Replayed by graphs", format_duration(replayed_ns) if replayed else None),
        ),
        [
            Table(columns, flat_rows(payload["rows"]), "operator"),
            Table(
                _replayed_columns(replayed_ns),
                [{**row, "lines": row["lines"] or None} for row in replayed],
                "row",
                "Replayed by graphs",
            ),
        ],
        reasons=reasons_of(payload),
    )


def _replayed_columns(total: int) -> list[Column]:
    """Return the columns of what graphs replayed; `total` is all its time in ns."""
    return [
        Column("operator", "Replayed operator", "text"),
        Column("module", "Module", "text"),
        Column("lines", "Line", "text"),
        Column("kernels", "Kernels", "count"),
        Column("ns", "Total", total=total),
        Column("reason", "Why unknown", "text"),
        Column("how", "Known by", "text", hidden=True),
        Column("event", "Event", "number", hidden=True),
    ]


def _group_columns(by: str) -> list[Column]:
    """Return the columns that tell apart the rows of an operator."""
    shapes = Column("input_shape", "Input shapes", "text")
    columns = {
        "shape": [shapes],
        "signature": [
            shapes,
            Column("input_types", "Types", "text"),
            Column("input_strides", "Strides", "text", hidden=True),
        ],
        "module": [Column("module", "Module", "text")],
        "annotation": [Column("annotation", "Annotation", "text")],
    }
    return columns.get(by, [])
