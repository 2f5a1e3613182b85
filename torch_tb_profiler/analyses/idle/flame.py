"""Idle time as a flame graph: the cause, and in it the slices around what is to blame."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.schedule.segments import in_step, segments
from torch_tb_profiler.analyses.shared.grouping import group
from torch_tb_profiler.base.markers import MODULE_PREFIX, is_step, is_user_frame
from torch_tb_profiler.model.calls.calltree import call_tree
from torch_tb_profiler.model.kinds import Kind, event_kinds
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int8, Int32, Int64, Trace, derived, name_mask

_LEAST_SHARE = 0.001
"""Frames with less of the idle time are left out of the flame graph."""


class IdleFlame(msgspec.Struct, frozen=True):
    """Frames, each after the one around it: the cause, then what the host was in, outermost first; ns.

    parent  position of the frame around it, NO_CODE for a cause
    cause   a Cause
    value   with all frames inside
    event   row of the trace of one of its slices, NO_CODE for a cause
    total   all of the idle time, with what is left out
    """

    names: tuple[str, ...]
    parent: Int64
    cause: Int8
    value: Int64
    event: Int64
    total: int


@derived
def idle_flame(trace: Trace, device: int, stream: int | None = None, step: str = "") -> IdleFlame:
    """Of the complete steps, or of one; frames of libraries and steps are folded into what is around them.

    Raises NotFoundError for an unknown step.
    """
    idle = segments(trace, device, stream)
    kept = np.flatnonzero(in_step(trace, idle, step))
    cause, row, length = idle.cause[kept], idle.row[kept], idle.length[kept]
    paths = _paths(trace, row)
    path = np.where(row >= 0, paths.of_row[row], NO_CODE)
    keys = group(cause.astype(np.int64), path)
    sums = keys.sums(length)
    least = _LEAST_SHARE * float(sums.sum())
    index: dict[tuple[int, int], int] = {}
    values: list[int] = []
    above: list[int] = []

    def place(of_cause: int, at: int) -> int:
        if (of_cause, at) not in index:
            parent = NO_CODE if at == NO_CODE else place(of_cause, int(paths.parent[at]))
            index[of_cause, at] = len(values)
            values.append(0)
            above.append(parent)
        return index[of_cause, at]

    for first, value in zip(keys.first.tolist(), sums.tolist(), strict=True):
        at = place(int(cause[first]), int(path[first]))
        while at != NO_CODE:
            values[at] += value
            at = above[at]
    wanted = [which for which, value in enumerate(values) if value >= least]
    wanted.sort(key=lambda which: (_depth(above, which), -values[which]))
    number = {which: position for position, which in enumerate(wanted)}
    places = list(index)
    chain = np.array([places[which][1] for which in wanted], np.int64)
    name = np.append(paths.name, NO_CODE)[chain]
    return IdleFlame(
        names=tuple(trace.strings[code] if code >= 0 else "" for code in name.tolist()),
        parent=np.array([number.get(above[which], NO_CODE) for which in wanted], np.int64),
        cause=np.array([places[which][0] for which in wanted], np.int8),
        value=np.array([values[which] for which in wanted], np.int64),
        event=np.append(paths.event, NO_CODE)[chain],
        total=int(sums.sum()),
    )


def _depth(above: list[int], at: int) -> int:
    depth = 0
    while above[at] != NO_CODE:
        at, depth = above[at], depth + 1
    return depth


class _Paths(msgspec.Struct, frozen=True):
    """Distinct chains of names: of each the one around it, the code of its last name, and one of its slices.

    of_row  int64[n + 1]  the chain of each slice that is asked for
    """

    of_row: Int64
    parent: Int64
    name: Int64
    event: Int64


def _paths(trace: Trace, rows: Int32) -> _Paths:
    """The chains that end in some slices, what is folded left out."""
    tree, folded = call_tree(trace), _folded(trace)
    needed = np.zeros(len(trace), np.bool_)
    level = rows[rows >= 0]
    while len(level):
        needed[level] = True
        above = tree.parent[level]
        above = np.sort(above[(above >= 0) & ~needed[above]])
        level = above[np.append(True, above[1:] != above[:-1])] if len(above) else above
    asked = np.flatnonzero(needed)
    asked = asked[np.argsort(tree.depth[asked], kind="stable")]
    path = np.full(len(trace) + 1, NO_CODE, np.int64)
    parent, name, event = (np.empty(0, np.int64) for _ in range(3))
    for slices in np.split(asked, np.flatnonzero(np.diff(tree.depth[asked])) + 1):
        around, code = path[tree.parent[slices]], trace.events.name[slices].astype(np.int64)
        again = np.append(name, NO_CODE - 1)[around] == code
        left_out = again | folded[code]
        path[slices[left_out]] = around[left_out]
        around, code, fresh = around[~left_out], code[~left_out], slices[~left_out]
        distinct = group(around, code)
        path[fresh] = len(name) + distinct.which
        parent = np.append(parent, around[distinct.first])
        name = np.append(name, code[distinct.first])
        event = np.append(event, fresh[distinct.first])
    return _Paths(path, parent, name, event)


def _folded(trace: Trace) -> Bool:
    """bool[strings + 1]: names that the flame graph leaves out: of steps and of frames that are not the user's."""
    frame = np.zeros(len(trace.strings) + 1, np.bool_)
    frame[trace.events.name[event_kinds(trace) == Kind.PYTHON]] = True
    frame[-1] = False
    shown = name_mask(trace.strings, lambda name: is_user_frame(name) or name.startswith(MODULE_PREFIX))
    return (frame & ~shown) | name_mask(trace.strings, is_step)
