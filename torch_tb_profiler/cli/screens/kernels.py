"""Kernels on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch_tb_profiler.base.format import format_duration, format_ratio
from torch_tb_profiler.cli.screens.screen import (
    Column,
    Row,
    Screen,
    Table,
    facts_of,
    flat_rows,
    reasons_of,
    sentences_of,
    speed_columns,
    with_share,
)

_HIDDEN_SPEED = ("flops_per_s", "bytes_per_s", "bound")

_LAUNCH = (
    Column("operator", "Operator", "text"),
    Column("grid", "Grid", "text"),
    Column("block", "Block", "text"),
    Column("registers", "Registers", "count"),
    Column("shared_memory", "Shared", "bytes"),
)
"""What tells apart the launches of a kernel."""


def lay_out(payload: dict[str, Any]) -> Screen:
    """Return the screen of `KernelsPayload`."""
    by_launch, by_family = payload["group_by"] == "launch", payload["group_by"] == "family"
    total, cores = payload["total_ns"], payload["tensor_cores"]
    columns = [
        Column("short_name", "Family" if by_family else "Kernel", "text", full="name"),
        *([] if by_family else [Column("family", "Family", "text")]),
        *(_LAUNCH if by_launch else ()),
        Column("calls", "Calls", "count"),
        Column("total_ns", "Total", total=total),
        *([] if "origin" in payload["reasons"] else [Column("origin", "Origin", "text")]),
        Column("mean_ns", "Mean"),
        Column("median_ns", "Median"),
        Column("p95_ns", "p95"),
        Column("max_ns", "Max"),
        Column("min_ns", "Min", hidden=True),
        Column("mean_blocks_per_sm", "Blocks/SM", "number"),
        Column("mean_occupancy", "Occupancy", "ratio"),
        Column("tc_used", "TC", "flag"),
        Column("limiter", "Limited by", "text", hidden=not by_launch),
        *speed_columns(hidden=_HIDDEN_SPEED),
        Column("event", "Event", "number", hidden=True),
    ]
    moves = payload["memory_operations"]
    copies = [
        Column("name", "Copy or memset", "text"),
        Column("calls", "Calls", "count"),
        Column("bytes", "Bytes", "bytes"),
        Column("total_ns", "Total", total=sum(row["total_ns"] for row in moves)),
        Column("mean_ns", "Mean"),
        Column("max_ns", "Max"),
        Column("bandwidth", "Bandwidth", "rate"),
    ]
    return Screen(
        sentences_of(payload, "headline"),
        facts_of(
            ("Kernel time", format_duration(total)),
            ("Launches", f"{payload['calls']:,}"),
            ("On Tensor Cores", _tensor_core_time(cores, total)),
        ),
        [
            Table(
                columns,
                [{**row, "origin": _origin_text(row)} for row in flat_rows(payload["rows"])],
                "family" if by_family else "kernel",
            ),
            Table(copies, flat_rows(moves), "kind", "Copies and memsets"),
        ],
        reasons=reasons_of(payload),
    )


def _tensor_core_time(cores: Mapping[str, int], total: int) -> str | None:
    """Return the time on Tensor Cores: a lower bound where some names don't show it, None where none does."""
    used = cores["used_ns"]
    if not cores["unknown_ns"]:
        return with_share(format_duration(used), used, total)
    return f"at least {format_duration(used, 'down')} ({format_ratio(used / total, 'down')})" if used else None


def _origin_text(row: Row) -> str | None:
    """Return where all launches of a row come from, as the page writes it; None if that is unknown."""
    parts = [row["origin_operator"], row["origin_line"] or row["origin_module"]]
    return " · ".join(part for part in parts if part is not None) or None
