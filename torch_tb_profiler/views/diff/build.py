"""Diff: what changed between two traces, and whether it is real."""

from __future__ import annotations

from itertools import zip_longest
from typing import Literal

import numpy as np
from msgspec.structs import replace

from torch_tb_profiler.analyses.diff.batch import batch_sizes
from torch_tb_profiler.analyses.diff.counted_steps import counted_steps
from torch_tb_profiler.analyses.diff.logical_tree import Role
from torch_tb_profiler.analyses.diff.name_tables import (
    NameTable,
    Pair,
    communication_items,
    kernel_items,
    name_table,
    renames,
)
from torch_tb_profiler.analyses.diff.step_times import (
    Parts,
    busy_times,
    by_category,
    by_phase,
    communication_times,
)
from torch_tb_profiler.analyses.shared.breakdown import breakdown
from torch_tb_profiler.analyses.shared.memory_curve import levels, peak
from torch_tb_profiler.analyses.shared.significance import CONFIDENCE, mean_interval
from torch_tb_profiler.analyses.shared.utilization import Utilization, utilizations
from torch_tb_profiler.model.calls.operators import operators
from torch_tb_profiler.model.devices import device_kind, devices
from torch_tb_profiler.model.memory.events import is_memory
from torch_tb_profiler.model.ranks import rank
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Int64, Trace
from torch_tb_profiler.view import PairView, Tab
from torch_tb_profiler.views.diff import level as diff_level
from torch_tb_profiler.views.diff.level import Level, device_reason, steps_pair
from torch_tb_profiler.views.diff.payload import (
    Change,
    DiffBar,
    DiffCollective,
    DiffCommunication,
    DiffDevice,
    DiffKernel,
    DiffLevel,
    DiffMemory,
    DiffParams,
    DiffPartParams,
    DiffPayload,
    DiffShare,
    DiffSide,
    DiffWaterfall,
    Size,
)
from torch_tb_profiler.views.diff.rows import NOTHING, Judged, magnitude, mean_calls, rules, status
from torch_tb_profiler.views.diff.words import notes, summary

WATERFALLS: tuple[Literal["category", "phase"], ...] = ("category", "phase")

NO_MEMORY = "no memory events are recorded (`profile(profile_memory=True)`)"


def build(candidate: Trace, base: Trace, params: DiffParams) -> DiffPayload:
    """The differences of two traces."""
    draft = _Draft(base, candidate)
    judged = Judged(rules(base, candidate, params.min_effect), draft.blocks)
    level, waterfalls = draft.level.draw(judged, 1), draft.waterfalls(judged)
    whole = waterfalls[0]
    step = replace(
        judged.change(0), base_ns=whole.base_ns, candidate_ns=whole.candidate_ns, delta_ns=whole.delta_ns
    )
    sides = _side(base), _side(candidate)
    return DiffPayload(
        base=sides[0],
        candidate=sides[1],
        summary=summary(step, waterfalls[0], level.operators),
        notes=[*notes(*sides), *batch_sizes(draft.level.tree, base, candidate)],
        confidence=CONFIDENCE,
        min_effect=params.min_effect,
        step=step,
        waterfalls=waterfalls,
        level=level,
        kernels=draft.kernel_rows(judged),
        devices=draft.device_rows(judged),
        memory=_memory(base, candidate),
        communication=draft.communication(judged),
        reasons={**level.reasons, **_reasons(base, candidate)},
    )


class _Draft:
    """The values of all tables, one block each; the first is the step itself."""

    def __init__(self, base: Trace, candidate: Trace) -> None:
        self.traces = base, candidate
        self.level = Level(base, candidate, "")
        self.parts: list[tuple[Parts, Parts]] = [
            _hide_unknown(base, candidate),
            (by_phase(base), by_phase(candidate)),
        ]
        self.kernels: NameTable = name_table(
            kernel_items(base), kernel_items(candidate), renames(self.level.tree, Role.DEVICE)
        )
        self.talks: NameTable = name_table(communication_items(base), communication_items(candidate), {})
        self.devices = list(zip_longest(utilizations(base), utilizations(candidate)))
        times = [communication_times(trace) for trace in self.traces]
        blocks: dict[str, Pair] = {"step": steps_pair(base, candidate)}
        blocks |= {f"level {i}": block for i, block in enumerate(self.level.blocks)}
        blocks |= {f"waterfall {i}": _stack(*pair) for i, pair in enumerate(self.parts)}
        blocks["kernels"] = self.kernels.columns[0]
        blocks["talks"] = self.talks.columns[0]
        blocks["communication"] = _floats([np.stack(each) for each in times])
        blocks["busy"] = _floats([self._busy(which) for which in (0, 1)])
        self.blocks = list(blocks.values())
        self.number = {name: i for i, name in enumerate(blocks)}

    def _busy(self, which: int) -> Int64:
        trace = self.traces[which]
        none = np.zeros(len(counted_steps(trace)), np.int64)
        found = [pair[which] for pair in self.devices]
        rows = [none if each is None else busy_times(trace, each.device.id) for each in found]
        return np.array(rows, np.int64).reshape(len(rows), len(none))

    def waterfalls(self, judged: Judged) -> list[DiffWaterfall]:
        """By category and by phase."""
        made = []
        for i, by in enumerate(WATERFALLS):
            block = self.number[f"waterfall {i}"]
            changes = [judged.change(block, row) for row in range(len(self.parts[i][0]))]
            unknown = _unknown(*self.traces) if by == "category" else set()
            made.append(_waterfall(by, *self.parts[i], changes, unknown))
        return made

    def kernel_rows(self, judged: Judged) -> list[DiffKernel]:
        """Kernels by name, as the operators are sorted."""
        hidden = any(device_reason(trace) for trace in self.traces)
        rows = []
        for row, (old, new) in enumerate(self.kernels.names):
            total = NOTHING if hidden else judged.change(self.number["kernels"], row)
            state = status(old, new)
            other = new if state == "renamed" else None
            rows.append(DiffKernel(old or new or "", other, state, mean_calls(self.kernels.calls, row), total))
        return sorted(rows, key=lambda row: magnitude(row.total))

    def device_rows(self, judged: Judged) -> list[DiffDevice]:
        """Devices in order of their ids."""
        return [
            _device(old, new, judged.change(self.number["busy"], row))
            for row, (old, new) in enumerate(self.devices)
        ]

    def communication(self, judged: Judged) -> DiffCommunication:
        """Totals and rows."""
        total, exposed = (judged.change(self.number["communication"], row) for row in (0, 1))
        rows = [
            DiffCollective(
                old or new or "",
                status(old, new),
                mean_calls(self.talks.calls, row),
                judged.change(self.number["talks"], row),
            )
            for row, (old, new) in enumerate(self.talks.names)
        ]
        return DiffCommunication(total, exposed, sorted(rows, key=lambda row: magnitude(row.total)))


def _floats(sides: list[Int64]) -> Pair:
    return sides[0].astype(np.float64), sides[1].astype(np.float64)


def _stack(base: Parts, candidate: Parts) -> Pair:
    return _floats([np.stack([side[name] for name in base]) for side in (base, candidate)])


def _unknown(base: Trace, candidate: Trace) -> set[str]:
    """Categories that one side cannot know."""
    return set(breakdown(base).unknown) | set(breakdown(candidate).unknown)


def _hide_unknown(base: Trace, candidate: Trace) -> tuple[Parts, Parts]:
    """The categories; the time of those that one side does not know goes to `other` on both."""
    hidden = _unknown(base, candidate)
    sides = []
    for trace in (base, candidate):
        parts = dict(by_category(trace))
        for name in hidden:
            parts["other"] = parts["other"] + parts[name]
            parts[name] = np.zeros_like(parts[name])
        sides.append(parts)
    return sides[0], sides[1]


def _waterfall(
    by: Literal["category", "phase"], base: Parts, candidate: Parts, changes: list[Change], unknown: set[str]
) -> DiffWaterfall:
    first, second = _whole_means(base), _whole_means(candidate)
    bars, reached = [], 0
    for name, old, new, change in zip(base, first, second, changes, strict=True):
        reached += new - old
        known = name not in unknown
        bars.append(
            DiffBar(
                name=name,
                base_ns=old if known else None,
                candidate_ns=new if known else None,
                delta_ns=new - old,
                delta_accumulated_ns=reached,
                low_ns=change.low_ns if known else None,
                high_ns=change.high_ns if known else None,
                q=change.q if known else None,
                verdict=change.verdict if known else "unknown",
            )
        )
    return DiffWaterfall(by, sum(first), sum(second), sum(second) - sum(first), bars)


def _whole_means(parts: Parts) -> list[int]:
    """Mean over the steps of each part in whole ns; running sums are rounded, so that all sum to the step's."""
    count = max(len(next(iter(parts.values()))), 1)
    reached = np.cumsum([int(values.sum()) for values in parts.values()]).tolist()
    rounded = [(2 * each + count) // (2 * count) for each in reached]
    return [each - before for each, before in zip(rounded, [0, *rounded], strict=False)]


def _device(old: Utilization | None, new: Utilization | None, busy: Change) -> DiffDevice:
    return DiffDevice(
        base_id=old.device.id if old else None,
        candidate_id=new.device.id if new else None,
        base_name=old.device.name if old else None,
        candidate_name=new.device.name if new else None,
        busy=busy,
        utilization=_share(old, new, "utilization"),
        sm_efficiency=_share(old, new, "sm_efficiency"),
        achieved_occupancy=_share(old, new, "achieved_occupancy"),
        tensor_core_ratio=_share(old, new, "tensor_core_ratio"),
    )


def _share(base: Utilization | None, candidate: Utilization | None, field: str) -> DiffShare:
    old, new = (None if side is None else getattr(side, field) for side in (base, candidate))
    return DiffShare(old, new, None if old is None or new is None else new - old)


def _memory(base: Trace, candidate: Trace) -> list[DiffMemory]:
    sides = [{level.device.name: level for level in levels(trace)} for trace in (base, candidate)]
    rows = []
    for device in dict.fromkeys([*sides[0], *sides[1]]):
        found = [side.get(device) for side in sides]
        allocated = [None if each is None or each.relative else peak(each.allocated) for each in found]
        reserved = [None if each is None else peak(each.reserved) for each in found]
        pairs = [[None if each is None else each.bytes for each in two] for two in (allocated, reserved)]
        rows.append(DiffMemory(device, _size(*pairs[0]), _size(*pairs[1])))
    return rows


def _size(old: int | None, new: int | None) -> Size:
    if old is None or new is None:
        return Size(old, new, None, None)
    return Size(old, new, new - old, (new - old) / old if old else (0.0 if new == old else None))


def _side(trace: Trace) -> DiffSide:
    found, counted, calls = steps(trace), counted_steps(trace), operators(trace).rows
    mean = mean_interval(counted.durations.astype(np.float64))
    return DiffSide(
        rank=rank(trace),
        device_type=device_kind(trace) if devices(trace) else "CPU",
        devices=[each.name or f"{each.kind} {each.id}" for each in devices(trace)],
        steps=list(counted.names),
        durations_ns=counted.durations.tolist(),
        mean_low_ns=mean[0] if mean else None,
        mean_high_ns=mean[1] if mean else None,
        left_out=int((~found.complete).sum()),
        steps_recorded=found.recorded,
        outside_calls=int((counted.of_event[calls] < 0).sum()),
        trace_start_ns=trace.trace_start_ns,
        base_ns=trace.base_ns,
    )


def _reasons(base: Trace, candidate: Trace) -> dict[str, str]:
    reasons = {**breakdown(base).unknown, **breakdown(candidate).unknown}
    without = [name for name, trace in (("base", base), ("candidate", candidate)) if not is_memory(trace).any()]
    if without:
        reasons["memory"] = f"in the {' and the '.join(without)} {NO_MEMORY}"
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
    (PairView("diff/part", "Part of the timeline", DiffPartParams, DiffLevel, diff_level.build),),
)
