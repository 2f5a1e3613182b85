"""One graph of a trace: who waits for whom, with weights that give the recorded times to the nanosecond.

Two families of nodes, two recurrences (max-plus). x: time of a point, s and e: start and end of an item.

    x[k] = max(x[k - 1] + step[k], e[source] + weight, x[source] + weight)        along a thread
    s[i] = max(e[i - 1] + gap[i], x[submission] + launch[i], e[source] + weight)  along a stream

Typical latencies are the weights; the latest of an item's reasons *binds* and takes what remains. What has no
reason (the first item of a stream without a launch, the first point of a thread) stands where it was recorded.
"""

from __future__ import annotations

from enum import IntEnum

import msgspec
import numpy as np

from torch_tb_profiler.model.schedule.blocking import BlockingCalls, WaitKind, blocking_calls
from torch_tb_profiler.model.schedule.clock import clock_shift_ns
from torch_tb_profiler.model.schedule.handoffs import HandOffs, handoffs
from torch_tb_profiler.model.schedule.items import NEVER, Items, items
from torch_tb_profiler.model.schedule.points import Points, collect
from torch_tb_profiler.model.schedule.stream_waits import LATE_NS, StreamWaits, stream_waits
from torch_tb_profiler.model.schedule.submission import WAKE_NS, arrivals, latencies
from torch_tb_profiler.model.schedule.threads import main_thread
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Int8, Int32, Int64, Trace, derived

_IDLE_WAKE_NS = 12_000
"""At most this long after a source's end returns a call that did not wait for it."""

LEAST_EXPLAINED = 0.95
"""With a smaller share of starts explained, what a replay of other times says is uncertain."""

_OWN_NS = 3_000
"""What a synchronization takes that has nothing to wait for."""


class Bound(IntEnum):
    """What an item's start was waiting for last."""

    LAUNCH = 0
    STREAM = 1
    WAIT = 2
    NOTHING = 3


class HostEdges(msgspec.Struct, frozen=True):
    """What points wait for, by target; columns of length a.

    target  int64  position of the point that goes on
    item    int64  the item whose end it waits for, NO_CODE if for a point
    point   int64  the point that it waits for, NO_CODE if for an item
    weight  int64  ns from the source to the target, at least
    call    int32  row of the call that waits, NO_CODE of hand-offs
    binds   bool   the recorded target is where this edge puts it, and its thread alone would have been earlier
    """

    target: Int64
    item: Int64
    point: Int64
    weight: Int64
    call: Int32
    binds: Bool


class Schedule(msgspec.Struct, frozen=True):
    """The whole graph; n items, p points, w waits between streams; ns.

    step         int64[p]  work of the thread before each point: all the time since the point before, less waiting
    anchored     bool[p]   stands where it was recorded: the first point of its thread that nothing hands over to
    submission   int64[n]  the point at which each item is submitted, NO_CODE if none is known
    launch, gap  int64[n]  weights of submission and stream, 0 where there is none
    wait_weight  int64[w]  weights of `waits`
    bound        int8[n]   a Bound
    bound_wait   int64[n]  the wait that binds, NO_CODE if none does
    residual     int64[n]  what the binding weight is longer than typical
    step_begin, step_end  int64[steps]  points: the host borders of `steps`; empty without a main thread
    """

    items: Items
    points: Points
    calls: BlockingCalls
    handoffs: HandOffs
    waits: StreamWaits
    edges: HostEdges
    step: Int64
    anchored: Bool
    submission: Int64
    launch: Int64
    gap: Int64
    wait_weight: Int64
    bound: Int8
    bound_wait: Int64
    residual: Int64
    step_begin: Int64
    step_end: Int64
    clock_shift_ns: int
    main_thread: int

    @property
    def explained(self) -> float | None:
        """Share of items that start within 20 us of what launch, stream and waits allow; None without items."""
        if len(self.items) == 0:
            return None
        return float(((self.bound != Bound.NOTHING) & (self.residual <= LATE_NS)).mean())

    @property
    def trusted(self) -> bool:
        """Enough is explained for a replay of other times to say what a change would bring."""
        return self.explained is not None and self.explained >= LEAST_EXPLAINED


@derived
def schedule(trace: Trace) -> Schedule:
    """The schedule of a trace."""
    work, calls, hands, waits = items(trace), blocking_calls(trace), handoffs(trace), stream_waits(trace)
    main, spans = main_thread(trace), steps(trace)
    linked = work.call >= 0
    held = hands.held_since != ABSENT
    borders = len(spans.starts) if main != NO_CODE else 0
    mine = np.full(borders, main, np.int32)
    points, places = collect(
        (work.thread[linked], work.submitted[linked]),
        (calls.thread, calls.begin),
        (calls.thread, calls.released),
        (calls.thread, calls.end),
        (hands.source, hands.source_time),
        (hands.target, hands.target_time),
        (hands.target[held], hands.held_since[held]),
        (mine, spans.host_starts[:borders]),
        (mine, spans.host_ends[:borders]),
    )
    submission = np.full(len(work), NO_CODE, np.int64)
    submission[linked] = places[0]
    step, edges, anchored = _host(points, work, calls, hands, places)
    weights = _device(work, waits)
    return Schedule(
        items=work,
        points=points,
        calls=calls,
        handoffs=hands,
        waits=waits,
        edges=edges,
        step=step,
        anchored=anchored,
        submission=submission,
        launch=weights.launch,
        gap=weights.gap,
        wait_weight=weights.wait,
        bound=weights.bound,
        bound_wait=weights.bound_wait,
        residual=weights.residual,
        step_begin=places[7],
        step_end=places[8],
        clock_shift_ns=clock_shift_ns(trace),
        main_thread=main,
    )


def _host(
    points: Points, work: Items, calls: BlockingCalls, hands: HandOffs, places: list[Int64]
) -> tuple[Int64, HostEdges, Bool]:
    """(step, edges, anchored) of the points."""
    begun, released, source_point, target_point = places[1], places[2], places[4], places[5]
    step = points.before.copy()
    # A call that waited has its own part of the time from its begin to its release, the rest is waiting.
    own = np.where(calls.kind == WaitKind.QUEUE, work.typical_call_ns, _OWN_NS)
    waited = calls.waited
    behind = points.time[np.maximum(released - 1, 0)] - points.time[begun]
    left = np.maximum(np.minimum(calls.released - calls.begin, own) - behind, 0)
    np.minimum.at(step, released[waited], left[waited])
    step[target_point] = 0
    anchored = points.first.copy()
    anchored[target_point] = False

    of = calls.of_source
    after = calls.released[of] - work.end[calls.sources]
    last = waited[of] & (work.end[calls.sources] == calls.ready[of])
    weight = np.where(last, after, np.minimum(after, _IDLE_WAKE_NS))
    none = np.full(len(of), NO_CODE, np.int64), np.full(len(target_point), NO_CODE, np.int64)
    target = np.append(released[of], target_point)
    order = np.argsort(target, kind="stable")
    edges = HostEdges(
        target=target[order],
        item=np.append(calls.sources, none[1])[order],
        point=np.append(none[0], source_point)[order],
        weight=np.append(weight, hands.target_time - hands.source_time)[order],
        call=np.append(calls.call[of], none[1]).astype(np.int32)[order],
        binds=np.append(last, np.ones(len(target_point), np.bool_))[order],
    )
    return step, edges, anchored


class _Weights(msgspec.Struct, frozen=True):
    """As in Schedule."""

    launch: Int64
    gap: Int64
    wait: Int64
    bound: Int8
    bound_wait: Int64
    residual: Int64


def _device(work: Items, waits: StreamWaits) -> _Weights:
    typical = latencies(work)
    by_launch, by_stream = arrivals(work, typical)
    after = work.start[waits.item] - work.end[waits.source]
    wait = np.minimum(after, WAKE_NS)
    by_wait, bound_wait = np.full(len(work), NEVER), np.full(len(work), NO_CODE, np.int64)
    reaches = work.end[waits.source] + wait
    np.maximum.at(by_wait, waits.item, reaches)
    latest = np.flatnonzero(reaches == by_wait[waits.item])
    bound_wait[waits.item[latest][::-1]] = latest[::-1]
    reasons = np.stack([by_launch, by_stream, by_wait])
    bound, best = reasons.argmax(axis=0), reasons.max(axis=0)
    nothing = best == NEVER
    bound[nothing] = Bound.NOTHING
    residual = np.where(nothing, 0, work.start - best)
    bound_wait[bound != Bound.WAIT] = NO_CODE
    chosen = bound_wait[bound_wait >= 0]
    wait[chosen] += residual[waits.item[chosen]]
    launch = np.where(work.call >= 0, by_launch - work.submitted, 0)
    gap = np.where(work.previous_end > NEVER, by_stream - work.previous_end, 0)
    launch[bound == Bound.LAUNCH] += residual[bound == Bound.LAUNCH]
    gap[bound == Bound.STREAM] += residual[bound == Bound.STREAM]
    return _Weights(launch, gap, wait, bound.astype(np.int8), bound_wait, residual)
