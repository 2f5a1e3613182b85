"""Rows of a table from calls: which calls a filter keeps, which share a row, what they sum to."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import numpy as np

from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.phases import PHASES, phase_mask
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import NO_CODE, Bool, Float64, Int32, Int64, Trace


class Groups(msgspec.Struct, frozen=True):
    """`which` int64[k]: the group of each call; `first` int64[g]: position of the first call of each group."""

    which: Int64
    first: Int64

    def __len__(self) -> int:
        return len(self.first)

    @property
    def counts(self) -> Int64:
        return np.bincount(self.which, minlength=len(self))

    def sums(self, values: Int64) -> Int64:
        """int64[g]: exact sums."""
        if len(values) and float(np.abs(values, dtype=np.float64).sum()) < 2.0**53:
            # As float64 every partial sum is exact, and bincount is several times faster than add.at.
            return np.bincount(self.which, values, minlength=len(self)).astype(np.int64)
        sums = np.zeros(len(self), np.int64)
        np.add.at(sums, self.which, values)
        return sums

    def members(self, group: int) -> Int64:
        """Positions of the calls of one group."""
        return np.flatnonzero(self.which == group)


def group(*keys: Int32 | Int64) -> Groups:
    """Calls with equal keys share a group; groups in order of their first call."""
    which, count = codes(*keys)
    first = np.empty(count, np.int64)
    first[which[::-1]] = np.arange(len(which))[::-1]  # the last write wins: the first call
    order = np.argsort(first, kind="stable")
    rank = np.empty(count, np.int64)
    rank[order] = np.arange(count)
    return Groups(rank[which], first[order])


def codes(*keys: Int32 | Int64) -> tuple[Int64, int]:
    """(int64[k] codes 0..c-1 in order of the keys, the first of which counts most; c)."""
    which, count = _dense(keys[0])
    for key in keys[1:]:
        more, times = _dense(key)
        which *= times
        which += more
        which, count = _dense(which)
    return which, count


def split_by(key: Int32 | Int64, count: int) -> list[Int64]:
    """The positions of each of the values 0..count-1, ascending; those of other values are in none."""
    order = stable_order(key)
    bounds = np.searchsorted(key[order], np.arange(count + 1)).tolist()
    return [order[begin:end] for begin, end in pairwise(bounds)]


def stable_order(key: Int32 | Int64) -> Int64:
    """Positions in order of the key; equal ones as they come."""
    # numpy sorts sixteen bits by radix.
    narrow = key.astype(np.uint16) if len(key) and 0 <= key.min() and key.max() < 2**16 else key
    return np.argsort(narrow, kind="stable")


def _dense(key: Int32 | Int64) -> tuple[Int64, int]:
    """(codes 0..c-1 in order of the keys, c)."""
    if len(key) == 0:
        return np.empty(0, np.int64), 0
    low, high = int(key.min()), int(key.max())
    if high - low <= 4 * len(key) + 1024:
        # Codes are nearly dense already: a table is several times faster than sorting.
        shifted = np.subtract(key, low, dtype=np.int64)
        seen = np.zeros(high - low + 1, np.bool_)
        seen[shifted] = True
        if seen.all():
            return shifted, len(seen)
        rank = np.cumsum(seen) - 1
        return rank[shifted], int(rank[-1]) + 1
    distinct, codes = np.unique(key, return_inverse=True)
    return codes.reshape(-1), len(distinct)


class Order(msgspec.Struct, frozen=True):
    """Order statistics of each group: least, greatest, and quantiles, float64[g] per share."""

    least: Int64
    most: Int64
    quantiles: list[Float64]


def order_statistics(groups: Groups, values: Int64, *shares: float) -> Order:
    """Quantiles (0.5: median) are linear between the two nearest values, as numpy's default."""
    span = int(values.max(initial=0)) - int(values.min(initial=0)) + 1
    if len(groups) * span < 2**62:
        order = np.argsort(groups.which * span + (values - values.min(initial=0)), kind="stable")
    else:
        order = np.lexsort((values, groups.which))
    ordered = values[order]
    counts = groups.counts
    begin = np.cumsum(counts) - counts
    quantiles = []
    for share in shares:
        at = (counts - 1) * share
        low = np.floor(at).astype(np.int64)
        high = np.minimum(low + 1, counts - 1)
        quantiles.append(ordered[begin + low] + (ordered[begin + high] - ordered[begin + low]) * (at - low))
    return Order(ordered[begin], ordered[begin + counts - 1], quantiles)


def launch_times(trace: Trace, rows: Int32) -> Int64:
    """int64[k]: when device work was launched; its own start where no launch is recorded."""
    launch = np.full(len(trace), NO_CODE, np.int32)
    links = device_links(trace)
    launch[links.rows] = links.launch
    mine = launch[rows]
    return np.where(mine >= 0, trace.events.start[mine], trace.events.start[rows])


def in_step(trace: Trace, times: Int64, name: str) -> Bool:
    """bool[k]: which times lie in a step as the host ran it; NotFoundError lists the steps."""
    spans = steps(trace)
    at = [i for i, text in enumerate(spans.names) if text == name]
    if not at:
        raise NotFoundError(f"there is no step {name!r}", hint=f"steps: {', '.join(spans.names[:20])}")
    inside = np.zeros(len(times), np.bool_)
    for i in at:
        inside |= (times >= spans.host_starts[i]) & (times < spans.host_ends[i])
    return inside


def on_thread(trace: Trace, rows: Int32, thread: str) -> Bool:
    """bool[k]: which rows are on a thread given as "pid/tid"; NotFoundError if there is none."""
    codes = [i for i, each in enumerate(trace.threads) if each.label == thread]
    if not codes:
        raise NotFoundError(f"there is no thread {thread!r}", hint="threads are written pid/tid")
    inside: Bool = np.isin(trace.events.thread[rows], codes)
    return inside


def in_phase(trace: Trace, rows: Int32, phase: str) -> Bool:
    """bool[k]: which rows run in a phase; NotFoundError lists the phases."""
    if phase not in PHASES:
        raise NotFoundError(f"there is no phase {phase!r}", hint=f"phases: {', '.join(PHASES)}")
    return phase_mask(trace, rows, phase)


def named(trace: Trace, rows: Int32, name: str) -> Bool:
    """bool[k]: which rows have this name."""
    codes = [i for i, text in enumerate(trace.strings) if text == name]
    has: Bool = np.isin(trace.events.name[rows], codes)
    return has
