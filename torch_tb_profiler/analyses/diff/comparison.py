"""Two sides compared: the step and what it is made of, all judged together."""

from __future__ import annotations

from itertools import zip_longest

import msgspec
import numpy as np

from torch_tb_profiler.analyses.diff.batch_sizes import find_batch_sizes, find_sample_counts
from torch_tb_profiler.analyses.diff.changes import UNKNOWN_CHANGE, Change, judge_changes, scale_change
from torch_tb_profiler.analyses.diff.counted_steps import SideValues, counted_steps, step_durations
from torch_tb_profiler.analyses.diff.flops import StepFlops, matrix_operator_times, step_flops
from torch_tb_profiler.analyses.diff.kernel_origins import align_kernels_by_origin
from torch_tb_profiler.analyses.diff.level import ComparedLevel, LevelValues
from torch_tb_profiler.analyses.diff.name_tables import (
    ComparedName,
    build_name_table,
    communication_events,
    family_events,
    find_renames,
    join_recordings,
    kernel_events,
)
from torch_tb_profiler.analyses.diff.roles import PartRole
from torch_tb_profiler.analyses.diff.step_parts import (
    StepPart,
    build_step_parts,
    busy_times,
    communication_times,
    comparable_categories,
    join_parts,
    part_values,
    phase_times,
    unknown_by_side,
    unknown_categories,
)
from torch_tb_profiler.analyses.shared.utilization import DeviceUtilization, utilizations
from torch_tb_profiler.model.calls.missing import missing_kernels_reason
from torch_tb_profiler.model.trace import Float64, Recordings, Trace, TracePair

DevicePairs = tuple[tuple[DeviceUtilization | None, DeviceUtilization | None], ...]


class ComparedDevice(msgspec.Struct, frozen=True):
    """An accelerator of both sides, paired in order of their ids; `busy` is the time with any device work."""

    base: DeviceUtilization | None
    candidate: DeviceUtilization | None
    busy: Change


class PairComparison(msgspec.Struct, frozen=True):
    """Everything that changed between the base and the candidate.

    categories, phases      the parts of the step, as `step_parts` names them
    level                   the root of the logical timeline
    kernels, collectives    by name, with the change of their time; families: kernels, copies and memsets by family
    flops                   FLOPs per step of the base and of the candidate
    matrix_time             time of matrix operators whose FLOPs are known
    communication, exposed  all communication, and the part of it that isn't overlapped with work on the device
    batch_sizes             (base, candidate) where the inputs show different ones
    samples                 samples per step (base, candidate) where they differ: steps do another amount of work
    per_sample              change of the time per sample, None unless `samples` differ
    typical                 ns of a typical step of the base and of the candidate: what the step's verdict is about
    autocorrelation         of the steps, 0..1
    """

    step: Change
    typical: tuple[float, float]
    autocorrelation: float
    categories: tuple[StepPart, ...]
    phases: tuple[StepPart, ...]
    level: ComparedLevel
    kernels: tuple[ComparedName, ...]
    families: tuple[ComparedName, ...]
    flops: tuple[StepFlops, StepFlops]
    matrix_time: Change
    devices: tuple[ComparedDevice, ...]
    communication: Change
    exposed: Change
    collectives: tuple[ComparedName, ...]
    batch_sizes: tuple[int, int] | None
    samples: tuple[int, int] | None
    per_sample: Change | None


def compare(pair: TracePair, min_effect: float) -> PairComparison:
    """Compare both sides; `min_effect` is the smallest relative change that matters."""
    level = LevelValues(pair, "")
    categories = comparable_categories(pair)
    phases = join_parts(pair.base, phase_times), join_parts(pair.candidate, phase_times)
    kernels = build_name_table(
        join_recordings([*map(kernel_events, pair.base)]),
        join_recordings([*map(kernel_events, pair.candidate)]),
        find_renames(level.tree, PartRole.DEVICE),
        align_kernels_by_origin(pair),
    )
    families = build_name_table(
        join_recordings([*map(family_events, pair.base)]),
        join_recordings([*map(family_events, pair.candidate)]),
        {},
    )
    collectives = build_name_table(
        join_recordings([*map(communication_events, pair.base)]),
        join_recordings([*map(communication_events, pair.candidate)]),
        {},
    )
    devices: DevicePairs = tuple(zip_longest(_known_devices(pair.base[0]), _known_devices(pair.candidate[0])))
    samples = find_sample_counts(level.tree, pair)
    judged = judge_changes(
        pair,
        min_effect,
        {
            **level.blocks,
            "category": part_values(*categories),
            "phase": part_values(*phases),
            "kernel": kernels.columns[0],
            "family": families.columns[0],
            "matrix": matrix_operator_times(pair),
            "collective": collectives.columns[0],
            "communication": (_build_communication_rows(pair.base), _build_communication_rows(pair.candidate)),
            "busy": _build_busy_rows(pair, devices),
            **({} if samples is None else {"sample": _step_rows_per_sample(pair, samples)}),
        },
    )
    changes = judged.by_block
    root = level.compare(changes)
    communication, exposed = changes["communication"]
    unknown, busy, unrecorded = unknown_categories(pair), changes["busy"], _unrecorded_sides(pair)
    if "communication" in unknown:
        communication = exposed = UNKNOWN_CHANGE
    elif "kernel" in unknown:
        exposed = UNKNOWN_CHANGE  # what ran at the same time wasn't recorded
    if "kernel" in unknown:
        busy = [UNKNOWN_CHANGE] * len(devices)
    return PairComparison(
        step=changes["step"][0],
        typical=judged.typical,
        autocorrelation=judged.autocorrelation,
        categories=build_step_parts(*categories, changes["category"], unknown),
        phases=build_step_parts(*phases, changes["phase"]),
        level=root,
        kernels=tuple(row.without(unrecorded["kernel"]) for row in kernels.compare(changes["kernel"])),
        families=tuple(
            row.without(unrecorded["memcpy" if "memory" in (row.base_name, row.candidate_name) else "kernel"])
            for row in families.compare(changes["family"])
        ),
        flops=(step_flops(pair.base), step_flops(pair.candidate)),
        matrix_time=changes["matrix"][0],
        devices=tuple(ComparedDevice(*both, busy) for both, busy in zip(devices, busy, strict=True)),
        communication=communication,
        exposed=exposed,
        collectives=tuple(
            row.without(unrecorded["communication"]) for row in collectives.compare(changes["collective"])
        ),
        batch_sizes=samples or find_batch_sizes(level.tree, pair),
        samples=samples,
        per_sample=None if samples is None else scale_change(changes["sample"][0], 1 / samples[0]),
    )


def _unrecorded_sides(pair: TracePair) -> dict[str, tuple[bool, bool]]:
    """Return category -> whether the base and the candidate don't record it.

    A collective on the host of one side may be the one whose kernels the other side has.
    """
    base, candidate = unknown_by_side(pair)
    sides = {name: (name in base, name in candidate) for name in ("kernel", "memcpy", "communication")}
    return sides | {"communication": (any(sides["communication"]),) * 2}


def _step_rows_per_sample(pair: TracePair, samples: tuple[int, int]) -> SideValues:
    """Return the steps of both sides as long as a batch of the base's size would take."""
    return step_durations(pair.base), step_durations(pair.candidate) * (samples[0] / samples[1])


def _build_communication_rows(recordings: Recordings) -> Float64:
    """Return two rows: all communication, exposed communication."""
    times: Float64 = np.concatenate([np.stack(communication_times(trace)) for trace in recordings], axis=1)
    return times.astype(np.float64)


def _known_devices(trace: Trace) -> tuple[DeviceUtilization, ...]:
    """Return the devices, or none where kernels are missing, because busy time is unknown then."""
    return () if missing_kernels_reason(trace) is not None else utilizations(trace)


def _build_busy_rows(pair: TracePair, devices: DevicePairs) -> SideValues:
    """Return a row of busy time per device."""
    return (
        _build_side_busy_rows(pair.base, [both[0] for both in devices]),
        _build_side_busy_rows(pair.candidate, [both[1] for both in devices]),
    )


def _build_side_busy_rows(recordings: Recordings, devices: list[DeviceUtilization | None]) -> Float64:
    values = np.zeros((len(devices), sum(len(counted_steps(trace)) for trace in recordings)))
    for row, device in enumerate(devices):
        if device is not None:
            values[row] = np.concatenate([busy_times(trace, device.device.id) for trace in recordings])
    return values
