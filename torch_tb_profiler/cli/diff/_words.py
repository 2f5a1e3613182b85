"""Words that the formats of a diff share."""

from __future__ import annotations

from torch_tb_profiler.analyses.diff.changes import Verdict
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.diff.gate import Check
from torch_tb_profiler.views.diff.payload import DiffOperator, DiffPayload


def answer(diff: DiffPayload) -> list[str]:
    """The sentences of the diff: headline, explanation, notes."""
    return [plain(sentence) for sentence in (diff.headline, *diff.explanation, *diff.notes)]


def operator_name(row: DiffOperator) -> str:
    return f"{row.name} -> {row.candidate_name}" if row.candidate_name else row.name


def said(verdict: Verdict) -> str:
    return verdict.replace("_", " ")


def verdict_word(check: Check) -> str:
    return {True: "passed", False: "FAILED", None: "cannot tell"}[check.passed]
