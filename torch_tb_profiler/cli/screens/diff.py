"""Diff on a terminal: what the step's change consists of, and what changed most."""

from __future__ import annotations

from typing import Any

import msgspec

from torch_tb_profiler.base.threadsafe import threadsafe
from torch_tb_profiler.cli._diff_formats import step_rows, verdict_text
from torch_tb_profiler.cli.screens.overview import CATEGORIES
from torch_tb_profiler.cli.screens.screen import Column, Row, Screen, Table, flat_rows, sentences_of
from torch_tb_profiler.views.diff.payload import DiffPayload, DiffWaterfall

_STATUS = {"moved_in": "moved in", "moved_out": "moved out", "not_recorded": "not recorded", "matched": ""}


def lay_out(payload: dict[str, Any]) -> Screen:
    """Return the screen of `DiffPayload`; times are per step."""
    diff, level = msgspec.convert(payload, threadsafe(DiffPayload)), payload["level"]
    noun = payload["step_noun"]
    return Screen(
        sentences_of(payload, "headline", "explanation", "notes"),
        tables=[
            Table(_PHASES, _phase_rows(payload["serving"]), "phase", "By phase of the engine"),
            *(
                Table(_bar_columns(each.by), _waterfall_rows(diff, each), "part", f"By {each.by}")
                for each in diff.waterfalls
            ),
            Table(
                _change_columns(f"Part of the {noun}, host time", "host.", noun, shortened=True),
                _rows(level["parts"]),
                "part",
                "Parts",
            ),
            Table(
                _change_columns("Operator, host self", "host_self.", noun),
                _rows(level["operators"]),
                "operator",
                "Operators",
            ),
            Table(
                _change_columns("Kernel", "total.", noun, shortened=True),
                _rows(payload["kernels"]),
                "kernel",
                "Kernels",
            ),
            Table(_change_columns("Family", "total.", noun), _rows(payload["families"]), "family", "Families"),
            Table(_MEMORY, _rows(payload["memory"]), "device", "Peak allocated"),
        ],
    )


def _phase_rows(phases: list[Row]) -> list[Row]:
    """Return two rows for each phase of an engine: per iteration, and per token where that is known."""
    rows = []
    for phase in phases:
        base, candidate = phase["iterations"]
        counts = {"base": base, "candidate": candidate}
        rows.append({"name": f"{phase['phase']}, per iteration", "iterations": counts, **phase["iteration"]})
        if phase["per_token"]["base_ns"] is not None:
            rows.append({"name": f"{phase['phase']}, per token", "iterations": counts, **phase["per_token"]})
    return flat_rows(rows)


def _bar_columns(by: str) -> list[Column]:
    return [Column("name", by.capitalize(), "text"), *_side_columns("")]


def _waterfall_rows(diff: DiffPayload, waterfall: DiffWaterfall) -> list[Row]:
    """Return the parts of the step, then the step that they sum to, and the one that the verdict is about."""
    bars = _rows(msgspec.to_builtins(waterfall.bars))
    steps = [
        {
            "name": row.name,
            "base_ns": row.before,
            "candidate_ns": row.now,
            "delta_ns": row.delta,
            "verdict": row.verdict,
        }
        for row in step_rows(diff, waterfall)
    ]
    for bar in bars:
        bar["name"] = CATEGORIES.get(bar["name"], bar["name"]) if waterfall.by == "category" else bar["name"]
    return [*bars, *steps]


def _change_columns(title: str, prefix: str, noun: str, shortened: bool = False) -> list[Column]:
    """Return the columns of rows with a change each; `shortened` names have a full one."""
    name = Column("short_name", title, "text", full="name") if shortened else Column("name", title, "text")
    return [
        name,
        Column("status", "Status", "text"),
        Column("calls.candidate", f"Calls / {noun}", "count"),
        *_side_columns(prefix),
    ]


def _side_columns(prefix: str) -> list[Column]:
    return [
        Column(f"{prefix}base_ns", "Base"),
        Column(f"{prefix}candidate_ns", "Candidate"),
        Column(f"{prefix}delta_ns", "Change", signed=True),
        Column(f"{prefix}delta_ratio", "Relative", "ratio", signed=True),
        Column(f"{prefix}q", "FDR", "probability"),
        Column(f"{prefix}verdict", "Verdict", "text"),
    ]


_MEMORY = (
    Column("device", "Device", "text"),
    Column("peak_allocated.base_bytes", "Base", "bytes"),
    Column("peak_allocated.candidate_bytes", "Candidate", "bytes"),
    Column("peak_allocated.delta_bytes", "Change", "bytes", signed=True),
    Column("peak_allocated.delta_ratio", "Relative", "ratio", signed=True),
)


def _rows(rows: list[Row]) -> list[Row]:
    """Return flat rows with verdicts and states in words, and both names of what was renamed."""
    return [_spell_out(row) for row in flat_rows(rows)]


def _spell_out(row: Row) -> Row:
    words = {
        key: verdict_text(value) for key, value in row.items() if value and key.rsplit(".", 1)[-1] == "verdict"
    }
    renamed = {
        name: f"{row[name]} → {row[other]}"
        for name, other in (("name", "candidate_name"), ("short_name", "short_candidate_name"))
        if row.get(other)
    }
    status = {"status": _STATUS.get(row["status"], row["status"])} if "status" in row else {}
    return {**row, **words, **renamed, **status}


_PHASES = (
    Column("name", "Phase", "text"),
    Column("iterations.base", "Iterations, base", "count"),
    Column("iterations.candidate", "Iterations, candidate", "count"),
    *_side_columns(""),
)
