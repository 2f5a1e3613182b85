"""Memory on a terminal: the devices, and what grows from step to step."""

from __future__ import annotations

from typing import Any

from torch_tb_profiler.cli.screens.screen import (
    Column,
    Screen,
    Table,
    facts_of,
    flat_rows,
    plain,
    reasons_of,
    sentences_of,
)


def lay_out(payload: dict[str, Any]) -> Screen:
    """Return the screen of `MemoryPayload`; the other memory views have its blocks and operators."""
    devices = [
        Column("name", "Device", "text"),
        Column("hardware", "Name", "text"),
        Column("capacity_bytes", "Capacity", "bytes"),
        Column("peak_allocated.bytes", "Peak allocated", "bytes"),
        Column("peak_reserved.bytes", "Peak reserved", "bytes"),
        Column("end_bytes", "At the end", "bytes"),
        Column("allocations", "Allocations", "count"),
        Column("unreleased", "Still live", "count"),
        Column("fragmentation.bytes", "Reserved unused", "bytes"),
    ]
    holders = [
        {**holder, "device": growth["device"]} for growth in payload["growth"] for holder in growth["holders"]
    ]
    grown = [
        Column("name", "Allocated by", "text"),
        Column("module", "Module", "text"),
        Column("growth_bytes", "Growth", "bytes", total=sum(row["growth_bytes"] for row in holders)),
        Column("blocks", "Blocks", "count"),
        Column("device", "Device", "text"),
    ]
    failures = [
        Column("operator", "Out of memory in", "text"),
        Column("device", "Device", "text"),
        Column("bytes", "Size", "bytes"),
        Column("allocated_bytes", "Allocated", "bytes"),
        Column("reserved_bytes", "Reserved", "bytes"),
    ]
    sentences = [*sentences_of(payload, "headline")]
    sentences += [plain(device["details"]) for device in payload["devices"]]
    sentences += [plain(growth["verdict"]) for growth in payload["growth"]]
    return Screen(
        list(dict.fromkeys(sentences)),
        facts_of(),
        [
            Table(devices, flat_rows(payload["devices"]), "device"),
            Table(failures, flat_rows(payload["out_of_memory"]), "failure"),
            Table(grown, holders, "row", "Growth"),
        ],
        reasons={name: text for name, text in reasons_of(payload).items() if name == "capacity_bytes"},
    )
