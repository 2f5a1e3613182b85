"""Roofline on a terminal."""

from __future__ import annotations

from typing import Any

from torch_tb_profiler.base.format import format_number, format_ratio
from torch_tb_profiler.cli.screens.screen import (
    UNIT_GIGA,
    UNIT_TERA,
    Column,
    Screen,
    Table,
    facts_of,
    flat_rows,
    reasons_of,
    sentences_of,
    speed_columns,
)

_TITLES = {"kernel": "Kernel", "module": "Module", "family": "Kernel family"}


def lay_out(payload: dict[str, Any]) -> Screen:
    """Return the screen of `RooflinePayload`."""
    title = _TITLES.get(payload["group_by"], "Operator")
    columns = [
        Column("short_name", title, "text", full="name"),
        *([Column("input_shape", "Input shapes", "text")] if payload["group_by"] == "shape" else []),
        Column("calls", "Calls", "count"),
        Column("device_ns", "Device time", total=payload["device_ns"]),
        *speed_columns(""),
        Column("intensity", "FLOP/byte", "number"),
        Column("saved_ns", "Saving at the roofline"),
        Column("flops", "FLOPs", "count", hidden=True),
        Column("bytes", "Bytes", "bytes", hidden=True),
    ]
    peaks = [peak for device in payload["devices"] for peak in _peaks(device, payload["rows"])]
    return Screen(
        sentences_of(payload, "headline", "note"),
        facts_of(("Modeled", format_ratio(payload["coverage"])), *peaks, *_source(payload["rows"])),
        [Table(columns, flat_rows(payload["rows"]), title.lower())],
        reasons=reasons_of(payload),
    )


def _source(rows: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return what to say of work that was recorded when a graph was captured."""
    return (
        [("Work of graph replays", "from the inputs at capture")] if any(row["captured"] for row in rows) else []
    )


def _peaks(device: dict[str, Any], rows: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return the peaks of a device that the rows are compared with."""
    if not device["name"]:
        return []
    used = {(row["unit"], row["type"]) for row in rows}
    rates = [
        f"{type} {format_number(device[unit][type] / UNIT_TERA)} TFLOP/s"
        for unit in ("matrix", "vector")
        for type in device[unit]
        if (unit, type) in used
    ]
    memory = [f"memory {format_number(device['memory'] / UNIT_GIGA)} GB/s"] if device["memory"] else []
    return [(f"Peaks of {device['name']}", ", ".join([*rates, *memory]))]
