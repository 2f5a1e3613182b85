"""The memory snapshots of all ranks on a terminal, a row per rank."""

from __future__ import annotations

from typing import Any

from torch_tb_profiler.base.grammar import capitalize
from torch_tb_profiler.cli.screens.screen import Column, Screen, Table, flat_rows, reasons_of, sentences_of


def lay_out(payload: dict[str, Any]) -> Screen:
    """Return the screen of `SnapshotRanks`."""
    columns = [
        Column("worker", "Rank", "text"),
        Column("device", "GPU", "count"),
        Column("peak_bytes", "Peak", "bytes"),
        Column("difference_bytes", "Difference", "bytes", signed=True),
        Column("live_bytes", "In use at the end", "bytes"),
        Column("reserved_bytes", "Reserved", "bytes"),
        Column("out_of_memory", "Out of memory", "count"),
        Column("leaked_bytes", "Likely leaked", "bytes"),
        *(Column(f"categories.{name}", capitalize(name), "bytes") for name in payload["categories"]),
    ]
    return Screen(
        sentences_of(payload, "headline"),
        tables=[Table(columns, flat_rows(payload["rows"]), "rank")],
        reasons=reasons_of(payload),
    )
