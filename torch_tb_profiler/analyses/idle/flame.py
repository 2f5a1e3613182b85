"""Idle time as a flame graph: the cause, and within it the slices around the event to blame."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.schedule.segments import counted_step_mask, idle_segments
from torch_tb_profiler.analyses.shared.grouping import group, stable_order
from torch_tb_profiler.base.markers import MODULE_PREFIX, is_step, is_user_frame
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.calls.calltree import call_tree
from torch_tb_profiler.model.kinds import Kind, event_kinds
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int8, Int32, Int64, Trace, name_mask

_MIN_FRAME_SHARE = 0.001
"""Frames with a smaller share of the idle time are left out of the flame graph."""


class IdleFlameGraph(msgspec.Struct, frozen=True):
    """Frames, each after the frame around it: the cause, then what the host was in, outermost first; ns.

    parent  position of the frame around it, NO_CODE for a cause
    cause   a Cause
    value   with all frames inside
    event   row of the trace of one of its slices, NO_CODE for a cause
    total   all idle time, including frames that are left out
    """

    names: tuple[str, ...]
    parent: Int64
    cause: Int8
    value: Int64
    event: Int64
    total: int


@derived
def idle_flame_graph(trace: Trace, device: int, stream: int | None = None, step: str = "") -> IdleFlameGraph:
    """Return the flame graph of the typical steps, or of one; frames of libraries and steps are folded away.

    Raise NotFoundError for an unknown step.
    """
    idle = idle_segments(trace, device, stream)
    is_chosen = counted_step_mask(trace, step)[idle.step]
    chosen = slice(None) if is_chosen.all() else np.flatnonzero(is_chosen)  # all: views instead of copies
    cause, row, length = idle.cause[chosen], idle.row[chosen], idle.length[chosen]
    chains = _build_name_chains(trace, row)
    chain = chains.of_row[row]
    key = cause * np.int32(len(chains.name) + 1)
    key += chain
    keys = group(key)
    sums = keys.sums(length)
    minimum = _MIN_FRAME_SHARE * float(sums.sum())
    index: dict[tuple[int, int], int] = {}
    values: list[int] = []
    parents: list[int] = []

    def frame_number(of_cause: int, of_chain: int) -> int:
        if (of_cause, of_chain) not in index:
            parent = NO_CODE if of_chain == NO_CODE else frame_number(of_cause, int(chains.parent[of_chain]))
            index[of_cause, of_chain] = len(values)
            values.append(0)
            parents.append(parent)
        return index[of_cause, of_chain]

    for first, value in zip(keys.first.tolist(), sums.tolist(), strict=True):
        frame = frame_number(int(cause[first]), int(chain[first]))
        while frame != NO_CODE:
            values[frame] += value
            frame = parents[frame]
    large = [frame for frame, value in enumerate(values) if value >= minimum]
    large.sort(key=lambda frame: (_depth(parents, frame), -values[frame]))
    position = {frame: position for position, frame in enumerate(large)}
    keys_of_frames = list(index)
    chain = np.array([keys_of_frames[frame][1] for frame in large], np.int64)
    name = np.append(chains.name, NO_CODE)[chain]
    return IdleFlameGraph(
        names=tuple(trace.strings[code] if code >= 0 else "" for code in name.tolist()),
        parent=np.array([position.get(parents[frame], NO_CODE) for frame in large], np.int64),
        cause=np.array([keys_of_frames[frame][0] for frame in large], np.int8),
        value=np.array([values[frame] for frame in large], np.int64),
        event=np.append(chains.event, NO_CODE)[chain],
        total=int(sums.sum()),
    )


def _depth(parents: list[int], frame: int) -> int:
    depth = 0
    while parents[frame] != NO_CODE:
        frame, depth = parents[frame], depth + 1
    return depth


class _NameChains(msgspec.Struct, frozen=True):
    """Distinct chains of names: for each its parent chain, the code of its last name, and one of its slices.

    of_row  int32[n + 1]  the chain of each requested slice; the last cell, that of NO_CODE, is NO_CODE
    """

    of_row: Int32
    parent: Int64
    name: Int64
    event: Int64


def _build_name_chains(trace: Trace, rows: Int32) -> _NameChains:
    """Return the chains of names that end in some slices, without folded names and immediate repetitions."""
    tree, folded = call_tree(trace), _find_folded_names(trace)
    needed = np.zeros(len(trace), np.bool_)
    level = rows[rows >= 0]
    while len(level):
        needed[level] = True
        parents = tree.parent[level]
        parents = np.sort(parents[(parents >= 0) & ~needed[parents]])
        level = parents[np.append(True, parents[1:] != parents[:-1])] if len(parents) else parents
    slices_by_depth = np.flatnonzero(needed)
    slices_by_depth = slices_by_depth[stable_order(tree.depth[slices_by_depth])]
    chain = np.full(len(trace) + 1, NO_CODE, np.int32)
    parent, name, event = (np.empty(0, np.int64) for _ in range(3))
    for slices in np.split(slices_by_depth, np.flatnonzero(np.diff(tree.depth[slices_by_depth])) + 1):
        around, code = chain[tree.parent[slices]], trace.events.name[slices]
        repeats_parent = np.append(name, NO_CODE - 1)[around] == code
        left_out = repeats_parent | folded[code]
        chain[slices[left_out]] = around[left_out]
        around, code, shown = around[~left_out], code[~left_out], slices[~left_out]
        distinct = group(around, code)
        chain[shown] = len(name) + distinct.which
        parent = np.append(parent, around[distinct.first])
        name = np.append(name, code[distinct.first])
        event = np.append(event, shown[distinct.first])
    return _NameChains(chain, parent, name, event)


def _find_folded_names(trace: Trace) -> Bool:
    """Return which names the flame graph leaves out, those of steps and of library frames: bool[strings + 1]."""
    frame = np.zeros(len(trace.strings) + 1, np.bool_)
    frame[trace.events.name[event_kinds(trace) == Kind.PYTHON]] = True
    frame[-1] = False
    shown = name_mask(trace.strings, lambda name: is_user_frame(name) or name.startswith(MODULE_PREFIX))
    return (frame & ~shown) | name_mask(trace.strings, is_step)
