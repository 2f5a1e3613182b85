"""Two traces compared: the step and what it is made of, all judged together."""

from __future__ import annotations

from itertools import zip_longest

import msgspec
import numpy as np

from torch_tb_profiler.analyses.diff.batch import batch_sizes
from torch_tb_profiler.analyses.diff.changes import NOT_KNOWN, Change, changes
from torch_tb_profiler.analyses.diff.counted_steps import Pair, counted_steps
from torch_tb_profiler.analyses.diff.level import ComparedLevel, LevelValues
from torch_tb_profiler.analyses.diff.name_tables import (
    ComparedName,
    communication_items,
    kernel_items,
    name_table,
    renames,
)
from torch_tb_profiler.analyses.diff.roles import Role
from torch_tb_profiler.analyses.diff.step_times import busy_times, by_phase, communication_times
from torch_tb_profiler.analyses.diff.waterfall import Bar, bars, known_categories, part_values, unknown_categories
from torch_tb_profiler.analyses.shared.utilization import Utilization, utilizations
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
    kernels, collectives    by name, with the change of their time
    communication, exposed  any communication, and the part of it that nothing on the device covers
    batch_sizes             (base, candidate) where the inputs show different ones
    """

    step: Change
    categories: tuple[Bar, ...]
    phases: tuple[Bar, ...]
    level: ComparedLevel
    kernels: tuple[ComparedName, ...]
    devices: tuple[ComparedDevice, ...]
    communication: Change
    exposed: Change
    collectives: tuple[ComparedName, ...]
    batch_sizes: tuple[int, int] | None


def compare(base: Trace, candidate: Trace, min_effect: float) -> Comparison:
    """All differences; `min_effect` is the smallest relative change that counts."""
    level = LevelValues(base, candidate, "")
    categories = known_categories(base, candidate)
    phases = by_phase(base), by_phase(candidate)
    kernels = name_table(kernel_items(base), kernel_items(candidate), renames(level.tree, Role.DEVICE))
    collectives = name_table(communication_items(base), communication_items(candidate), {})
    devices: Devices = tuple(zip_longest(utilizations(base), utilizations(candidate)))
    judged = changes(
        base,
        candidate,
        min_effect,
        {
            **level.blocks,
            "category": part_values(*categories),
            "phase": part_values(*phases),
            "kernel": kernels.columns[0],
            "collective": collectives.columns[0],
            "communication": _communication(base, candidate),
            "busy": _busy(base, candidate, devices),
        },
    )
    root = level.compared(judged)
    kernel_changes = [NOT_KNOWN] * len(kernels.names) if "device" in root.reasons else judged["kernel"]
    communication, exposed = judged["communication"]
    return Comparison(
        step=judged["step"][0],
        categories=bars(*categories, judged["category"], unknown_categories(base, candidate)),
        phases=bars(*phases, judged["phase"]),
        level=root,
        kernels=kernels.compared(kernel_changes),
        devices=tuple(ComparedDevice(*pair, busy) for pair, busy in zip(devices, judged["busy"], strict=True)),
        communication=communication,
        exposed=exposed,
        collectives=collectives.compared(judged["collective"]),
        batch_sizes=batch_sizes(level.tree, base, candidate),
    )


def _communication(base: Trace, candidate: Trace) -> Pair:
    """Two rows: any communication, exposed communication."""
    first, second = (np.stack(communication_times(trace)).astype(np.float64) for trace in (base, candidate))
    return first, second


def _busy(base: Trace, candidate: Trace, devices: Devices) -> Pair:
    """A row per device."""
    return _busy_of_side(base, [pair[0] for pair in devices]), _busy_of_side(
        candidate, [pair[1] for pair in devices]
    )


def _busy_of_side(trace: Trace, devices: list[Utilization | None]) -> Float64:
    values = np.zeros((len(devices), len(counted_steps(trace))))
    for row, device in enumerate(devices):
        if device is not None:
            values[row] = busy_times(trace, device.device.id)
    return values
