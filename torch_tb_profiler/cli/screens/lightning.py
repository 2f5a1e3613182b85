"""Lightning on a terminal: hooks, then modules."""

from __future__ import annotations

from typing import Any

from torch_tb_profiler.cli.screens.modules import module_reasons, module_tables
from torch_tb_profiler.cli.screens.screen import Column, Screen, Table, flat_rows, sentences_of


def lay_out(payload: dict[str, Any]) -> Screen:
    """Return the screen of `LightningPayload`."""
    hooks = payload["hooks"]
    device = payload["has_device"]
    columns = [
        Column("name", "Hook", "text"),
        Column("owner", "Owner", "text"),
        Column("calls", "Calls", "count"),
        Column("host_total_ns", "Host total", total=sum(row["host_total_ns"] for row in hooks)),
        Column("host_self_ns", "Host self"),
        Column("operators_ns", "Operators"),
        Column("host_mean_ns", "Mean call"),
        *([Column("device_total_ns", "Device total"), Column("device_self_ns", "Device self")] if device else []),
        Column("place", "Place", "number", hidden=True),
    ]
    tree, classes = module_tables(payload)
    return Screen(
        sentences_of(payload, "headline", "details"),
        tables=[
            Table(columns, flat_rows(hooks), "hook", "Hooks"),
            Table(tree.columns, tree.rows, tree.noun, "Modules"),
            classes,
        ],
        reasons=module_reasons(payload),
    )
