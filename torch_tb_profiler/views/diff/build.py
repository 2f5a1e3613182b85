"""Diff: what changed between two sides, and what that proves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec.structs import replace

from torch_tb_profiler.analyses.diff.changes import Change
from torch_tb_profiler.analyses.diff.comparison import compare
from torch_tb_profiler.analyses.diff.counted_steps import counted_steps, outside_calls, step_counts
from torch_tb_profiler.analyses.diff.waterfall import Bar
from torch_tb_profiler.analyses.shared.breakdown import breakdown
from torch_tb_profiler.analyses.shared.memory_curve import levels
from torch_tb_profiler.analyses.shared.shapes import shape_texts
from torch_tb_profiler.analyses.shared.significance import CONFIDENCE, typical_interval
from torch_tb_profiler.model.devices import device_kind, devices
from torch_tb_profiler.model.families import pair_kernel_families, pair_kernel_names
from torch_tb_profiler.model.memory.events import is_memory
from torch_tb_profiler.model.pair import Pair, Recordings
from torch_tb_profiler.model.ranks import rank
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.model.vendors.records import option
from torch_tb_profiler.view import PairView, Tab
from torch_tb_profiler.views._shared.text import reason_texts
from torch_tb_profiler.views.diff import notes, verdicts, whole, words, work_words
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
from torch_tb_profiler.views.diff.rows import families, kernels


def build(pair: Pair, params: DiffParams) -> DiffPayload:
    """The differences of two sides."""
    comparison = compare(pair, params.min_effect)
    sides = _side(pair.base, comparison.typical[0]), _side(pair.candidate, comparison.typical[1])
    waterfalls = [_waterfall("category", comparison.categories), _waterfall("phase", comparison.phases)]
    by_category = waterfalls[0]
    step = replace(
        comparison.step,
        base_ns=by_category.base_ns,
        candidate_ns=by_category.candidate_ns,
        delta_ns=by_category.delta_ns,
    )
    short = pair_kernel_names(pair)
    root = level(comparison.level, short)
    return DiffPayload(
        headline=verdicts.headline(step, *sides, params.min_effect, pair.one_run),
        base=sides[0],
        candidate=sides[1],
        explanation=[
            *words.explanation(step, by_category, root),
            *work_words.sentences(comparison, params.min_effect),
        ],
        notes=notes.notes(step, *sides, comparison.batch_sizes, comparison.autocorrelation, pair.one_run),
        confidence=CONFIDENCE,
        min_effect=params.min_effect,
        one_run=pair.one_run,
        autocorrelation=comparison.autocorrelation,
        step=step,
        waterfalls=waterfalls,
        level=root,
        kernels=kernels(comparison.kernels, short, pair_kernel_families(pair)),
        families=families(comparison.families),
        work=whole.work(comparison),
        work_coverage=whole.work_coverage(comparison),
        devices=whole.devices(comparison),
        memory=whole.memory(pair),
        communication=whole.communication(comparison, short),
        reasons={**root.reasons, **reason_texts(_reasons(pair, step))},
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


def _side(recordings: Recordings, typical_ns: float) -> DiffSide:
    first, counted = recordings[0], [counted_steps(trace) for trace in recordings]
    interval = typical_interval([each.durations for each in counted if len(each)])
    warm_up = [
        int((steps(trace).ends - steps(trace).starts)[each.warm_up])
        for trace, each in zip(recordings, counted, strict=True)
        if each.warm_up is not None
    ]
    return DiffSide(
        rank=rank(first),
        device_type=device_kind(first) if devices(first) else "CPU",
        devices=[device.name or f"{device.kind} {device.id}" for device in devices(first)],
        recordings=step_counts(recordings),
        steps=[name for each in counted for name in each.names],
        durations_ns=[duration for each in counted for duration in each.durations.tolist()],
        typical_ns=typical_ns,
        mean_low_ns=interval[0] if interval else None,
        mean_high_ns=interval[1] if interval else None,
        left_out=sum(each.left_out for each in counted),
        warm_up_ns=warm_up,
        steps_recorded=all(steps(trace).recorded for trace in recordings),
        outside_calls=sum(outside_calls(trace) for trace in recordings),
        trace_start_ns=first.trace_start_ns,
        base_ns=first.base_ns,
    )


def _reasons(pair: Pair, step: Change) -> dict[str, str]:
    traces = *pair.base, *pair.candidate
    reasons = {name: reason for trace in traces for name, reason in breakdown(trace).unknown.items()}
    sides = ("base", pair.base), ("candidate", pair.candidate)
    without = [name for name, side in sides if not all(is_memory(trace).any() for trace in side)]
    if without:
        listed = " and ".join(f"the {name}" for name in without)
        silent = next(trace for trace in traces if not is_memory(trace).any())
        reasons["memory"] = f"{listed} recorded no memory events ({option(silent, 'memory')})"
    elif any(level.relative for trace in traces for level in levels(trace)):
        reasons["memory"] = "a file has no totals: PyTorch records them since 1.10"
    if not all(len(shape_texts(trace)) for trace in traces):
        silent = next(trace for trace in traces if not len(shape_texts(trace)))
        reasons["work"] = f"a side recorded no input shapes ({option(silent, 'shapes')})"
    if step.low_ns is None:
        reasons["low_ns"] = reasons["high_ns"] = reasons["q"] = "a side has fewer than two steps"
    return reasons


def _unavailable(trace: Trace) -> str | None:
    if len(steps(trace).names) == 0:
        return "the trace has no event with a time and a duration, so there is nothing to compare"
    return None


TAB = Tab(
    "Compare",
    PairView("diff", "Diff", DiffParams, DiffPayload, build, rows="level.operators"),
    _unavailable,
    (PairView("diff/part", "Part of the timeline", DiffPartParams, DiffLevel, build_part, rows="operators"),),
)
