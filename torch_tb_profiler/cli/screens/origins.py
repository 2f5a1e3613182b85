"""Origins on a terminal."""

from __future__ import annotations

from typing import Any

from torch_tb_profiler.base.format import format_duration
from torch_tb_profiler.cli.screens.screen import Column, Screen, Table, facts_of, sentences_of, with_share


def lay_out(payload: dict[str, Any]) -> Screen:
    """Return the screen of `OriginsPayload`."""
    total = payload["kernel_ns"]
    kernels = [
        Column("short_name", "Kernel", "text", full="name"),
        # Kernels of one name have a row per origin: what they take comes first, where a terminal is narrow.
        Column("ns", "Total", total=total),
        Column("operator", "Operator", "text"),
        Column("module", "Module", "text"),
        Column("line", "Line", "text"),
        Column("how", "Known by", "text"),
        Column("kernels", "Calls", "count"),
        Column("reason", "Why unknown", "text"),
        Column("region", "Compiled region", "text", hidden=True),
        Column("shapes", "Input shapes", "text", hidden=True),
        Column("event", "Event", "number", hidden=True),
    ]
    reasons = [
        Column("reason", "Why unknown", "text"),
        Column("kernels", "Kernels", "count"),
        Column("ns", "Total", total=total),
    ]
    captures = [
        Column("source", "Capture", "text"),
        Column("size", "Batch size", "count"),
        Column("captures", "Captures", "count"),
        Column("launches", "Launches", "count"),
        Column("replays", "Replays explained", "count"),
    ]
    return Screen(
        sentences_of(payload, "headline", "details"),
        facts_of(
            ("Kernel time", format_duration(total)),
            *(
                (f"Known {what}", with_share(format_duration(ns), ns, total))
                for what, ns in payload["known_ns"].items()
            ),
        ),
        [
            Table(kernels, payload["rows"], "kernel"),
            Table(reasons, payload["reasons"], "reason", "Unknown"),
            Table(captures, payload["captures"], "capture", "Captures"),
        ],
    )
