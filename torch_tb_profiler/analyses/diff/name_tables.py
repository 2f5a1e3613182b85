"""Events of two traces by name, each row with the values of every step on both sides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from torch_tb_profiler.analyses.diff.changes import Change
from torch_tb_profiler.analyses.diff.counted_steps import Values, counted_steps, per_step
from torch_tb_profiler.analyses.diff.roles import Role
from torch_tb_profiler.analyses.diff.trees.tree_alignment import AlignedTree
from torch_tb_profiler.model.calls.operators import operators
from torch_tb_profiler.model.communication.events import communication_kernels, host_communication
from torch_tb_profiler.model.engines.executions import call_lengths, one_each
from torch_tb_profiler.model.families import families
from torch_tb_profiler.model.kernels.families import FAMILIES
from torch_tb_profiler.model.kinds import DEVICE, Kind, of_kind
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int32, Int64, Trace, distinct


class Calls(msgspec.Struct, frozen=True):
    """Calls per step on both sides."""

    base: float
    candidate: float
    delta_calls: float


class ComparedName(msgspec.Struct, frozen=True):
    """Events of one name. Names are None where there is none; `changes` has one entry per column of values.

    moved  the side without it leaves it to processes that are not recorded
    """

    base_name: str | None
    candidate_name: str | None
    calls: Calls
    changes: tuple[Change, ...]
    moved: bool = False


class Items(msgspec.Struct, frozen=True):
    """Events of one side in counted steps: name code, step, and some columns of values."""

    texts: Sequence[str]
    name: Int32
    step: Int32
    steps: int
    columns: tuple[Int64, ...]


class NameTable(msgspec.Struct, frozen=True):
    """names: of each row in the base and in the candidate, None where it is not there."""

    names: list[tuple[str | None, str | None]]
    calls: Values
    columns: list[Values]

    def compared(self, *columns: Sequence[Change]) -> tuple[ComparedName, ...]:
        """The rows, with the changes of each column."""
        rows = zip(self.names, zip(*columns, strict=True), strict=True)
        return tuple(
            ComparedName(base, candidate, mean_calls(self.calls, row), changes)
            for row, ((base, candidate), changes) in enumerate(rows)
        )


def mean_calls(calls: Values, row: int) -> Calls:
    """Calls per step of a row."""
    base, candidate = (float(side[row].mean()) if side.shape[1] else 0.0 for side in calls)
    return Calls(base, candidate, candidate - base)


def name_table(base: Items, candidate: Items, renamed: Mapping[str, str]) -> NameTable:
    """Rows by name; `renamed` maps a name of the base to the name of the same thing in the candidate."""
    used = [{side.texts[code]: code for code in distinct(side.name)} for side in (base, candidate)]
    pairs = {
        old: new
        for old, new in renamed.items()
        if old in used[0] and new in used[1] and old not in used[1] and new not in used[0]
    }
    names: list[tuple[str | None, str | None]] = [
        (text, pairs.get(text, text if text in used[1] else None)) for text in used[0]
    ]
    taken = {new for _, new in names}
    names += [(None, text) for text in used[1] if text not in taken]
    values_of_side = []
    for which, side in enumerate((base, candidate)):
        row_of = np.full(len(side.texts) + 1, NO_CODE, np.int64)
        for row, both in enumerate(names):
            text = both[which]
            if text is not None:
                row_of[used[which][text]] = row
        rows, shape = row_of[side.name], (len(names), side.steps)
        values_of_side.append([per_step(rows, side.step, values, shape) for values in (None, *side.columns)])
    calls, *columns = list(zip(*values_of_side, strict=True))
    return NameTable(names, calls, columns)


def renames(tree: AlignedTree, role: Role) -> dict[str, str]:
    """Names of the base -> names of the candidate, where either stands at the place of the other alone."""
    nodes = np.flatnonzero((tree.role == role) & (tree.names[0] >= 0) & (tree.names[1] >= 0))
    sides = tree.base.tree.texts, tree.candidate.tree.texts
    pairs = {
        (sides[0][old], sides[1][new])
        for old, new in {(int(a), int(b)) for a, b in tree.names[:, nodes].T}
        if sides[0][old] != sides[1][new]
    }
    olds, news = [old for old, _ in pairs], [new for _, new in pairs]
    return {old: new for old, new in sorted(pairs) if olds.count(old) == 1 and news.count(new) == 1}


def joined(parts: Sequence[Items]) -> Items:
    """The items of all recordings of a side; steps are numbered on."""
    codes: dict[str, int] = {}
    names, steps, offset = [], [], 0
    for part in parts:
        recoded = np.full(len(part.texts), NO_CODE, np.int32)
        for code in distinct(part.name):
            recoded[code] = codes.setdefault(part.texts[code], len(codes))
        names.append(recoded[part.name])
        steps.append(np.where(part.step >= 0, part.step + offset, NO_CODE).astype(np.int32))
        offset += part.steps
    columns = zip(*(part.columns for part in parts), strict=True)
    return Items(
        list(codes),
        np.concatenate(names),
        np.concatenate(steps),
        offset,
        tuple(np.concatenate(column) for column in columns),
    )


def operator_items(trace: Trace, inside: Bool | None) -> Items:
    """Operator calls with host self and total, device self and total; `inside` bool[n] keeps some rows."""
    calls, steps = operators(trace), counted_steps(trace)
    step = steps.of_event[calls.rows]
    kept = np.flatnonzero(step >= 0 if inside is None else (step >= 0) & inside[calls.rows])
    values = (calls.host_self, calls.host_total, calls.device_self, calls.device_total)
    name = trace.events.name[calls.rows[kept]]
    return Items(trace.strings, name, step[kept], len(steps), tuple(column[kept] for column in values))


def kernel_items(trace: Trace) -> Items:
    """Kernels with their durations."""
    return _durations(trace, one_each(trace, of_kind(trace, Kind.KERNEL)))


def family_items(trace: Trace) -> Items:
    """Kernels, copies and memsets by family, with their durations."""
    steps, rows = counted_steps(trace), one_each(trace, of_kind(trace, *DEVICE))
    rows = rows[steps.of_event[rows] >= 0]
    durations = call_lengths(trace, rows)
    return Items(FAMILIES, families(trace)[rows].astype(np.int32), steps.of_event[rows], len(steps), (durations,))


def communication_items(trace: Trace) -> Items:
    """Communication kernels and the host operations that launch none, with their durations."""
    kernels = one_each(trace, np.flatnonzero(communication_kernels(trace)).astype(np.int32))
    return _durations(trace, np.concatenate([kernels, host_communication(trace)]).astype(np.int32))


def _durations(trace: Trace, rows: Int32) -> Items:
    steps = counted_steps(trace)
    rows = rows[(steps.of_event[rows] >= 0) & (trace.events.name[rows] >= 0)]
    durations = call_lengths(trace, rows)
    return Items(trace.strings, trace.events.name[rows], steps.of_event[rows], len(steps), (durations,))
