"""Every idle nanosecond with one cause: gaps cut by what the host, or else the device, was doing."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.schedule.causes import SOFT, Cause
from torch_tb_profiler.analyses.schedule.gaps import Gaps, gaps
from torch_tb_profiler.analyses.schedule.threads import Pieces, cut
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.model.schedule.items import clock_shift_ns, device_items
from torch_tb_profiler.model.schedule.stream_waits import stream_waits
from torch_tb_profiler.model.schedule.threads import handoffs, main_thread
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Int8, Int32, Int64, Trace, derived

LONGEST_GAP_NS = 30_000
"""A device that starts submitted work later than this is held up by something else."""

_FOLLOWS_NS = 20_000
"""Work that starts this soon after another device's item ended waited for that."""


class Segments(msgspec.Struct, frozen=True):
    """Parts of gaps with one cause, in one step each; they tile the gaps. Columns of length k, by begin.

    begin, end  int64  ns on the device's own clock
    cause  int8   a Cause
    row    int32  what to blame: the innermost host slice; of launch latency and gaps between queued work the call
                  that launched the next item, else that item; of a wait for another device or stream its item.
                  NO_CODE where nothing is recorded
    gap    int64  index into `gaps`
    step   int32  index into `steps`
    """

    gaps: Gaps
    begin: Int64
    end: Int64
    cause: Int8
    row: Int32
    gap: Int64
    step: Int32

    @property
    def length(self) -> Int64:
        return self.end - self.begin


@derived
def segments(trace: Trace, device: int, stream: int | None = None) -> Segments:
    """The idle time of a device, or of one of its streams, in the complete steps."""
    idle = gaps(trace, device, stream)
    parts = [_host(trace, idle), *_device(trace, idle, device, stream)]
    columns = (np.concatenate(column) for column in zip(*(msgspec.structs.astuple(p) for p in parts), strict=True))
    gap, begin, end, row, cause = columns
    return _in_steps(trace, idle, Pieces(gap, begin, end, row, cause))


def _host(trace: Trace, idle: Gaps) -> Pieces:
    """[begin, late_until) of each gap, by what its thread was in; with its hand-off partner where it waits."""
    shift = clock_shift_ns(trace)
    own = cut(trace, idle.thread, idle.begin + shift, idle.late_until + shift)
    other = _partners(trace)[idle.thread[own.window]]
    soft = np.isin(own.cause, SOFT) & (other != NO_CODE)
    asked = np.flatnonzero(soft)
    theirs = cut(trace, other[asked], own.begin[asked], own.end[asked])
    mine = asked[theirs.window]
    counts = ~np.isin(theirs.cause, SOFT)
    counts |= (own.cause[mine] == Cause.UNRECORDED) & (theirs.cause != Cause.UNRECORDED)
    followed = Pieces(
        own.window[mine],
        theirs.begin,
        theirs.end,
        np.where(counts, theirs.row, own.row[mine]).astype(np.int32),
        np.where(counts, theirs.cause, own.cause[mine]).astype(np.int8),
    )
    return Pieces(
        np.append(own.window[~soft], followed.window),
        np.append(own.begin[~soft], followed.begin) - shift,
        np.append(own.end[~soft], followed.end) - shift,
        np.append(own.row[~soft], followed.row),
        np.append(own.cause[~soft], followed.cause),
    )


def _partners(trace: Trace) -> Int32:
    """int32[threads + 1]: the thread that each hands over to most: the main thread's, and of all others the main
    thread; NO_CODE of those that hand over nothing, and in the last cell, which answers for NO_CODE."""
    hands, main = handoffs(trace), main_thread(trace)
    others = np.append(hands.source[hands.source != main], hands.target[hands.target != main])
    partner = np.full(len(trace.threads) + 1, NO_CODE, np.int32)
    if len(others):
        partner[others] = main
        partner[main] = np.argmax(np.bincount(others))
    return partner


def _device(trace: Trace, idle: Gaps, device: int, stream: int | None) -> list[Pieces]:
    """[late_until, end) of each gap: the device, another stream or another device."""
    gap = np.flatnonzero(idle.end > idle.late_until)
    begin, end, following = idle.late_until[gap], idle.end[gap], idle.next[gap]
    waits = []
    if stream is not None:
        source, until = _stream_sources(trace, idle, following)
        until = np.clip(until, begin, end)
        held = until > begin
        cause = np.full(int(held.sum()), Cause.WAITS_FOR_STREAM, np.int8)
        waits = [Pieces(gap[held], begin[held], until[held], source[held], cause)]
        rest = end > until
        gap, begin, end, following = gap[rest], until[rest], end[rest], following[rest]
    row, cause = _held_up(trace, idle, device, (gap, begin, end, following))
    return [*waits, Pieces(gap, begin, end, row, cause)]


def _held_up(
    trace: Trace, idle: Gaps, device: int, parts: tuple[Int64, Int64, Int64, Int64]
) -> tuple[Int32, Int8]:
    """(row, cause) of parts of gaps (their gap, begin, end and next item) in which the next item was submitted."""
    gap, begin, end, following = parts
    work, there = idle.work, following >= 0
    submitted = np.where(there, work.submitted[following], ABSENT)
    item = np.where(there, work.row[following], NO_CODE)
    call = np.where(there, work.call[following], NO_CODE)
    before = np.where(following > 0, work.call[np.maximum(following - 1, 0)], NO_CODE)
    long = end - begin > LONGEST_GAP_NS
    rules = (
        (~there, Cause.TAIL, NO_CODE),
        (submitted == ABSENT, Cause.UNLINKED, item),
        (long & (following == 0), Cause.BEFORE_RECORDING, item),
        (long, Cause.DEVICE_WAIT, _other_device(trace, device, end)),
        (call == before, Cause.GRAPH_GAP, call),
        (submitted > idle.begin[gap], Cause.LAUNCH_LATENCY, call),
    )
    conditions = [condition for condition, _, _ in rules]
    cause = np.select(conditions, [int(meaning) for _, meaning, _ in rules], Cause.KERNEL_GAP)
    row = np.select(conditions, [blamed for _, _, blamed in rules], call)
    return row.astype(np.int32), cause.astype(np.int8)


def _other_device(trace: Trace, device: int, end: Int64) -> Int64:
    """Row of the item of another device that ended right before each end; NO_CODE if none did."""
    work = device_items(trace)
    others = np.flatnonzero(work.device != device)
    if len(others) == 0:
        return np.full(len(end), NO_CODE, np.int64)
    others = others[np.argsort(work.end[others], kind="stable")]
    finish = work.end[others] - clock_shift_ns(trace)
    at = np.searchsorted(finish, end, "right") - 1
    near = (at >= 0) & (end - finish[np.maximum(at, 0)] <= _FOLLOWS_NS)
    return np.where(near, work.row[others[np.maximum(at, 0)]], NO_CODE).astype(np.int64)


def _stream_sources(trace: Trace, idle: Gaps, following: Int64) -> tuple[Int32, Int64]:
    """(row, end) of the last item of another stream that each item waits for; NO_CODE and ABSENT if none."""
    work, waits = device_items(trace), stream_waits(trace)
    last = np.full(len(work), NO_CODE, np.int64)
    order = np.argsort(work.end[waits.source], kind="stable")
    last[waits.item[order]] = waits.source[order]
    source = np.where(following >= 0, last[idle.work.position[following]], NO_CODE)
    until = np.where(source >= 0, work.end[source] - clock_shift_ns(trace), ABSENT)
    return np.where(source >= 0, work.row[source], NO_CODE).astype(np.int32), until


def _in_steps(trace: Trace, idle: Gaps, parts: Pieces) -> Segments:
    """Cut where a step begins, so that each part counts for one."""
    borders = steps(trace).starts
    first = np.maximum(np.searchsorted(borders, parts.begin, "right") - 1, 0)
    last = np.maximum(np.searchsorted(borders, parts.end, "left") - 1, first)
    counts = last - first + 1
    part = np.repeat(np.arange(len(counts)), counts)
    step = np.arange(len(part)) - np.repeat(np.cumsum(counts) - counts, counts) + first[part]
    begin = np.where(step > first[part], borders[step], parts.begin[part])
    end = np.where(step < last[part], borders[np.minimum(step + 1, len(borders) - 1)], parts.end[part])
    order = np.argsort(begin, kind="stable")
    order = order[(end > begin)[order]]
    part = part[order]
    return Segments(
        idle,
        begin[order],
        end[order],
        parts.cause[part],
        parts.row[part],
        parts.window[part],
        step[order].astype(np.int32),
    )


def in_step(trace: Trace, idle: Segments, step: str) -> Bool:
    """bool[k]: parts in the complete steps of this name; "" is all. NotFoundError lists the steps."""
    spans = steps(trace)
    names = np.array([name == step for name in spans.names], np.bool_) & spans.complete
    if not step:
        return np.ones(len(idle.begin), np.bool_)
    if not names.any():
        known = [name for name, whole in zip(spans.names, spans.complete.tolist(), strict=True) if whole]
        raise NotFoundError(f"there is no complete step {step!r}", hint=f"steps: {', '.join(known[:20])}")
    inside: Bool = names[idle.step]
    return inside
