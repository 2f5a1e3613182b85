"""Two traces compared: the step and what it is made of, all judged together."""

from __future__ import annotations

from itertools import zip_longest

import msgspec
import numpy as np

from torch_tb_profiler.analyses.diff.batch import batch_sizes
from torch_tb_profiler.analyses.diff.changes import NOT_KNOWN, Change, changes
from torch_tb_profiler.analyses.diff.computed import ComputedStep, computed_step, matrix_times
from torch_tb_profiler.analyses.diff.counted_steps import Values, counted_steps
from torch_tb_profiler.analyses.diff.level import ComparedLevel, LevelValues
from torch_tb_profiler.analyses.diff.name_tables import (
    ComparedName,
    communication_items,
    family_items,
    joined,
    kernel_items,
    name_table,
    renames,
)
from torch_tb_profiler.analyses.diff.roles import Role
from torch_tb_profiler.analyses.diff.step_times import busy_times, by_phase, communication_times
from torch_tb_profiler.analyses.diff.waterfall import (
    Bar,
    bars,
    joined_parts,
    known_categories,
    part_values,
    unknown_categories,
)
from torch_tb_profiler.analyses.shared.utilization import Utilization, utilizations
from torch_tb_profiler.model.calls.missing import missing_kernels
from torch_tb_profiler.model.pair import Pair, Recordings
from torch_tb_profiler.model.trace import Float64, Trace

Devices = tuple[tuple[Utilization | None, Utilization | None], ...]


class ComparedDevice(msgspec.Struct, frozen=True):
    """An accelerator; those of both sides are paired in order of their ids. `busy`: time with any device work."""

    base: Utilization | None
    candidate: Utilization | None
    busy: Change


class Comparison(msgspec.Struct, frozen=True):
    """What changed.

    categories, phases      the step in parts, as `step_times` names them
    level                   the root of the logical timeline
    kernels, collectives    by name, with the change of their time; families: kernels, copies and memsets by family
    computed                what a step of the base and of the candidate computes
    matrix_time             of matrix operators whose FLOPs are known
    communication, exposed  any communication, and the part of it that nothing on the device covers
    batch_sizes             (base, candidate) where the inputs show different ones
    typical                 ns of a typical step of the base and of the candidate: what the step's verdict is about
    autocorrelation         of the steps, 0..1
    """

    step: Change
    typical: tuple[float, float]
    autocorrelation: float
    categories: tuple[Bar, ...]
    phases: tuple[Bar, ...]
    level: ComparedLevel
    kernels: tuple[ComparedName, ...]
    families: tuple[ComparedName, ...]
    computed: tuple[ComputedStep, ComputedStep]
    matrix_time: Change
    devices: tuple[ComparedDevice, ...]
    communication: Change
    exposed: Change
    collectives: tuple[ComparedName, ...]
    batch_sizes: tuple[int, int] | None


def compare(pair: Pair, min_effect: float) -> Comparison:
    """All differences; `min_effect` is the smallest relative change that counts."""
    level = LevelValues(pair, "")
    categories = known_categories(pair)
    phases = joined_parts(pair.base, by_phase), joined_parts(pair.candidate, by_phase)
    kernels = name_table(
        joined([*map(kernel_items, pair.base)]),
        joined([*map(kernel_items, pair.candidate)]),
        renames(level.tree, Role.DEVICE),
    )
    families = name_table(
        joined([*map(family_items, pair.base)]), joined([*map(family_items, pair.candidate)]), {}
    )
    collectives = name_table(
        joined([*map(communication_items, pair.base)]), joined([*map(communication_items, pair.candidate)]), {}
    )
    devices: Devices = tuple(zip_longest(_known(pair.base[0]), _known(pair.candidate[0])))
    evidence = changes(
        pair,
        min_effect,
        {
            **level.blocks,
            "category": part_values(*categories),
            "phase": part_values(*phases),
            "kernel": kernels.columns[0],
            "family": families.columns[0],
            "matrix": matrix_times(pair),
            "collective": collectives.columns[0],
            "communication": (_communication(pair.base), _communication(pair.candidate)),
            "busy": _busy(pair, devices),
        },
    )
    judged = evidence.of
    root = level.compared(judged)
    kernel_changes = [NOT_KNOWN] * len(kernels.names) if "device" in root.reasons else judged["kernel"]
    family_changes = [NOT_KNOWN] * len(families.names) if "device" in root.reasons else judged["family"]
    communication, exposed = judged["communication"]
    return Comparison(
        step=judged["step"][0],
        typical=evidence.typical,
        autocorrelation=evidence.autocorrelation,
        categories=bars(*categories, judged["category"], unknown_categories(pair)),
        phases=bars(*phases, judged["phase"]),
        level=root,
        kernels=kernels.compared(kernel_changes),
        families=families.compared(family_changes),
        computed=(computed_step(pair.base), computed_step(pair.candidate)),
        matrix_time=judged["matrix"][0],
        devices=tuple(ComparedDevice(*pair, busy) for pair, busy in zip(devices, judged["busy"], strict=True)),
        communication=communication,
        exposed=exposed,
        collectives=collectives.compared(judged["collective"]),
        batch_sizes=batch_sizes(level.tree, pair),
    )


def _communication(recordings: Recordings) -> Float64:
    """Two rows: any communication, exposed communication."""
    times: Float64 = np.concatenate([np.stack(communication_times(trace)) for trace in recordings], axis=1)
    return times.astype(np.float64)


def _known(trace: Trace) -> tuple[Utilization, ...]:
    """The devices; none where kernels are missing: when they work is unknown then."""
    return () if missing_kernels(trace) is not None else utilizations(trace)


def _busy(pair: Pair, devices: Devices) -> Values:
    """A row per device."""
    return (
        _busy_of_side(pair.base, [both[0] for both in devices]),
        _busy_of_side(pair.candidate, [both[1] for both in devices]),
    )


def _busy_of_side(recordings: Recordings, devices: list[Utilization | None]) -> Float64:
    values = np.zeros((len(devices), sum(len(counted_steps(trace)) for trace in recordings)))
    for row, device in enumerate(devices):
        if device is not None:
            values[row] = np.concatenate([busy_times(trace, device.device.id) for trace in recordings])
    return values
