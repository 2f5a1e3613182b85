"""Diff: what changed between two traces, and whether the change is significant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec.structs import replace

from torch_tb_profiler.analyses.diff.comparison import compare
from torch_tb_profiler.analyses.diff.counted_steps import counted_steps, outside_calls
from torch_tb_profiler.analyses.diff.waterfall import Bar
from torch_tb_profiler.analyses.shared.breakdown import breakdown
from torch_tb_profiler.analyses.shared.memory_curve import levels
from torch_tb_profiler.analyses.shared.significance import CONFIDENCE, mean_interval
from torch_tb_profiler.model.devices import device_kind, devices
from torch_tb_profiler.model.memory.events import is_memory
from torch_tb_profiler.model.ranks import rank
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import PairView, Tab
from torch_tb_profiler.views.diff import whole, words
from torch_tb_profiler.views.diff.level import build_part, level
from torch_tb_profiler.views.diff.payload import (
    DiffBar,
    DiffLevel,
    DiffParams,
    DiffPartParams,
    DiffPayload,
    DiffSide,
    DiffWaterfall,
)
from torch_tb_profiler.views.diff.rows import kernels


def build(candidate: Trace, base: Trace, params: DiffParams) -> DiffPayload:
    """The differences of two traces."""
    comparison = compare(base, candidate, params.min_effect)
    sides = _side(base), _side(candidate)
    waterfalls = [_waterfall("category", comparison.categories), _waterfall("phase", comparison.phases)]
    by_category = waterfalls[0]
    step = replace(
        comparison.step,
        base_ns=by_category.base_ns,
        candidate_ns=by_category.candidate_ns,
        delta_ns=by_category.delta_ns,
    )
    root = level(comparison.level)
    return DiffPayload(
        headline=words.headline(step, *sides),
        base=sides[0],
        candidate=sides[1],
        explanation=words.explanation(step, by_category, root),
        notes=words.notes(*sides, comparison.batch_sizes),
        confidence=CONFIDENCE,
        min_effect=params.min_effect,
        step=step,
        waterfalls=waterfalls,
        level=root,
        kernels=kernels(comparison.kernels),
        devices=whole.devices(comparison),
        memory=whole.memory(base, candidate),
        communication=whole.communication(comparison),
        reasons={**root.reasons, **_reasons(base, candidate)},
    )


def _waterfall(by: Literal["category", "phase"], bars: Sequence[Bar]) -> DiffWaterfall:
    drawn, reached = [], 0
    for bar in bars:
        delta = bar.candidate_ns - bar.base_ns
        reached += delta
        drawn.append(
            DiffBar(
                name=bar.name,
                base_ns=bar.base_ns if bar.known else None,
                candidate_ns=bar.candidate_ns if bar.known else None,
                delta_ns=delta,
                delta_accumulated_ns=reached,
                low_ns=bar.change.low_ns if bar.known else None,
                high_ns=bar.change.high_ns if bar.known else None,
                q=bar.change.q if bar.known else None,
                verdict=bar.change.verdict if bar.known else "unknown",
            )
        )
    return DiffWaterfall(
        by, sum(bar.base_ns for bar in bars), sum(bar.candidate_ns for bar in bars), reached, drawn
    )


def _side(trace: Trace) -> DiffSide:
    counted = counted_steps(trace)
    mean = mean_interval(counted.durations)
    return DiffSide(
        rank=rank(trace),
        device_type=device_kind(trace) if devices(trace) else "CPU",
        devices=[device.name or f"{device.kind} {device.id}" for device in devices(trace)],
        steps=list(counted.names),
        durations_ns=counted.durations.tolist(),
        mean_low_ns=mean[0] if mean else None,
        mean_high_ns=mean[1] if mean else None,
        left_out=counted.left_out,
        steps_recorded=steps(trace).recorded,
        outside_calls=outside_calls(trace),
        trace_start_ns=trace.trace_start_ns,
        base_ns=trace.base_ns,
    )


def _reasons(base: Trace, candidate: Trace) -> dict[str, str]:
    reasons = {**breakdown(base).unknown, **breakdown(candidate).unknown}
    without = [name for name, trace in (("base", base), ("candidate", candidate)) if not is_memory(trace).any()]
    if without:
        sides = " and ".join(f"the {name}" for name in without)
        reasons["memory"] = f"{sides} recorded no memory events (`profile(profile_memory=True)`)"
    elif any(level.relative for trace in (base, candidate) for level in levels(trace)):
        reasons["memory"] = "a file has no totals: PyTorch records them since 1.10"
    if min(len(counted_steps(trace)) for trace in (base, candidate)) < 2:
        reasons["low_ns"] = reasons["high_ns"] = reasons["q"] = "a side has fewer than two steps"
    return reasons


def _unavailable(trace: Trace) -> str | None:
    if len(steps(trace).names) == 0:
        return "the trace has no event with a time and a duration, so there is nothing to compare"
    return None


TAB = Tab(
    "Compare",
    PairView("diff", "Diff", DiffParams, DiffPayload, build),
    _unavailable,
    (PairView("diff/part", "Part of the timeline", DiffPartParams, DiffLevel, build_part),),
)
