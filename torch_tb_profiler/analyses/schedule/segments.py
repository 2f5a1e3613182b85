"""Attribution of idle time: each gap cut into segments with one cause, from what the host or device was doing."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.schedule.causes import (
    UNSPECIFIC_CAUSES,
    Cause,
    StateIntervals,
    split_by_state,
    thread_states,
)
from torch_tb_profiler.analyses.schedule.gaps import MAX_QUEUE_GAP_NS, DeviceGaps, device_gaps
from torch_tb_profiler.analyses.shared.typical_steps import step_kinds
from torch_tb_profiler.base.arrays import distinct_numbers, search_sorted
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.base.grammar import list_options
from torch_tb_profiler.base.memo import prepared
from torch_tb_profiler.model.schedule.compiled import IdleGaps, schedule_functions
from torch_tb_profiler.model.schedule.items import clock_shift_ns, device_items
from torch_tb_profiler.model.schedule.stream_waits import stream_waits
from torch_tb_profiler.model.schedule.threads import handoffs, main_thread
from torch_tb_profiler.model.steps import step_noun, steps
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Int8, Int32, Int64, Trace

_MAX_FOLLOW_NS = 20_000
"""Work that starts at most this long after another device's item ended is assumed to have waited for it."""


_WAITING_CAUSES = (Cause.DEVICE_WAIT, Cause.WAITS_FOR_STREAM)
"""Causes of idle time in which the next work is submitted and waits for other work."""


class IdleSegments(msgspec.Struct, frozen=True):
    """Segments of gaps, each with one cause and in one step; they tile the gaps. Columns of length k, by begin.

    begin, end  int64  ns on the device's own clock
    cause  int8   a Cause
    row    int32  the event to blame: the innermost host slice; for launch latency and gaps between queued work the
                  call that launched the next item, or else the item; for a wait for another device or stream
                  the item there. NO_CODE where nothing is recorded
    gap    int32  index into `gaps`
    step   int32  index into `steps`
    """

    gaps: DeviceGaps
    begin: Int64
    end: Int64
    cause: Int8
    row: Int32
    gap: Int32
    step: Int32

    @property
    def length(self) -> Int64:
        return self.end - self.begin

    @property
    def emptied_by(self) -> Int32:
        """Return int32[k]: the call that drained the queue before each segment, NO_CODE for none.

        Where the next work is submitted and waits for other work, no drained queue is why the device is idle.
        """
        emptied_by = self.gaps.emptied_by[self.gap]
        emptied_by[np.isin(self.cause, _WAITING_CAUSES)] = NO_CODE
        return emptied_by


@prepared
def idle_segments(trace: Trace, device: int, stream: int | None = None) -> IdleSegments:
    """Return the idle time of a device, or of one of its streams, in the complete steps."""
    gaps = device_gaps(trace, device, stream)
    borders, of_devices = steps(trace).starts, _device_parts(trace, gaps, device, stream)
    functions = schedule_functions()
    if functions is not None:
        begin, end, row, in_gap, step, cause = functions.idle(_given_to_c(trace, gaps, of_devices, borders))
        return IdleSegments(gaps, begin, end, cause, row, in_gap, step)
    first, last = _steps_of(borders, gaps.begin, gaps.end)
    parts = [_host_parts(trace, gaps), *of_devices]
    pieces = [
        msgspec.structs.astuple(piece) + (step,)
        for part in parts
        for piece, step in _cut_at(borders, part, first[part.window], (last > first)[part.window])
    ]
    del parts
    gap, begin, end, row, cause, in_step = (np.concatenate(column) for column in zip(*pieces, strict=True))
    del pieces
    order = np.argsort(begin, kind="stable")
    in_gap = gap[order].astype(np.int32)
    return IdleSegments(gaps, begin[order], end[order], cause[order], row[order], in_gap, in_step[order])


def _given_to_c(trace: Trace, gaps: DeviceGaps, parts: list[StateIntervals], borders: Int64) -> IdleGaps:
    """Return the gaps with the states of the threads that they wait for, and of the partners of those."""
    late, partner = gaps.late_until > gaps.begin, _handoff_partners(trace)
    thread = np.where(late, gaps.thread, NO_CODE).astype(np.int32)
    waited = distinct_numbers(thread)
    needed = {*waited, *partner[waited].tolist()} - {NO_CODE}
    states = [thread_states(trace, code) if code in needed else None for code in range(len(trace.threads))]
    nothing = np.empty(0, np.int64)
    none = nothing, nothing, nothing, nothing.astype(np.int32), nothing.astype(np.int8)
    streams, devices = [none, none, *map(msgspec.structs.astuple, parts)][-2:]
    return IdleGaps(
        begin=gaps.begin,
        late=gaps.late_until,
        shift=clock_shift_ns(trace),
        thread=thread,
        partner=partner[:-1],
        states=[None if each is None else (each.times, each.row, each.cause) for each in states],
        parts=(streams, devices),
        borders=borders,
        unspecific=tuple(map(int, UNSPECIFIC_CAUSES)),
        unrecorded=int(Cause.UNRECORDED),
    )


def _host_parts(trace: Trace, gaps: DeviceGaps) -> StateIntervals:
    """Cut [begin, late_until) of each gap by the state of its thread, or of the thread that one waits for."""
    shift = clock_shift_ns(trace)
    own = split_by_state(trace, gaps.thread, gaps.begin + shift, gaps.late_until + shift)
    partner = _handoff_partners(trace)[gaps.thread[own.window]]
    waits = np.isin(own.cause, UNSPECIFIC_CAUSES) & (partner != NO_CODE)
    waiting, rest = np.flatnonzero(waits), np.flatnonzero(~waits)
    theirs = split_by_state(trace, partner[waiting], own.begin[waiting], own.end[waiting])
    mine = waiting[theirs.window]
    partner_counts = ~np.isin(theirs.cause, UNSPECIFIC_CAUSES)
    partner_counts |= (own.cause[mine] == Cause.UNRECORDED) & (theirs.cause != Cause.UNRECORDED)
    return StateIntervals(
        np.append(own.window[rest], own.window[mine]),
        np.append(own.begin[rest], theirs.begin) - shift,
        np.append(own.end[rest], theirs.end) - shift,
        np.append(own.row[rest], np.where(partner_counts, theirs.row, own.row[mine])).astype(np.int32, copy=False),
        np.append(own.cause[rest], np.where(partner_counts, theirs.cause, own.cause[mine])).astype(
            np.int8, copy=False
        ),
    )


def _handoff_partners(trace: Trace) -> Int32:
    """Return the thread that each thread hands work over to most: int32[threads + 1].

    All threads but the main one hand over to the main thread. NO_CODE stands for a thread that hands over nothing;
    the last cell is NO_CODE, too, so that indexing with NO_CODE gives NO_CODE.
    """
    hands, main = handoffs(trace), main_thread(trace)
    others = np.append(hands.source[hands.source != main], hands.target[hands.target != main])
    partner = np.full(len(trace.threads) + 1, NO_CODE, np.int32)
    if len(others):
        partner[others] = main
        partner[main] = np.argmax(np.bincount(others))
    return partner


def _device_parts(trace: Trace, gaps: DeviceGaps, device: int, stream: int | None) -> list[StateIntervals]:
    """Attribute [late_until, end) of each gap to the device, another stream, or another device."""
    gap = np.flatnonzero(gaps.end > gaps.late_until)
    begin, end, following = gaps.late_until[gap], gaps.end[gap], gaps.next[gap]
    stream_parts = []
    if stream is not None:
        source, until = _stream_sources(trace, gaps, following)
        until = np.clip(until, begin, end)
        waits = until > begin
        cause = np.full(int(waits.sum()), Cause.WAITS_FOR_STREAM, np.int8)
        stream_parts = [StateIntervals(gap[waits], begin[waits], until[waits], source[waits], cause)]
        rest = end > until
        gap, begin, end, following = gap[rest], until[rest], end[rest], following[rest]
    row, cause = _device_causes(trace, gaps, device, (gap, begin, end, following))
    return [*stream_parts, StateIntervals(gap, begin, end, row, cause)]


def _device_causes(
    trace: Trace, gaps: DeviceGaps, device: int, parts: tuple[Int64, Int64, Int64, Int64]
) -> tuple[Int32, Int8]:
    """Return (row, cause) of parts of gaps (gap, begin, end, next item) whose next item was submitted."""
    gap, begin, end, following = parts
    ordered, exists = gaps.items, following >= 0
    submitted = np.where(exists, ordered.submitted[following], ABSENT)
    item = np.where(exists, ordered.row[following], NO_CODE)
    call = np.where(exists, ordered.call[following], NO_CODE)
    before = np.where(following > 0, ordered.call[np.maximum(following - 1, 0)], NO_CODE)
    long = end - begin > MAX_QUEUE_GAP_NS
    rules = (
        (~exists, Cause.TAIL, NO_CODE),
        (submitted == ABSENT, Cause.UNLINKED, item),
        (long & (following == 0), Cause.BEFORE_RECORDING, item),
        (long, Cause.DEVICE_WAIT, _item_of_other_device(trace, device, end)),
        (call == before, Cause.GRAPH_GAP, call),
        (submitted > gaps.begin[gap], Cause.LAUNCH_LATENCY, call),
    )
    conditions = [condition for condition, _, _ in rules]
    cause = np.select(conditions, [int(rule_cause) for _, rule_cause, _ in rules], Cause.KERNEL_GAP)
    row = np.select(conditions, [blamed for _, _, blamed in rules], call)
    return row.astype(np.int32), cause.astype(np.int8)


def _item_of_other_device(trace: Trace, device: int, end: Int64) -> Int64:
    """Return the row of another device's item that ended right before each end, or NO_CODE."""
    work = device_items(trace)
    others = np.flatnonzero(work.device != device)
    if len(others) == 0:
        return np.full(len(end), NO_CODE, np.int64)
    others = others[np.argsort(work.end[others], kind="stable")]
    finish = work.end[others] - clock_shift_ns(trace)
    at = search_sorted(finish, end, "right") - 1
    near = (at >= 0) & (end - finish[np.maximum(at, 0)] <= _MAX_FOLLOW_NS)
    return np.where(near, work.row[others[np.maximum(at, 0)]], NO_CODE).astype(np.int64)


def _stream_sources(trace: Trace, gaps: DeviceGaps, following: Int64) -> tuple[Int32, Int64]:
    """Return (row, end) of the last item of another stream that each item waits for, or (NO_CODE, ABSENT)."""
    work, waits = device_items(trace), stream_waits(trace)
    last = np.full(len(work), NO_CODE, np.int64)
    order = np.argsort(work.end[waits.source], kind="stable")
    last[waits.item[order]] = waits.source[order]
    source = np.where(following >= 0, last[gaps.items.position[following]], NO_CODE)
    until = np.where(source >= 0, work.end[source] - clock_shift_ns(trace), ABSENT)
    return np.where(source >= 0, work.row[source], NO_CODE).astype(np.int32), until


def _steps_of(borders: Int64, begin: Int64, end: Int64) -> tuple[Int32, Int32]:
    """Return the first and the last of the steps, which begin at `borders`, that each interval lies in."""
    first = np.maximum(search_sorted(borders, begin, "right") - 1, 0)
    last = np.maximum(search_sorted(borders, end, "left") - 1, first)
    return first.astype(np.int32), last.astype(np.int32)


def _cut_at(
    borders: Int64, parts: StateIntervals, step_of: Int32, may_cross: Bool
) -> list[tuple[StateIntervals, Int32]]:
    """Cut parts where a step begins, so that each is in one step; return pieces, none empty, with their steps.

    step_of    the step of each part, which is overwritten where the part `may_cross` a border
    """
    doubtful = np.flatnonzero(may_cross)
    first, last = _steps_of(borders, parts.begin[doubtful], parts.end[doubtful])
    step_of[doubtful] = first
    crosses = last > first
    crossing, first, last = doubtful[crosses], first[crosses], last[crosses]
    if len(crossing) == 0:
        return [(parts, step_of)]
    # Most parts are in one step: only what the others have in further steps is added.
    further = last - first
    added, last_of_added = np.repeat(crossing, further), np.repeat(last, further)
    step = np.arange(len(added)) - np.repeat(np.cumsum(further) - further - first, further) + 1
    end = parts.end.copy()
    end[crossing] = borders[first + 1]
    added_end = np.where(step < last_of_added, borders[np.minimum(step + 1, len(borders) - 1)], parts.end[added])
    nonempty = added_end > borders[step]  # two steps may begin at once
    added, step, added_end = added[nonempty], step[nonempty], added_end[nonempty]
    in_further = StateIntervals(
        parts.window[added], borders[step], added_end, parts.row[added], parts.cause[added]
    )
    return [
        (msgspec.structs.replace(parts, end=end), step_of),
        (in_further, step.astype(np.int32)),
    ]


def counted_step_mask(trace: Trace, step: str = "") -> Bool:
    """Return which steps count, bool[steps]: the typical ones, or the complete steps named `step`.

    Raise NotFoundError, listing the steps, if no complete step has the name.
    """
    spans = steps(trace)
    if not step:
        return step_kinds(trace).typical
    chosen: Bool = np.array([name == step for name in spans.names], np.bool_) & spans.complete
    if not chosen.any():
        known = [name for name, complete in zip(spans.names, spans.complete.tolist(), strict=True) if complete]
        noun = step_noun(trace)
        raise NotFoundError(f"there is no complete {noun} {step!r}", hint=list_options(f"{noun}s", known))
    return chosen
