"""Where the time between device work goes: the device's idle time by what the host does in it.

device   [ iteration 7 ]                                       [ iteration 8 ]
host         sync        sampling   schedule   prepare  launch
cause        sampling_sync .......  scheduler   launch .......

Only the thread that runs the engine's loop is asked. Where it recorded nothing, the cause is unknown while
requests run; before a prefill that starts with no request running, the engine most likely had nothing to do.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from torch_tb_profiler.base.intervals import (
    NO_INTERVALS,
    Intervals,
    covered_time,
    merge,
    subtract,
    union,
)
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.calls.links import device_launches
from torch_tb_profiler.model.kinds import (
    HOST_KINDS,
    Kind,
    event_ends,
    event_intervals,
    event_kinds,
    rows_of_kind,
)
from torch_tb_profiler.model.serving.iterations import ServingIterations, running_before, serving_iterations
from torch_tb_profiler.model.serving.labeled import PREFILL, iteration_labels
from torch_tb_profiler.model.serving.labels import host_work_of
from torch_tb_profiler.model.serving.requests import serving_requests
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Int32, Int64, Trace, distinct_codes, name_mask

CAUSES = ("scheduler", "launch", "sampling_sync", "network", "idle", "host_unrecorded", "kernel_gaps")
"""Causes of idle time.

scheduler        choosing the next batch
launch           preparing inputs and launching, inside an iteration
sampling_sync    waiting for the sampled tokens, and handling them
network          waiting for another process: KV transfer, broadcast of a batch
idle             no request waits
host_unrecorded  the loop's thread recorded nothing while requests were running
kernel_gaps      between neighboring kernels, less than MIN_GAP_NS each, where the next one was launched in time
"""

SCHEDULER, LAUNCH, SAMPLING, NETWORK, WAITING, UNRECORDED, KERNEL_GAPS = range(len(CAUSES))

MIN_GAP_NS = 20_000
"""A shorter pause of the device lies between neighboring kernels: only their launches say if the host is late."""

MAX_LATENCY_NS = 10_000
"""A kernel begins at most this long after its launch if the device was waiting for it."""

MAX_HOLE_NS = 10_000
"""A shorter pause between recorded calls belongs to them: the profiler doesn't record the code between calls."""

MIN_WAIT_NS = 1_000_000
"""A shorter pause before a prefill isn't taken for a wait for requests."""


class ServingTimes(msgspec.Struct, frozen=True):
    """When the device works on k iterations and what it waits for before and within each.

    begin, end   int64[k] ns; from the end of the work before it (or of a wait for requests) to the end of its own
    work         int64[k] ns in which the device worked; without device work the label's own duration
    idle         int64[k, causes] ns of idle time before and within the iteration
    running      bool[k]  requests were running before it, so that idle time made them wait
    on_device    whether device work is recorded
    certain      bool[k]  False where `idle` before the iteration may as well be a host that recorded nothing
    """

    begin: Int64
    end: Int64
    work: Int64
    idle: Int64
    running: Bool
    on_device: bool
    certain: Bool

    @property
    def duration(self) -> Int64:
        """Return how long each iteration takes, int64[k] ns, without waits for requests."""
        return self.end - self.begin


class AverageIteration(msgspec.Struct, frozen=True):
    """An average iteration in ns, and which shares of it are idle, and pauses between neighboring kernels."""

    duration: float
    idle: float
    pauses: float


def average_iteration(times: ServingTimes, left_out: Sequence[int] = ()) -> AverageIteration:
    """Return the mean of all iterations but those at the positions `left_out`."""
    counted = np.ones(len(times.end), np.bool_)
    counted[[*left_out]] = False
    duration, idle = times.duration[counted], times.idle[counted].sum(0)
    total = int(duration.sum())
    if total <= 0:
        return AverageIteration(0.0, 0.0, 0.0)
    share = int(np.delete(idle, WAITING).sum()) / total
    return AverageIteration(float(duration.mean()), min(share, 1.0), int(idle[KERNEL_GAPS]) / total)


class ServingGaps(msgspec.Struct, frozen=True):
    """Columns of the g times in which the device is idle between work of iterations.

    before, after  int32[g] rows of the device work on both sides; NO_CODE where none is recorded
    number         int64[g] iteration of what follows
    parts          int64[g, causes] ns
    uncertain      bool[g]  waiting for requests may as well be a host that recorded nothing
    """

    before: Int32
    after: Int32
    number: Int64
    parts: Int64
    uncertain: Bool


@derived
def serving_times(trace: Trace) -> ServingTimes | None:
    """Return the times of all iterations, or None if the trace has none."""
    found, gaps = serving_iterations(trace), serving_gaps(trace)
    if found is None or gaps is None:
        return None
    on_device = bool((found.device_end != ABSENT).any())
    idle = np.zeros((len(found), len(CAUSES)), np.int64)
    np.add.at(idle, gaps.number, gaps.parts)
    certain = np.ones(len(found), np.bool_)
    certain[gaps.number[gaps.uncertain]] = False
    # Without device work of its own an iteration ends where its label does.
    ends = np.where(found.device_end == ABSENT, found.host_end, found.device_end)
    end = np.maximum.accumulate(ends)
    begin = np.append(found.host_start[0], end[:-1]) + idle[:, WAITING]
    begin[0] = found.host_start[0]
    begin = np.minimum(begin, end)
    work = found.busy if on_device else found.host_end - found.host_start
    return ServingTimes(begin, end, work, idle, running_before(found), on_device, certain)


@derived
def serving_gaps(trace: Trace) -> ServingGaps | None:
    """Return when the device is idle between work of iterations, and why; None if the trace has no iterations."""
    found = serving_iterations(trace)
    if found is None:
        return None
    busy, rows, first, launched = _collect_work(trace, found)
    number = first if len(rows) == 0 else found.owner[rows[first]].astype(np.int64)
    gaps, after = Intervals(busy.ends[:-1], busy.starts[1:]), number[1:]
    length = gaps.ends - gaps.starts
    parts, uncertain = np.zeros((len(length), len(CAUSES)), np.int64), np.zeros(len(length), np.bool_)
    short = length < MIN_GAP_NS
    # Within an iteration only: between two of them the host may as well be scheduling.
    late = short & (launched[1:] > gaps.starts - MAX_LATENCY_NS) & (number[:-1] == after)
    parts[late, LAUNCH] = length[late]
    parts[short & ~late, KERNEL_GAPS] = length[short & ~late]
    on_device = bool((found.device_end != ABSENT).any())
    long = Intervals(gaps.starts[~short], gaps.ends[~short])
    parts[~short], uncertain[~short] = _split_gaps(
        trace, found, long, after[~short], running_before(found), on_device
    )
    if len(rows) == 0:
        none = np.full(len(length), NO_CODE, np.int32)
        return ServingGaps(none, none, after, parts, uncertain)
    return ServingGaps(rows[first[1:] - 1], rows[first[1:]], after, parts, uncertain)


def _collect_work(trace: Trace, found: ServingIterations) -> tuple[Intervals, Int32, Int64, Int64]:
    """Return (intervals, rows, first, launched): when any work of the iterations runs, and what it is.

    rows      the device work in order of its begin; empty where none is recorded, and the labels count as work
    first     position in `rows` of what starts each interval; without rows its iteration
    launched  start of its call in ns; ABSENT where none is recorded, and for all but the first kernel of a graph
    """
    rows, calls = device_launches(trace)
    mine = found.owner[rows] >= 0
    rows, calls = rows[mine], calls[mine]
    if len(rows) == 0:
        busy = merge(found.host_start, found.host_end)
        number = np.searchsorted(found.host_start, busy.starts, "right") - 1
        return busy, rows, number, np.full(len(number), ABSENT, np.int64)
    order = np.argsort(trace.events.start[rows], kind="stable")
    rows, calls = rows[order], calls[order]
    start = trace.events.start[rows]
    busy = merge(start, event_ends(trace)[rows])
    first = np.minimum(np.searchsorted(start, busy.starts), len(rows) - 1)
    launched = np.where(calls >= 0, trace.events.start[calls], ABSENT)
    launched[1:][calls[1:] == calls[:-1]] = ABSENT
    return busy, rows, first, launched[first]


def launched_for_sampling(trace: Trace, found: ServingIterations, calls: Int32) -> Bool:
    """Return whether the host samples or handles tokens when each call begins, bool[k]."""
    sampling = _collect_host_work(trace, found, True)[SAMPLING]
    start = trace.events.start[calls]
    position = np.searchsorted(sampling.starts, start, "right") - 1
    within = position >= 0
    within[within] = start[within] < sampling.ends[position[within]]
    return within


def _split_gaps(
    trace: Trace, found: ServingIterations, gaps: Intervals, number: Int64, running: Bool, on_device: bool
) -> tuple[Int64, Bool]:
    """Return the ns of each gap by cause, int64[g, causes], and in which gaps waiting is not certain, bool[g]."""
    sets = _collect_host_work(trace, found, on_device)
    parts = np.zeros((len(gaps.starts), len(CAUSES)), np.int64)
    claimed = NO_INTERVALS
    for cause in (NETWORK, SAMPLING, SCHEDULER, WAITING, LAUNCH):
        mine = subtract(sets[cause], claimed)
        parts[:, cause] = covered_time(mine, gaps.starts, gaps.ends)
        claimed = union(claimed, mine)
    rest = gaps.ends - gaps.starts - parts.sum(1)
    typical_ns = float(np.median(rest)) if len(rest) else 0.0
    labeled = _holds_any(gaps, trace.events.start[found.idle_labels])
    waits = (found.phase[number] == PREFILL) & ~running[number] & (rest >= max(MIN_WAIT_NS, 3 * typical_ns))
    waits |= labeled
    present = np.minimum(_measure_time_with_requests(trace, gaps), rest)
    parts[waits, WAITING] += (rest - present)[waits]
    parts[waits, UNRECORDED] = present[waits]
    parts[~waits, UNRECORDED] = rest[~waits]
    uncertain: Bool = waits & ~labeled
    return parts, uncertain


def _measure_time_with_requests(trace: Trace, gaps: Intervals) -> Int64:
    """Return the ns of each gap in which a request recorded beside the trace is in the engine, int64[g].

    Only what is certain: from the latest time at which a request may have arrived to its end.
    """
    requests = serving_requests(trace)
    if requests is None:
        return np.zeros(len(gaps.starts), np.int64)
    arrival = requests.arrival_ns + requests.arrival_precision_ns
    present = requests.end_ns > arrival  # an unknown end is ABSENT
    within: Int64 = covered_time(merge(arrival[present], requests.end_ns[present]), gaps.starts, gaps.ends)
    return within


def _holds_any(gaps: Intervals, times: Int64) -> Bool:
    times = np.sort(times)
    held: Bool = np.searchsorted(times, gaps.ends) > np.searchsorted(times, gaps.starts)
    return held


_NAMED = {"network": NETWORK, "sampling_sync": SAMPLING, "scheduler": SCHEDULER, "idle": WAITING}


def _collect_host_work(trace: Trace, found: ServingIterations, on_device: bool) -> dict[int, Intervals]:
    """Return when the loop's thread was in host work of each cause, merged."""
    rows = rows_of_kind(trace, *HOST_KINDS)
    rows = rows[trace.events.thread[rows] == found.thread]
    names = trace.events.name[rows]
    work = np.full(len(trace.strings) + 1, NO_CODE, np.int64)
    labels = iteration_labels(trace)
    for code in distinct_codes(names):
        if code not in labels:
            work[code] = _NAMED.get(host_work_of(trace.strings[code]) or "", NO_CODE)
    cause = work[names]
    sets = {each: _intervals(trace, rows[cause == each]) for each in (NETWORK, SAMPLING, SCHEDULER, WAITING)}
    kind = event_kinds(trace)[rows]
    calls = np.isin(kind, (Kind.RUNTIME, Kind.DRIVER, Kind.CPU_OP))
    runner = name_mask(trace.strings, lambda name: name.startswith("gpu_model_runner: "), names)[names]
    launching = _close_holes(_intervals(trace, rows[(calls | runner) & (cause < 0)]))
    sets[LAUNCH] = union(launching, merge(found.host_start, found.host_end)) if on_device else launching
    return sets


def _intervals(trace: Trace, rows: Int32) -> Intervals:
    return event_intervals(trace, rows)


def _close_holes(merged: Intervals) -> Intervals:
    """Return the intervals with the short pauses between them filled."""
    if len(merged.starts) == 0:
        return merged
    opens = np.append(True, merged.starts[1:] - merged.ends[:-1] > MAX_HOLE_NS)
    first = np.flatnonzero(opens)
    return Intervals(merged.starts[first], merged.ends[np.append(first[1:], len(merged.starts)) - 1])
