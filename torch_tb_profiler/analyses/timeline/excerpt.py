"""A part of a trace as a trace file of its own: a window, some categories, slices that last long enough.

What has two ends stays whole: a "B" keeps its "E", a flow is kept if all its ends are. Names of processes and
threads ("M" events) and the metadata around the events are always kept.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec.structs import replace

from torch_tb_profiler.analyses.timeline import ExcerptRange
from torch_tb_profiler.analyses.timeline.document import write
from torch_tb_profiler.analyses.tracks.events import FLOW_PHASES, INSTANT_PHASES, all_slices, of_phase
from torch_tb_profiler.analyses.tracks.flows import flow_rows
from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.model.kinds import event_ends
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import ABSENT, Bool, Int32, Trace, distinct_codes, name_mask


def excerpt(trace: Trace, cut: ExcerptRange) -> Iterator[bytes]:
    """The JSON document of what the cut keeps, piece by piece.

    Raises UsageError, before the first piece, for an unknown step or a cut that keeps no slice and no instant.
    """
    rows = _choose(trace, _at_step(trace, cut))
    if not (all_slices(trace) | of_phase(trace, INSTANT_PHASES))[rows].any():
        known = sorted({trace.strings[code] for code in distinct_codes(trace.events.category)})
        raise UsageError("no events match", hint=f"categories: {', '.join(known)}")
    return write(trace, rows)


def _at_step(trace: Trace, cut: ExcerptRange) -> ExcerptRange:
    """The cut with the window of its step, if it names one."""
    if cut.step is None:
        return cut
    if cut.begin is not None or cut.end is not None:
        raise UsageError("give a step or a window, not both")
    table = steps(trace)
    if not table.recorded or cut.step not in table.names:
        hint = f"steps: {', '.join(table.names)}" if table.recorded else "no step is recorded: give a window"
        raise UsageError(f"there is no step {cut.step!r}", hint=hint)
    i = table.names.index(cut.step)
    return replace(cut, begin=int(table.starts[i]), end=int(table.ends[i]))


def _choose(trace: Trace, cut: ExcerptRange) -> Int32:
    """int32[k]: the rows that the cut keeps, in file order."""
    slices, instants = all_slices(trace), of_phase(trace, INSTANT_PHASES)
    category, inside = _of_category(trace, cut.categories), _touches(trace, cut)
    long_enough = event_ends(trace) - trace.events.start >= cut.min_duration_ns
    kept = inside & category & ((slices & long_enough) | instants)
    kept |= inside & of_phase(trace, b"C")
    kept[_ends_of_pairs(trace, kept)] = True
    other = inside & ~slices & ~of_phase(trace, INSTANT_PHASES + FLOW_PHASES + b"CEM")
    if cut.categories:
        other &= category
    return np.flatnonzero(kept | other | _whole_flows(trace, inside) | of_phase(trace, b"M")).astype(np.int32)


def _touches(trace: Trace, cut: ExcerptRange) -> Bool:
    start, finish = trace.events.start, event_ends(trace)
    inside: Bool = start != ABSENT
    if cut.begin is not None:
        inside &= (finish > cut.begin) | (start >= cut.begin)
    if cut.end is not None:
        inside &= start < cut.end
    return inside


def _of_category(trace: Trace, categories: str) -> Bool:
    if not categories:
        return np.ones(len(trace), np.bool_)
    wanted = {category.strip().lower() for category in categories.split(",")}
    mask: Bool = name_mask(trace.strings, lambda text: text.lower() in wanted)[trace.events.category]
    return mask


def _ends_of_pairs(trace: Trace, kept: Bool) -> Int32:
    """The "E" of each kept "B": the event of its thread at the time it ends."""
    events = trace.events
    begins = np.flatnonzero(kept & (events.phase == ord("B")))
    finishes = np.flatnonzero((events.phase == ord("E")) & (events.start != ABSENT)).astype(np.int32)
    if len(begins) == 0:
        return finishes[:0]
    wanted = np.stack([events.thread[begins], events.start[begins] + events.duration[begins]], 1)
    offered = np.stack([events.thread[finishes], events.start[finishes]], 1)
    _, code = np.unique(np.concatenate([wanted, offered]), axis=0, return_inverse=True)
    code = code.ravel()
    # Of several that end at one instant as many are taken as are wanted.
    needed = np.bincount(code[: len(begins)], minlength=int(code.max()) + 1)
    mine = code[len(begins) :]
    order = np.argsort(mine, kind="stable")
    turn = np.empty(len(mine), np.int64)
    turn[order] = np.arange(len(mine)) - np.searchsorted(mine[order], mine[order], "left")
    return finishes[turn < needed[mine]]


def _whole_flows(trace: Trace, inside: Bool) -> Bool:
    """bool[n]: events of flows all of whose ends are in the window."""
    events, flows = trace.events, flow_rows(trace)
    mask = np.zeros(len(trace), np.bool_)
    if len(flows) == 0:
        return mask
    keys = events.name[flows], events.category[flows], events.id[flows]
    order = np.lexsort(keys)
    is_first = np.zeros(len(flows), np.bool_)
    for key in keys:
        is_first[1:] |= np.diff(key[order]) != 0
    code = np.empty(len(flows), np.int64)
    code[order] = np.cumsum(is_first)
    cut_off = np.bincount(code, ~inside[flows]) > 0
    mask[flows[~cut_off[code]]] = True
    return mask
