"""Overlap on a terminal: the average iteration of each rank."""

from __future__ import annotations

from typing import Any

from torch_tb_profiler.cli.screens.screen import Column, Screen, Table, flat_rows, sentences_of


def lay_out(payload: dict[str, Any]) -> Screen:
    """Return the screen of `OverlapPayload`."""
    columns = [
        Column("worker", "Rank", "text"),
        Column("iterations", "Iterations", "count"),
        Column("total_ns", "Iteration"),
        Column("compute_ns", "Computation"),
        Column("allreduce_ns", "All-reduce"),
        Column("reducescatter_ns", "Reduce-scatter"),
        Column("allgather_ns", "All-gather"),
        Column("overlap_ns", "Overlap"),
        Column("exposed_ns", "Exposed"),
        Column("idle_ns", "Idle"),
        Column("overlap_ratio", "Overlap / computation", "ratio"),
        Column("hidden_ratio", "Overlapped communication", "ratio", total=1),
        Column("allreduce_exposed_ns", "Exposed all-reduce", hidden=True),
        Column("reducescatter_exposed_ns", "Exposed reduce-scatter", hidden=True),
        Column("allgather_exposed_ns", "Exposed all-gather", hidden=True),
        Column("reason", "Reason", "text"),
    ]
    return Screen(
        sentences_of(payload, "headline", "details", "reading", "recorded_headline"),
        tables=[Table(columns, flat_rows(payload["ranks"]), "rank")],
    )
