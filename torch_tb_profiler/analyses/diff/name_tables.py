"""Events of two sides by name, each row with its values in every step of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from torch_tb_profiler.analyses.diff.changes import UNKNOWN_CHANGE, Change
from torch_tb_profiler.analyses.diff.counted_steps import SideValues, counted_steps, sum_per_step
from torch_tb_profiler.analyses.diff.roles import PartRole
from torch_tb_profiler.analyses.diff.tree_alignment import AlignedTree
from torch_tb_profiler.model.communication.events import host_communication_calls, is_communication_kernel
from torch_tb_profiler.model.engines import call_durations, deduplicate_executions
from torch_tb_profiler.model.kernels.families import FAMILIES, family_codes
from torch_tb_profiler.model.kinds import DEVICE_KINDS, Kind, rows_of_kind
from torch_tb_profiler.model.operators import host_self_with_calls, operators
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int32, Int64, Trace, distinct_codes


class CallsPerStep(msgspec.Struct, frozen=True):
    """Calls per step on both sides; None on a side that doesn't record them."""

    base: float | None
    candidate: float | None
    delta_calls: float | None

    def without(self, unrecorded: tuple[bool, bool]) -> CallsPerStep:
        """Return them with None for the sides that are `unrecorded`, the base and the candidate."""
        if not any(unrecorded):
            return self
        base, candidate = (
            None if unknown else calls
            for unknown, calls in zip(unrecorded, (self.base, self.candidate), strict=True)
        )
        return CallsPerStep(base, candidate, None)


class ComparedName(msgspec.Struct, frozen=True):
    """Events of one name on both sides.

    base_name, candidate_name  None on a side that has no such event
    changes                    one per column of values
    moved                      the side without it leaves it to processes that aren't recorded
    unrecorded                 the side without it doesn't record such events
    """

    base_name: str | None
    candidate_name: str | None
    calls: CallsPerStep
    changes: tuple[Change, ...]
    moved: bool = False
    unrecorded: bool = False

    def without(self, unrecorded: tuple[bool, bool]) -> ComparedName:
        """Return the row with unknown times if a side, the base or the candidate, doesn't record such events."""
        if not any(unrecorded):
            return self
        names = self.base_name, self.candidate_name
        absent = any(name is None and unknown for name, unknown in zip(names, unrecorded, strict=True))
        changes = (UNKNOWN_CHANGE,) * len(self.changes)
        return replace(self, calls=self.calls.without(unrecorded), changes=changes, unrecorded=absent)


class NamedEvents(msgspec.Struct, frozen=True):
    """Events of one side in its counted steps.

    texts    names by code
    name     int32[k]  code of each event's name
    step     int32[k]  step of each event
    steps    number of steps
    columns  values of the events, int64[k] each
    """

    texts: Sequence[str]
    name: Int32
    step: Int32
    steps: int
    columns: tuple[Int64, ...]


class NameTable(msgspec.Struct, frozen=True):
    """Events of both sides by name.

    names    (base, candidate) of each row, None on a side that has no such event
    calls    calls of each row
    columns  values of each row, by column
    """

    names: list[tuple[str | None, str | None]]
    calls: SideValues
    columns: list[SideValues]

    def compare(self, *columns: Sequence[Change]) -> tuple[ComparedName, ...]:
        """Return the rows with the changes of each column."""
        rows = zip(self.names, zip(*columns, strict=True), strict=True)
        return tuple(
            ComparedName(base, candidate, calls_per_step(self.calls, row), changes)
            for row, ((base, candidate), changes) in enumerate(rows)
        )


def calls_per_step(calls: SideValues, row: int) -> CallsPerStep:
    """Return the mean calls per step of a row."""
    base, candidate = (float(side[row].mean()) if side.shape[1] else 0.0 for side in calls)
    return CallsPerStep(base, candidate, candidate - base)


def build_name_table(
    base: NamedEvents, candidate: NamedEvents, renamed: Mapping[str, str], aligned: Mapping[str, str] | None = None
) -> NameTable:
    """Build rows by name.

    renamed  a name of the base -> that of the same thing in the candidate, where each side has only one of the two
    aligned  the same, whatever names the other side has; it comes before equal names
    """
    codes = [{side.texts[code]: code for code in distinct_codes(side.name)} for side in (base, candidate)]
    pairs = {old: new for old, new in (aligned or {}).items() if old in codes[0] and new in codes[1]}
    matched = set(pairs.values())
    pairs |= {
        old: new
        for old, new in renamed.items()
        if old in codes[0] and new in codes[1] and old not in codes[1] and new not in codes[0]
        if old not in pairs and new not in matched
    }
    names: list[tuple[str | None, str | None]] = [
        (text, pairs.get(text, text if text in codes[1] and text not in matched else None)) for text in codes[0]
    ]
    paired = {new for _, new in names}
    names += [(None, text) for text in codes[1] if text not in paired]
    values_of_side = []
    for which, side in enumerate((base, candidate)):
        row_of = np.full(len(side.texts) + 1, NO_CODE, np.int64)
        for row, both in enumerate(names):
            text = both[which]
            if text is not None:
                row_of[codes[which][text]] = row
        rows, shape = row_of[side.name], (len(names), side.steps)
        values_of_side.append([sum_per_step(rows, side.step, values, shape) for values in (None, *side.columns)])
    calls, *columns = list(zip(*values_of_side, strict=True))
    return NameTable(names, calls, columns)


def find_renames(tree: AlignedTree, role: PartRole) -> dict[str, str]:
    """Return base name -> candidate name for names that only ever stand in each other's place."""
    nodes = np.flatnonzero((tree.role == role) & (tree.names[0] >= 0) & (tree.names[1] >= 0))
    sides = tree.base.tree.texts, tree.candidate.tree.texts
    pairs = {
        (sides[0][old], sides[1][new])
        for old, new in {(int(a), int(b)) for a, b in tree.names[:, nodes].T}
        if sides[0][old] != sides[1][new]
    }
    olds, news = [old for old, _ in pairs], [new for _, new in pairs]
    return {old: new for old, new in sorted(pairs) if olds.count(old) == 1 and news.count(new) == 1}


def join_recordings(recordings: Sequence[NamedEvents]) -> NamedEvents:
    """Return the events of all recordings of a side; steps are numbered consecutively."""
    codes: dict[str, int] = {}
    names, steps, offset = [], [], 0
    for events in recordings:
        recoded = np.full(len(events.texts), NO_CODE, np.int32)
        for code in distinct_codes(events.name):
            recoded[code] = codes.setdefault(events.texts[code], len(codes))
        names.append(recoded[events.name])
        steps.append(np.where(events.step >= 0, events.step + offset, NO_CODE).astype(np.int32))
        offset += events.steps
    columns = zip(*(events.columns for events in recordings), strict=True)
    return NamedEvents(
        list(codes),
        np.concatenate(names),
        np.concatenate(steps),
        offset,
        tuple(np.concatenate(column) for column in columns),
    )


def operator_events(trace: Trace, inside: Bool | None, with_calls: bool = False) -> NamedEvents:
    """Return operator calls with host self and total, device self and total.

    inside      bool[n], which rows of the trace; None for all
    with_calls  host self includes runtime calls
    """
    calls, steps = operators(trace), counted_steps(trace)
    step = steps.of_event[calls.rows]
    selected = np.flatnonzero(step >= 0 if inside is None else (step >= 0) & inside[calls.rows])
    host_self = host_self_with_calls(trace) if with_calls else calls.host_self
    values = (host_self, calls.host_total, calls.device_self, calls.device_total)
    name = trace.events.name[calls.rows[selected]]
    columns = tuple(column[selected] for column in values)
    return NamedEvents(trace.strings, name, step[selected], len(steps), columns)


def kernel_events(trace: Trace) -> NamedEvents:
    """Return kernels with their durations."""
    return _with_durations(trace, deduplicate_executions(trace, rows_of_kind(trace, Kind.KERNEL)))


def family_events(trace: Trace) -> NamedEvents:
    """Return kernels, copies and memsets by family, with their durations."""
    steps, rows = counted_steps(trace), deduplicate_executions(trace, rows_of_kind(trace, *DEVICE_KINDS))
    rows = rows[steps.of_event[rows] >= 0]
    codes, durations = family_codes(trace)[rows].astype(np.int32), call_durations(trace, rows)
    return NamedEvents(FAMILIES, codes, steps.of_event[rows], len(steps), (durations,))


def communication_events(trace: Trace) -> NamedEvents:
    """Return communication kernels and the host operations that launch none, with their durations."""
    kernels = deduplicate_executions(trace, np.flatnonzero(is_communication_kernel(trace)).astype(np.int32))
    return _with_durations(trace, np.concatenate([kernels, host_communication_calls(trace)]).astype(np.int32))


def _with_durations(trace: Trace, rows: Int32) -> NamedEvents:
    steps = counted_steps(trace)
    rows = rows[(steps.of_event[rows] >= 0) & (trace.events.name[rows] >= 0)]
    durations = call_durations(trace, rows)
    return NamedEvents(trace.strings, trace.events.name[rows], steps.of_event[rows], len(steps), (durations,))
