"""Rules about communication that costs more than it transfers: by latency, by slowing kernels beside it, or by
waiting for the neighbors in a pipeline."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from torch_tb_profiler.analyses.overview.finding import Finding, is_too_short, job_kind
from torch_tb_profiler.analyses.shared.breakdown import role_intervals
from torch_tb_profiler.analyses.shared.grouping import group, kernel_size_codes, positions_by_value
from torch_tb_profiler.analyses.shared.typical_steps import step_kinds, typical_bounds
from torch_tb_profiler.base.arrays import distinct_numbers, median, search_sorted
from torch_tb_profiler.base.format import format_bytes
from torch_tb_profiler.base.intervals import Intervals, covered_time, merge, union
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.communication.collectives import Collectives, TimingSource, collectives
from torch_tb_profiler.model.communication.events import communication_kernels, computing_kernels
from torch_tb_profiler.model.devices import device_ids
from torch_tb_profiler.model.kinds import event_intervals, event_spans
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Int64, Trace

MIN_BANDWIDTH = 4
"""Bytes per ns that PCI Express 3 and a network card of 40 Gbit/s reach; slower communication of kernels waits for
another rank, or its link is even slower."""

COLLECTIVE_LATENCY_NS = 100_000
"""Fixed latency of a collective or message, independent of its size."""

MAX_SMALL_BYTES = 2**20
"""A collective up to this size takes about as long as an empty one on links that training uses."""

MIN_SMALL_COLLECTIVES = 8
"""Fewest small collectives per step that are worth a bucket."""

MAX_GAP_NS = 1_000_000
"""A longer pause between two collectives is more than the launch of the next one."""

BUCKET_BANDWIDTH = 4
"""Bytes per ns, that of PCI Express 3, at which a bucket transfers at least what small collectives transfer
now."""

MIN_COMPARED_CALLS = 3
"""Fewest calls of one kernel and size beside collectives, and without any, that show how much these slow it."""

MIN_CONTENTION_RATIO = 1.15
"""Smallest ratio of the medians of both that is no noise."""


def max_transfer_times(size: Int64) -> Int64:
    """Return the ns that communication of these bytes takes at most without waiting, ABSENT where unknown."""
    times: Int64 = np.where(size == ABSENT, ABSENT, COLLECTIVE_LATENCY_NS + size // MIN_BANDWIDTH)
    return times


@derived
def stage_messages(trace: Trace) -> tuple[int, ...]:
    """Return the messages of known size of a rank that trains as a stage of a pipeline, else none.

    A stage gets activations from a neighbor and sends gradients back to it, or the other way round. In a ring,
    as of attention over parts of a sequence, one neighbor only sends and the other one only receives.
    """
    operations = collectives(trace)
    kind = np.array([*operations.names, ""], object)[operations.collective]
    size = np.maximum(operations.bytes_in, operations.bytes_out)
    known = (operations.timing == TimingSource.DEVICE) & (size != ABSENT)
    receives, sends = known & (kind == "recv"), known & (kind == "send")
    neighbors = set(operations.source[receives].tolist()) & set(operations.target[sends].tolist())
    if not job_kind(trace).training or not neighbors - {ABSENT}:
        return ()
    return tuple(np.flatnonzero(receives | sends).tolist())


def find_pipeline_waits(trace: Trace) -> Iterator[Finding]:
    """Find messages of a pipeline's stage that take longer than their sizes explain."""
    operations, messages = collectives(trace), np.array(stage_messages(trace), np.int64)
    size = np.maximum(operations.bytes_in, operations.bytes_out)[messages]
    start, end = operations.start[messages], operations.end[messages]
    latest = start + max_transfer_times(size)
    late = end > latest
    if not late.any():
        return
    roles = role_intervals(trace)
    yield Finding(
        "pipeline_waits",
        merge(latest[late], end[late]),
        union(roles["kernel"], roles["memcpy"], roles["memset"]),
        operations.event[messages[late]],
        # Not `on_device`: the wait is as long if the host doesn't wait for the device, too.
        event=int(operations.event[messages[np.argmax(end - start)]]),
    )


def find_small_collectives(trace: Trace) -> Iterator[Finding]:
    """Find many small all-reduces, whose latency a bucket would pay once.

    What remains is the first of each step, and the bytes of the others at BUCKET_BANDWIDTH; a bucket has no gaps.
    """
    operations, mine = collectives(trace), latency_bound_collectives(trace)
    if len(mine) == 0:
        return
    later = _later_in_step(trace)
    size = np.maximum(operations.bytes_in, operations.bytes_out)
    needed = np.minimum(operations.start[later] + size[later] // BUCKET_BANDWIDTH, operations.end[later])
    roles = role_intervals(trace)
    longest = int(mine[np.argmax(operations.end[mine] - operations.start[mine])])
    yield Finding(
        "small_collectives",
        union(merge(needed, operations.end[later]), gaps_between_collectives(trace)),
        union(roles["kernel"], roles["memcpy"], roles["memset"]),
        # Not `on_device`: one collective relieves the host of launches, too.
        case="ddp" if job_kind(trace).wrapper == "ddp" else "loop",
        subject=operations.names[operations.collective[longest]],
        place=format_bytes(median(size[mine])),
        value=len(mine) // int(step_kinds(trace).typical.sum()),
        event=int(operations.event[longest]),
    )


def times_beyond_one_bucket(trace: Trace) -> Intervals:
    """Return the small collectives of each step but the first, and the gaps: no bucket saves more."""
    operations, later = collectives(trace), _later_in_step(trace)
    return union(merge(operations.start[later], operations.end[later]), gaps_between_collectives(trace))


def _later_in_step(trace: Trace) -> Int64:
    operations, (begins, ends) = collectives(trace), typical_bounds(trace)
    mine = latency_bound_collectives(trace)
    later: Int64 = mine[np.diff(_step_of(operations, mine, begins, ends), prepend=-1) == 0]
    return later


@derived
def latency_bound_collectives(trace: Trace) -> Int64:
    """Return the small all-reduces in typical steps of a training that has many of them, else none."""
    operations, (begins, ends) = collectives(trace), typical_bounds(trace)
    if not job_kind(trace).training or len(begins) == 0:
        return np.empty(0, np.int64)
    mine = _find_small_all_reduces(trace, operations)
    mine = mine[_step_of(operations, mine, begins, ends) >= 0]
    return mine if len(mine) >= MIN_SMALL_COLLECTIVES * len(begins) else mine[:0]


@derived
def gaps_between_collectives(trace: Trace) -> Intervals:
    """Return the idle times of typical steps between two small collectives in a row, of up to MAX_GAP_NS."""
    pairs = _pair_collectives_in_row(trace)
    return merge(pairs.end, pairs.next_start)


def launches_of_collectives(trace: Trace, late: Intervals) -> Intervals:
    """Return from the start of a small collective to that of the next one, where the host launches that too late.

    late  when the devices wait for the host
    """
    pairs = _pair_collectives_in_row(trace)
    waits = covered_time(late, pairs.end, pairs.next_start) > 0
    return merge(pairs.start[waits], pairs.next_start[waits])


class _Pairs(msgspec.Struct, frozen=True):
    """Small collectives, each with the next one in a row: int64[k] ns."""

    start: Int64
    end: Int64
    next_start: Int64


@derived
def _pair_collectives_in_row(trace: Trace) -> _Pairs:
    """Return the neighbors with a pause between them in which every device is idle."""
    operations, (begins, ends) = collectives(trace), typical_bounds(trace)
    mine = latency_bound_collectives(trace)
    if len(mine) < 2:
        return _Pairs(mine[:0], mine[:0], mine[:0])
    mine = mine[np.argsort(operations.start[mine], kind="stable")]
    step = _step_of(operations, mine, begins, ends)
    before, after = operations.end[mine][:-1], operations.start[mine][1:]
    near = (step[1:] == step[:-1]) & (after > before) & (after - before <= MAX_GAP_NS)
    starts = np.sort(trace.events.start.take(computing_kernels(trace)), kind="stable")
    near &= np.searchsorted(starts, before) == np.searchsorted(starts, after)
    roles = role_intervals(trace)
    busy = union(roles["kernel"], roles["communication"], roles["memcpy"], roles["memset"])
    near[near] = covered_time(busy, before[near], after[near]) == 0
    return _Pairs(operations.start[mine][:-1][near], before[near], after[near])


def _step_of(operations: Collectives, which: Int64, begins: Int64, ends: Int64) -> Int64:
    """Return the typical step in which each operation begins, NO_CODE if none."""
    step = search_sorted(begins, operations.start[which], "right") - 1
    inside = (step >= 0) & (operations.start[which] < np.append(ends, 0)[step])
    return np.where(inside, step, NO_CODE).astype(np.int64)


def _find_small_all_reduces(trace: Trace, operations: Collectives) -> Int64:
    """Return the all-reduces up to MAX_SMALL_BYTES with no kernel between them and the one before or after.

    A kernel between two of them needs the result of the first one, as tensor parallelism does: that is no
    loop over gradients, unless DistributedDataParallel exchanges them.
    """
    is_all_reduce = np.array([name == "all_reduce" for name in operations.names] + [False], np.bool_)
    size = np.maximum(operations.bytes_in, operations.bytes_out)
    timed = operations.end > operations.start
    small = np.flatnonzero(is_all_reduce[operations.collective] & timed & (size > 0) & (size <= MAX_SMALL_BYTES))
    if job_kind(trace).wrapper == "ddp" or len(small) < 2:
        return small
    starts = np.sort(trace.events.start.take(computing_kernels(trace)), kind="stable")
    before_next, before_end = (
        np.searchsorted(starts, times) for times in (operations.start[small][1:], operations.end[small][:-1])
    )
    in_row = before_next <= before_end
    neighbors: Int64 = small[np.append(False, in_row) | np.append(in_row, False)]
    return neighbors


def find_contention(trace: Trace) -> Iterator[Finding]:
    """Find kernels that take longer while collectives run than the same kernels on equal sizes take alone.

    Only what runs on the same device is compared, as another one may be slower, or have other work of that size.
    """
    rows = computing_kernels(trace)
    (start, end), device = event_spans(trace, rows), device_ids(trace).take(rows)
    beside = np.zeros(len(rows), np.int64)
    for each_device in distinct_numbers(device):
        times = _collective_times(trace, each_device)
        if len(times.starts):
            mine = np.flatnonzero(device == each_device)
            beside[mine] = covered_time(times, start[mine], end[mine])
    is_during = 2 * beside >= end - start
    if is_too_short(trace, merge(start[is_during], end[is_during])):
        return
    # What is compared is of names that often run beside collectives, which few do.
    names = trace.events.name.take(rows)
    is_often = np.bincount(names[is_during] + 1, minlength=len(trace.strings) + 1) >= MIN_COMPARED_CALLS
    often = np.flatnonzero(is_often[names + 1]) if beside.any() else np.empty(0, np.int64)
    if len(often) == 0:
        return
    names, rows, is_during = names[often], rows[often], is_during[often]
    start, end, device, beside = (each[often] for each in (start, end, device, beside))
    length = end - start
    grid, shape = kernel_size_codes(trace, rows)
    kernels = group(names.astype(np.int64), device.astype(np.int64), grid, shape)
    is_alone = beside == 0
    compared = kernels.counts >= 2 * MIN_COMPARED_CALLS
    compared &= ((grid != NO_CODE) | (shape != NO_CODE))[kernels.first]
    for mask in (is_alone, is_during):
        compared &= np.bincount(kernels.which[mask], minlength=len(kernels)) >= MIN_COMPARED_CALLS
    chosen = np.flatnonzero(compared[kernels.which])
    number = (np.cumsum(compared) - 1)[kernels.which[chosen]]
    begins, ends, slowed = [], [], []
    for positions in positions_by_value(number, int(compared.sum())):
        calls = chosen[positions]
        alone, during = calls[is_alone[calls]], calls[is_during[calls]]
        typical = float(median(length[alone]))
        ratio = float(median(length[during])) / max(typical, 1.0)
        if ratio >= MIN_CONTENTION_RATIO:
            long = during[length[during] > typical]
            begins.append(start[long] + int(typical))
            ends.append(end[long])
            slowed.append((int(length[long].sum() - typical * len(long)), ratio, long))
    if not slowed:
        return
    _, ratio, calls = max(slowed, key=lambda each: each[0])
    example = int(rows[calls[np.argmax(length[calls])]])
    yield Finding(
        "contention",
        merge(np.concatenate(begins), np.concatenate(ends)),
        rows=rows[np.concatenate([calls for *_, calls in slowed])],
        on_device=True,
        subject=trace.strings[trace.events.name[example]],
        value=ratio,
        event=example,
    )


def _collective_times(trace: Trace, device: int) -> Intervals:
    kernels = communication_kernels(trace)
    return event_intervals(trace, kernels[device_ids(trace).take(kernels) == device])
