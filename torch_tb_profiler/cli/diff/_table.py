"""A diff as tables for a terminal."""

from __future__ import annotations

from typing import Any

from torch_tb_profiler.analyses.diff.changes import Change
from torch_tb_profiler.cli._print.table import format_table
from torch_tb_profiler.cli.diff._words import answer, operator_name, said, step_rows, verdict_word
from torch_tb_profiler.views.diff.gate import Check
from torch_tb_profiler.views.diff.payload import DiffOperator, DiffPayload


def table(diff: DiffPayload, gate: list[Check], width: int | None = None) -> str:
    """`width`: characters of a line; None for any number."""
    blocks = ["\n".join(answer(diff)) + "\n"]
    blocks += [
        f"by {waterfall.by}\n"
        + format_table(
            [
                {
                    waterfall.by: bar.name,
                    "before_ns": bar.base_ns,
                    "now_ns": bar.candidate_ns,
                    "delta_ns": bar.delta_ns,
                    "verdict": said(bar.verdict),
                }
                for bar in waterfall.bars
            ]
            + [
                {
                    waterfall.by: row.name,
                    "before_ns": row.before,
                    "now_ns": row.now,
                    "delta_ns": row.delta,
                    "verdict": row.verdict,
                }
                for row in step_rows(diff, waterfall)
            ],
            width,
        )
        for waterfall in diff.waterfalls
    ]
    parts = [{"part": part.short_name, "status": part.status, **_columns(part.host)} for part in diff.level.parts]
    operators = [
        {"operator": operator_name(row), "status": row.status, **_both(row)} for row in diff.level.operators
    ]
    kernels = [{"kernel": row.short_name, "status": row.status, **_columns(row.total)} for row in diff.kernels]
    memory = [
        {"device": row.device, "base_bytes": row.peak_allocated.base_bytes}
        | {"candidate_bytes": row.peak_allocated.candidate_bytes, "delta_bytes": row.peak_allocated.delta_bytes}
        for row in diff.memory
    ]
    tables: tuple[list[dict[str, Any]], ...] = (parts, operators, kernels, memory)
    titles = ("parts of the step, host", "operators, self", "kernels", "peak memory allocated")
    for title, rows in zip(titles, tables, strict=True):
        if rows:
            blocks.append(f"{title}\n{format_table(rows, width)}")
    if gate:
        blocks.append("".join(f"{verdict_word(check)}: {check.name}: {check.message}\n" for check in gate))
    return "\n".join(blocks)


def _columns(change: Change, prefix: str = "") -> dict[str, Any]:
    return {
        f"{prefix}before_ns": change.base_ns,
        f"{prefix}now_ns": change.candidate_ns,
        f"{prefix}delta_ns": change.delta_ns,
        f"{prefix}verdict": said(change.verdict),
    }


def _both(row: DiffOperator) -> dict[str, Any]:
    return (
        {"delta_calls": row.calls.delta_calls}
        | _columns(row.host_self, "host.")
        | _columns(row.device_self, "device.")
    )
