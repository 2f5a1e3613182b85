"""Launch calls: how long they take on the host, how long their work takes, how late it starts, and their pace.

cudaLaunchKernel |-- call --|
gemm                            |--- work ---|
                            |delay|
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.schedule.causes import LAUNCH_BOUND_CAUSES, Cause
from torch_tb_profiler.analyses.schedule.gaps import complete_step_windows, items_by_start
from torch_tb_profiler.analyses.schedule.segments import idle_segments
from torch_tb_profiler.analyses.shared.grouping import group, order_statistics
from torch_tb_profiler.base.arrays import median
from torch_tb_profiler.base.intervals import covered_time
from torch_tb_profiler.base.memo import stored
from torch_tb_profiler.model.calls.links import device_launches
from torch_tb_profiler.model.kinds import event_ends
from torch_tb_profiler.model.schedule.items import device_items
from torch_tb_profiler.model.schedule.unrecorded_waits import has_unrecorded_waits
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Bool, Float64, Int32, Int64, Trace

MIN_SLOW_CALL_NS = 50_000
"""A launch call that takes longer is an outlier: something blocked the host in it."""

MAX_LAUNCH_GAP_NS = 1_000_000
"""A longer gap is no matter of launching: the host does something else for that long."""

LONG_DELAY_NS = 100_000
"""Work that starts later than this after its call was queued behind other work, or the device was held up."""


class LaunchCalls(msgspec.Struct, frozen=True):
    """Calls that put work on a device, in order of their rows; columns of length k, times in ns.

    call     int32  row of the call
    first    int32  row of its item that starts first
    items    int64  number of kernels, copies and memsets it launched; those of a graph share one call
    call_ns  int64  duration of the call
    work_ns  int64  sum of the durations of its items
    delay_ns int64  from the end of the call to the start of its first item; 0 if that starts earlier
    """

    call: Int32
    first: Int32
    items: Int64
    call_ns: Int64
    work_ns: Int64
    delay_ns: Int64


class ApiCalls(msgspec.Struct, frozen=True):
    """Launch calls by API name, largest time in calls first; columns with one entry per name, times in ns.

    event        int32  row of the longest call
    calls, items int64  number of calls and of the items they launched
    call_ns, work_ns, delay_ns  int64  sums
    median_call, median_work, median_delay  float64
    short        int64  calls whose work is shorter than the call, without slow calls
    slow         int64  calls longer than `slow_call_ns`
    delayed      int64  calls whose work starts more than `long_delay_ns` after them
    """

    event: Int32
    calls: Int64
    items: Int64
    call_ns: Int64
    work_ns: Int64
    delay_ns: Int64
    median_call: Float64
    median_work: Float64
    median_delay: Float64
    short: Int64
    slow: Int64
    delayed: Int64


class LaunchPace(msgspec.Struct, frozen=True):
    """How fast the host launches work and the device finishes it: medians in the complete steps, ns.

    launch_ns     from one launch call to the next on its thread; None without launches
    item_ns       duration of a kernel, copy or memset; None without work
    launch_bound  the host's launching causes most idle time, in short gaps, and it had not waited for the device
                  before
    """

    launch_ns: float | None
    item_ns: float | None
    launch_bound: bool


def launch_calls(trace: Trace, work: Int32) -> LaunchCalls:
    """Return the calls that launched some device work; work without a recorded call is left out."""
    rows, launch = device_launches(trace)
    chosen = np.isin(rows, work) & (launch >= 0)
    rows, launch = rows[chosen], launch[chosen]
    start, finish = trace.events.start, event_ends(trace)
    order = np.lexsort((start[rows], launch))
    rows, launch = rows[order], launch[order]
    calls = group(launch)
    call, first = launch[calls.first], rows[calls.first]
    return LaunchCalls(
        call=call,
        first=first,
        items=calls.counts,
        call_ns=finish[call] - start[call],
        work_ns=calls.sums(finish[rows] - start[rows]),
        delay_ns=np.maximum(start[first] - finish[call], 0),
    )


def api_calls(
    trace: Trace, calls: LaunchCalls, slow_call_ns: int = MIN_SLOW_CALL_NS, long_delay_ns: int = LONG_DELAY_NS
) -> ApiCalls:
    """Return the statistics of each launch API. Any call with work counts, whatever its vendor and name."""
    groups = group(trace.events.name[calls.call])
    call_ns = groups.sums(calls.call_ns)
    order = np.argsort(-call_ns, kind="stable")
    slow = calls.call_ns > slow_call_ns
    by_length = np.argsort(calls.call_ns, kind="stable")
    longest = np.empty(len(groups), np.int64)
    longest[groups.which[by_length]] = by_length  # the last write wins

    def count(chosen: Bool) -> Int64:
        return np.bincount(groups.which[chosen], minlength=len(groups))[order]

    def medians(values: Int64) -> Float64:
        return order_statistics(groups, values, 0.5).quantiles[0][order]

    return ApiCalls(
        event=calls.call[longest[order]],
        calls=groups.counts[order],
        items=groups.sums(calls.items)[order],
        call_ns=call_ns[order],
        work_ns=groups.sums(calls.work_ns)[order],
        delay_ns=groups.sums(calls.delay_ns)[order],
        median_call=medians(calls.call_ns),
        median_work=medians(calls.work_ns),
        median_delay=medians(calls.delay_ns),
        short=count(~slow & (calls.work_ns < calls.call_ns)),
        slow=count(slow),
        delayed=count(calls.delay_ns > long_delay_ns),
    )


def _find_distinct_calls(trace: Trace, items: Int64) -> tuple[Int32, Int64]:
    """Return (threads, starts) of the calls that launched some device items, in order of their rows.

    Both are among the columns of the items: those of all events needn't be read.
    """
    work = device_items(trace)
    items = items[work.call[items] >= 0]
    items = items[np.argsort(work.call[items], kind="stable")]  # they nearly ascend
    call = work.call[items]
    is_first = np.ones(len(call), np.bool_)
    is_first[1:] = call[1:] != call[:-1]
    return work.thread[items[is_first]], work.call_start[items[is_first]]


@stored
def launch_pace(trace: Trace, device: int) -> LaunchPace:
    """Return the pace of launches and work on one device."""
    items, idle = items_by_start(trace, device), idle_segments(trace, device)
    inside = covered_time(complete_step_windows(steps(trace)), items.start, items.start + 1) > 0
    thread, start = _find_distinct_calls(trace, items.position[inside])
    order = np.argsort(start, kind="stable")  # they nearly ascend: faster than sorting by two keys
    order = order[np.argsort(thread[order], kind="stable")]
    between = np.diff(start[order])[np.diff(thread[order]) == 0]
    duration = (items.end - items.start)[inside]
    is_short = idle.gaps.end - idle.gaps.begin <= MAX_LAUNCH_GAP_NS
    caught_up = is_short & (idle.gaps.emptied_by < 0)
    is_launching = np.zeros(len(Cause), np.bool_)
    is_launching[list(LAUNCH_BOUND_CAUSES)] = True
    launching = is_launching[idle.cause] & caught_up[idle.gap]
    launch_bound_ns = int(np.sum(idle.length, where=launching))
    idle_ns = int((idle.gaps.end - idle.gaps.begin).sum())
    return LaunchPace(
        launch_ns=median(between) if len(between) else None,
        item_ns=median(duration) if len(duration) else None,
        launch_bound=not has_unrecorded_waits(trace) and 2 * launch_bound_ns > idle_ns,
    )
