"""Where iterations of AORTA's metrics lie in a trace without steps, by the kernels of their collectives.

allreduce       |--- range ----|      |-- range --|        ms since the iteration began
kernels          [ AllReduce ]          [AllReduce]         times of the trace

The recorder's ranges begin before their kernel and end after it, so each one bounds when its iteration began. The
iterations are placed if all bounds agree in exactly one way, and if no shift by whole iterations fits as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, product
from typing import NamedTuple

import numpy as np

from torch_tb_profiler.model.communication.events import (
    collective_from_kernel,
    collective_from_name,
    is_communication_kernel,
)
from torch_tb_profiler.model.iterations import iterations, stream_ranges
from torch_tb_profiler.model.kinds import event_ends
from torch_tb_profiler.model.trace import Int32, Int64, Trace

MIN_ITERATIONS = 3
"""Least number of iterations: fewer fit by chance."""

TOLERANCE_NS = 10_000
"""A kernel may leave its range by this much: events are timed to about 1 µs, and clocks drift."""

_MAX_OTHER_KERNELS = 1000
"""Most kernels of a collective outside of the iterations: each is another place where they may begin."""

_MAX_COMBINATIONS = 1000
"""Most combinations of the places where the collectives fit, each by itself."""

_MAX_SHIFT = 100
"""Most iterations by which all are shifted to see whether they fit elsewhere: patterns that repeat are shorter."""

_UNBOUNDED = 2**62
"""A limit that no time in ns reaches, and whose sums with times still fit int64."""


class IterationPlaces(NamedTuple):
    """When each iteration of a recording began, ns of the trace.

    starts    int64[k]
    slack_ns  the most that an iteration may be from there
    kernels   number of kernels that say so
    """

    starts: Int64
    slack_ns: int
    kernels: int


class _Ranges(NamedTuple):
    """Ranges of one collective in order of time, and its kernels in the trace.

    owner       int64[m]  iteration of each range
    begin, end  int64[m]  ns since that iteration began
    kernel_start, kernel_end  int64[k]  ns
    """

    owner: Int64
    begin: Int64
    end: Int64
    kernel_start: Int64
    kernel_end: Int64

    @property
    def others(self) -> int:
        return len(self.kernel_start) - len(self.begin)


class _Bounds(NamedTuple):
    """The earliest and the latest begin of each iteration, int64[k]; low > high where there is none."""

    low: Int64
    high: Int64

    def possible(self) -> bool:
        return bool((self.low <= self.high + TOLERANCE_NS).all())


def place_iterations(trace: Trace, recording: Trace) -> IterationPlaces | str:
    """Return where the iterations of a recording lie in a trace, or why that is unknown."""
    totals = iterations(recording).totals
    ranges = _group_ranges_by_collective(trace, recording)
    if not ranges:
        return "no range of a collective has kernels of that collective in the trace"
    if len(totals) < MIN_ITERATIONS:
        return f"they are fewer than {MIN_ITERATIONS}, which may fit by chance"
    if len(np.unique(np.concatenate([each.owner for each in ranges]))) < len(totals):
        return "one of them has no range of a collective"
    if any(each.others < 0 for each in ranges):
        return "the trace has fewer kernels of a collective than the iterations have ranges"
    if any(each.others > _MAX_OTHER_KERNELS for each in ranges):
        return f"more than {_MAX_OTHER_KERNELS:,} kernels of a collective are outside the iterations"
    fitting = [_find_offsets_that_fit(each, totals) for each in ranges]
    tried = list(islice(product(*fitting), _MAX_COMBINATIONS + 1))
    if len(tried) > _MAX_COMBINATIONS:
        return "the ranges fit the kernels in many ways"
    found = [
        (offsets, bounds)
        for offsets in tried
        if _in_order(bounds := _compute_bounds(ranges, offsets, totals), totals)
    ]
    if not found:
        return "the kernels of the collectives don't lie in their ranges"
    if len(found) > 1:
        return f"the ranges fit the kernels in {len(found)} ways"
    ((offsets, bounds),) = found
    if _fits_shifted(ranges, offsets, totals):
        return "the iterations are so similar that they fit just as well when shifted"
    half = np.abs(bounds.high - bounds.low) // 2
    starts = np.minimum(bounds.low, bounds.high) + half
    return IterationPlaces(starts, int(half.max()) + TOLERANCE_NS, sum(len(each.begin) for each in ranges))


def _group_ranges_by_collective(trace: Trace, recording: Trace) -> list[_Ranges]:
    """Return the ranges of each collective of which the trace has kernels."""
    found, ends = iterations(recording), event_ends(recording)
    rows_of = _find_collective_ranges(recording)
    kernels = np.flatnonzero(is_communication_kernel(trace))
    names = np.array([collective_from_kernel(text) for text in trace.strings] or [""], object)
    kernel_names = names[trace.events.name[kernels]]
    ranges: list[_Ranges] = []
    for collective, rows in sorted(rows_of.items()):
        same = kernels[kernel_names == collective]
        if len(same) == 0:
            continue
        same = same[np.argsort(trace.events.start[same], kind="stable")]
        rows = rows[np.argsort(recording.events.start[rows], kind="stable")]
        owner = np.searchsorted(np.append(found.begins, _UNBOUNDED), recording.events.start[rows], "right") - 1
        zero = found.starts[owner]
        ranges.append(
            _Ranges(
                owner.astype(np.int64),
                recording.events.start[rows] - zero,
                ends[rows] - zero,
                trace.events.start[same],
                event_ends(trace)[same],
            )
        )
    return ranges


def _find_collective_ranges(recording: Trace) -> dict[str, Int32]:
    """Return the rows of the ranges by collective, which their function names, else their stream."""
    rows_of: dict[str, list[Int32]] = {}
    for stream, rows in stream_ranges(recording).items():
        codes, functions = recording.arg_codes("function", rows)
        named = [collective_from_name(text) for text in functions] + [collective_from_name(stream)]
        of_row = np.array([name or "" for name in named], object)[codes]
        for collective in set(of_row.tolist()) - {""}:
            rows_of.setdefault(collective, []).append(rows[of_row == collective])
    return {collective: np.concatenate(parts) for collective, parts in rows_of.items()}


def _find_offsets_that_fit(ranges: _Ranges, totals: Int64) -> list[int]:
    """Return the numbers of the kernels that the first range may have, by this collective alone."""
    return [
        offset
        for offset in range(ranges.others + 1)
        if _in_order(_compute_bounds([ranges], [offset], totals), totals)
    ]


def _compute_bounds(ranges: Sequence[_Ranges], offsets: Sequence[int], totals: Int64) -> _Bounds:
    """Return the bounds where the first range of each collective has the kernel of this number."""
    bounds = _Bounds(np.full(len(totals), -_UNBOUNDED), np.full(len(totals), _UNBOUNDED))
    for each, offset in zip(ranges, offsets, strict=True):
        inside = np.arange(len(each.begin)) + offset
        known = (inside >= 0) & (inside < len(each.kernel_start))
        owner, kernel = each.owner[known], inside[known]
        np.maximum.at(bounds.low, owner, each.kernel_end[kernel] - each.end[known])
        np.minimum.at(bounds.high, owner, each.kernel_start[kernel] - each.begin[known])
    return bounds


def _in_order(bounds: _Bounds, totals: Int64) -> bool:
    """Return whether each iteration has a place, and begins when the one before has ended."""
    if not bounds.possible():
        return False
    earliest = -_UNBOUNDED
    for low, high, total in zip(bounds.low.tolist(), bounds.high.tolist(), totals.tolist(), strict=True):
        earliest = max(low, earliest)
        if earliest > high + TOLERANCE_NS:
            return False
        earliest += total - TOLERANCE_NS
    return True


def _fits_shifted(ranges: list[_Ranges], offsets: tuple[int, ...], totals: Int64) -> bool:
    """Return whether the iterations also fit kernels before or after them, up to half of all iterations away."""
    count = len(totals)
    for shift in range(1, min(count // 2, _MAX_SHIFT) + 1):
        for sign, part in ((1, slice(0, count - shift)), (-1, slice(shift, count))):
            moved = tuple(
                offset + sign * int((each.owner < shift).sum())
                for each, offset in zip(ranges, offsets, strict=True)
            )
            bounds = _compute_bounds(ranges, moved, totals)
            if _in_order(_Bounds(bounds.low[part], bounds.high[part]), totals[part]):
                return True
    return False
