"""Diff: what changed between two sides, and what that proves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec.structs import replace

from torch_tb_profiler.analyses.diff.changes import Change
from torch_tb_profiler.analyses.diff.comparison import ComparedDevice, PairComparison, compare
from torch_tb_profiler.analyses.diff.counted_steps import calls_outside_steps, counted_steps, step_counts
from torch_tb_profiler.analyses.diff.level import compare_part
from torch_tb_profiler.analyses.diff.serving_phases import ComparedPhase, compare_phases
from torch_tb_profiler.analyses.diff.step_parts import StepPart, unknown_by_side, unknown_categories
from torch_tb_profiler.analyses.serving.idle import serving_times
from torch_tb_profiler.analyses.shared.grouping import input_shape_texts
from torch_tb_profiler.analyses.shared.memory_curve import MemoryLevels, MemoryPeak, first_peak, memory_levels
from torch_tb_profiler.analyses.shared.odd_steps import odd_steps
from torch_tb_profiler.analyses.shared.significance import CONFIDENCE, typical_interval
from torch_tb_profiler.analyses.shared.utilization import DeviceUtilization
from torch_tb_profiler.model.devices import device_kind, devices
from torch_tb_profiler.model.kernels.families import kernel_families_of_pair
from torch_tb_profiler.model.kernels.short_names import short_kernel_names, short_kernel_names_of_pair
from torch_tb_profiler.model.memory.events import is_memory_event
from torch_tb_profiler.model.ranks import trace_rank
from torch_tb_profiler.model.steps import step_noun, steps
from torch_tb_profiler.model.trace import Recordings, Trace, TracePair
from torch_tb_profiler.model.vendors.recording_options import recording_option
from torch_tb_profiler.view import PairView, Tab
from torch_tb_profiler.views._shared.availability import diff_reason
from torch_tb_profiler.views._shared.text import Text, reason_texts, shorten_frame
from torch_tb_profiler.views.diff import rows, words
from torch_tb_profiler.views.diff.notes import build_notes
from torch_tb_profiler.views.diff.payload import (
    DiffBar,
    DiffCommunication,
    DiffDevice,
    DiffLevel,
    DiffMemory,
    DiffOddStep,
    DiffParams,
    DiffPartParams,
    DiffPayload,
    DiffPhase,
    DiffShare,
    DiffSide,
    DiffSize,
    DiffWaterfall,
)


def build(pair: TracePair, params: DiffParams) -> DiffPayload:
    """Build the differences of two sides."""
    comparison = compare(pair, params.min_effect)
    sides = _build_side(pair.base, comparison.typical[0]), _build_side(pair.candidate, comparison.typical[1])
    by_category = _build_waterfall("category", comparison.categories)
    step = replace(
        comparison.step,
        base_ns=by_category.base_ns,
        candidate_ns=by_category.candidate_ns,
        delta_ns=by_category.delta_ns,
    )
    short_names, phases = short_kernel_names_of_pair(pair), _build_phases(pair, params.min_effect)
    noun = _pair_noun(pair)
    root = rows.build_level(comparison.level, short_names, noun)
    return DiffPayload(
        headline=_headline(comparison, step, sides, phases, params.min_effect, pair.one_run, noun),
        base=sides[0],
        candidate=sides[1],
        explanation=[]
        if words.unmarked_side(*sides)
        else [
            *words.iterations_sentences(phases, step),
            *words.explanation(step, by_category, root, noun, same_samples=comparison.samples is None),
            *words.flops_sentences(comparison, params.min_effect, noun),
        ],
        notes=build_notes(
            step,
            *sides,
            comparison.batch_sizes,
            comparison.autocorrelation,
            pair.one_run,
            noun,
            _sides_without_calls(pair),
        ),
        confidence=CONFIDENCE,
        min_effect=params.min_effect,
        one_run=pair.one_run,
        autocorrelation=comparison.autocorrelation,
        step=step,
        samples=comparison.samples,
        per_sample=comparison.per_sample,
        serving=[_phase(each) for each in phases],
        waterfalls=[by_category, _build_waterfall("phase", comparison.phases)],
        level=root,
        kernels=rows.kernel_rows(comparison.kernels, short_names, kernel_families_of_pair(pair)),
        families=rows.family_rows(comparison.families),
        work=rows.build_work(*(side.matrix for side in comparison.flops)),
        work_coverage=_share_difference(*(side.coverage for side in comparison.flops)),
        devices=[_build_device(device) for device in comparison.devices],
        memory=_build_memory(pair),
        communication=DiffCommunication(
            comparison.communication,
            comparison.exposed,
            rows.collective_rows(comparison.collectives, short_names),
        ),
        reasons={**root.reasons, **reason_texts(_reasons(pair, step, noun))},
        step_noun=noun,
    )


def _sides_without_calls(pair: TracePair) -> list[str]:
    """Return the sides whose host self times hold runtime calls that weren't recorded."""
    sides = zip(("base", "candidate"), unknown_by_side(pair), strict=True)
    return [name for name, unknown in sides if "runtime" in unknown and "cpu_exec" not in unknown]


def _pair_noun(pair: TracePair) -> str:
    """Return what a step of both sides is in a sentence: "iteration" if all are an engine's, else "step"."""
    nouns = {step_noun(trace) for trace in (*pair.base, *pair.candidate)}
    return nouns.pop() if len(nouns) == 1 else "step"


def _headline(
    comparison: PairComparison,
    step: Change,
    sides: tuple[DiffSide, DiffSide],
    phases: Sequence[ComparedPhase],
    min_effect: float,
    one_run: bool,
    noun: str,
) -> Text:
    """Say how a typical step changed; of inference engines the time per token, of other batches per sample."""
    if any(phase.per_token.base_ns is not None for phase in phases):
        return words.headline_per_token(phases, one_run)
    if comparison.per_sample is not None and comparison.samples is not None:
        return words.headline_per_sample(comparison.per_sample, comparison.samples, *sides, one_run, noun)
    return words.headline(step, *sides, min_effect, one_run, noun)


def _build_phases(pair: TracePair, min_effect: float) -> tuple[ComparedPhase, ...]:
    base, candidate = (
        [times.duration for trace in side if (times := serving_times(trace)) is not None]
        for side in (pair.base, pair.candidate)
    )
    return compare_phases(pair, (base, candidate), min_effect)


def _phase(phase: ComparedPhase) -> DiffPhase:
    return DiffPhase(phase.phase, phase.iterations, phase.tokens, phase.iteration, phase.per_token)


def build_part(pair: TracePair, params: DiffPartParams) -> DiffLevel:
    """Build the open part at `params.path`; NotFoundError if there is no such part."""
    level = compare_part(pair, params.path, params.min_effect)
    return rows.build_level(level, short_kernel_names_of_pair(pair), _pair_noun(pair))


def _build_waterfall(by: Literal["category", "phase"], parts: Sequence[StepPart]) -> DiffWaterfall:
    bars, accumulated = [], 0
    for part in parts:
        delta = part.candidate_ns - part.base_ns
        accumulated += delta
        bars.append(
            DiffBar(
                name=part.name,
                base_ns=part.base_ns if part.known else None,
                candidate_ns=part.candidate_ns if part.known else None,
                delta_ns=delta,
                delta_accumulated_ns=accumulated,
                low_ns=part.change.low_ns if part.known else None,
                high_ns=part.change.high_ns if part.known else None,
                q=part.change.q if part.known else None,
                verdict=part.change.verdict if part.known else "unknown",
            )
        )
    base, candidate = sum(part.base_ns for part in parts), sum(part.candidate_ns for part in parts)
    return DiffWaterfall(by, base, candidate, accumulated, bars)


def _build_side(recordings: Recordings, typical_ns: float) -> DiffSide:
    first, counted = recordings[0], [counted_steps(trace) for trace in recordings]
    interval = typical_interval([of_trace.durations for of_trace in counted if len(of_trace)])
    warm_up = [
        int((steps(trace).ends - steps(trace).starts)[of_trace.warm_up])
        for trace, of_trace in zip(recordings, counted, strict=True)
        if of_trace.warm_up is not None
    ]
    return DiffSide(
        rank=trace_rank(first),
        device_type=device_kind(first) if devices(first) else "CPU",
        devices=[device.name or f"{device.kind} {device.id}" for device in devices(first)],
        recordings=step_counts(recordings),
        steps=[name for of_trace in counted for name in of_trace.names],
        durations_ns=[duration for of_trace in counted for duration in of_trace.durations.tolist()],
        typical_ns=typical_ns,
        mean_low_ns=interval[0] if interval else None,
        mean_high_ns=interval[1] if interval else None,
        left_out=sum(of_trace.left_out for of_trace in counted),
        warm_up_ns=warm_up,
        odd_steps=[step for trace in recordings for step in _build_odd_steps(trace)],
        steps_recorded=all(steps(trace).recorded for trace in recordings),
        outside_calls=sum(calls_outside_steps(trace) for trace in recordings),
        trace_start_ns=first.trace_start_ns,
        base_ns=first.base_ns,
    )


def _build_odd_steps(trace: Trace) -> Iterator[DiffOddStep]:
    """Yield the odd steps that are left out, without a first one that is warm-up."""
    counted, names = counted_steps(trace), short_kernel_names(trace)
    left_out = {steps(trace).names[number] for number in counted.odd.tolist()}
    for each in odd_steps(trace):
        if each.step in left_out:
            cause = names.get(each.name) or shorten_frame(each.name)
            waits = ", which may be waiting for another rank" if cause and each.communicates else ""
            yield DiffOddStep(each.step, each.extra_ns, f"{cause}{waits}")


def _build_device(device: ComparedDevice) -> DiffDevice:
    base, candidate = device.base, device.candidate
    return DiffDevice(
        base_id=base.device.id if base else None,
        candidate_id=candidate.device.id if candidate else None,
        base_name=base.device.name if base else None,
        candidate_name=candidate.device.name if candidate else None,
        busy=device.busy,
        utilization=_utilization_difference(base, candidate, "utilization"),
        sm_efficiency=_utilization_difference(base, candidate, "sm_efficiency"),
        achieved_occupancy=_utilization_difference(base, candidate, "achieved_occupancy"),
        tensor_core_ratio=_utilization_difference(base, candidate, "tensor_core_ratio"),
    )


def _utilization_difference(
    base: DeviceUtilization | None, candidate: DeviceUtilization | None, field: str
) -> DiffShare:
    old, new = (None if side is None else getattr(side, field) for side in (base, candidate))
    return _share_difference(old, new)


def _share_difference(base: float | None, candidate: float | None) -> DiffShare:
    delta = None if base is None or candidate is None else candidate - base
    return DiffShare(base, candidate, delta)


def _build_memory(pair: TracePair) -> list[DiffMemory]:
    """Return the peaks of each device that the first recording of either side has."""
    base, candidate = (
        {level.device.name: level for level in memory_levels(side[0])} for side in (pair.base, pair.candidate)
    )
    rows_of_devices = []
    for device in dict.fromkeys([*base, *candidate]):
        old, new = base.get(device), candidate.get(device)
        allocated = _build_size_difference(_allocated_peak(old), _allocated_peak(new))
        reserved = _build_size_difference(_reserved_peak(old), _reserved_peak(new))
        rows_of_devices.append(DiffMemory(device, allocated, reserved))
    return rows_of_devices


def _allocated_peak(level: MemoryLevels | None) -> MemoryPeak | None:
    return None if level is None or level.relative else first_peak(level.allocated)


def _reserved_peak(level: MemoryLevels | None) -> MemoryPeak | None:
    return None if level is None else first_peak(level.reserved)


def _build_size_difference(base: MemoryPeak | None, candidate: MemoryPeak | None) -> DiffSize:
    old, new = (None if moment is None else moment.bytes for moment in (base, candidate))
    if old is None or new is None:
        return DiffSize(old, new, None, None)
    return DiffSize(old, new, new - old, (new - old) / old if old else (0.0 if new == old else None))


def _reasons(pair: TracePair, step: Change, noun: str) -> dict[str, str]:
    traces = *pair.base, *pair.candidate
    reasons = unknown_categories(pair)
    if "kernel" in reasons:
        reasons.setdefault("communication", reasons["kernel"])
        reasons["busy"] = reasons["kernel"]
    sides = ("base", pair.base), ("candidate", pair.candidate)
    without = [name for name, side in sides if not all(is_memory_event(trace).any() for trace in side)]
    if without:
        names = " and ".join(f"the {name}" for name in without)
        trace = next(trace for trace in traces if not is_memory_event(trace).any())
        reasons["memory"] = f"{names} recorded no memory events ({recording_option(trace, 'memory')})"
    elif any(level.relative for trace in traces for level in memory_levels(trace)):
        reasons["memory"] = "at least one file has no memory totals, which PyTorch records since 1.10"
    if not all(len(input_shape_texts(trace)) for trace in traces):
        trace = next(trace for trace in traces if not len(input_shape_texts(trace)))
        reasons["work"] = f"at least one side recorded no input shapes ({recording_option(trace, 'shapes')})"
    if step.low_ns is None:
        reasons |= dict.fromkeys(("low_ns", "high_ns", "q"), f"at least one side has fewer than two {noun}s")
    return reasons


TAB = Tab(
    "Compare",
    PairView("diff", "Diff", DiffParams, DiffPayload, build, rows="level.operators"),
    diff_reason,
    (PairView("diff/part", "Part of the timeline", DiffPartParams, DiffLevel, build_part, rows="operators"),),
)
