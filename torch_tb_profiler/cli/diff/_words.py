"""Words that the formats of a diff share."""

from __future__ import annotations

from typing import NamedTuple

from torch_tb_profiler.analyses.diff.changes import Verdict
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.diff.gate import Check
from torch_tb_profiler.views.diff.payload import DiffOperator, DiffPayload, DiffWaterfall


def answer(diff: DiffPayload) -> list[str]:
    """The sentences of the diff: headline, explanation, notes."""
    return [plain(sentence) for sentence in (diff.headline, *diff.explanation, *diff.notes)]


def operator_name(row: DiffOperator) -> str:
    return f"{row.name} -> {row.candidate_name}" if row.candidate_name else row.name


def said(verdict: Verdict) -> str:
    return verdict.replace("_", " ")


def verdict_word(check: Check) -> str:
    return {True: "passed", False: "FAILED", None: "cannot tell"}[check.passed]


class StepRow(NamedTuple):
    """A row for the whole step below its parts; ns, `interval` of the change; neither it nor a verdict: none."""

    name: str
    before: float
    now: float
    delta: float
    interval: tuple[float | None, float | None]
    verdict: str


def step_rows(diff: DiffPayload, waterfall: DiffWaterfall) -> list[StepRow]:
    """The mean step, to which its parts sum, and the typical one of headline and verdict where that is another."""
    before, now = diff.base.typical_ns, diff.candidate.typical_ns
    interval, verdict = (diff.step.low_ns, diff.step.high_ns), said(diff.step.verdict)
    mean = StepRow("step", waterfall.base_ns, waterfall.candidate_ns, waterfall.delta_ns, interval, verdict)
    if abs(before - waterfall.base_ns) < 1 and abs(now - waterfall.candidate_ns) < 1:
        return [mean]
    return [
        mean._replace(name="mean step", interval=(None, None), verdict=""),
        StepRow("typical step, as above", before, now, now - before, interval, verdict),
    ]
