"""Rows of a table from calls: which calls a filter selects, which share a row, what they sum to.

Calls may share a row by the size of their work, as far as a file records it.
"""

from __future__ import annotations

from itertools import pairwise

import msgspec
import numpy as np

from torch_tb_profiler.base.arrays import cells_of_rows, sums_by_number
from torch_tb_profiler.base.compiled import column_functions
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.base.grammar import list_options
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.devices import device_ids, stream_ids
from torch_tb_profiler.model.phases import PHASES, phase_mask
from torch_tb_profiler.model.steps import step_noun, steps
from torch_tb_profiler.model.trace import NO_CODE, Bool, Float64, Int32, Int64, Trace

_MIN_MEMBERS_TO_SELECT = 1_000
"""Calls per group from which selecting a few of each group is faster than sorting all calls."""

_VALUES_AT_ONCE = 1 << 18
"""Values that are looked up, or compared with the largest of their group, at once, which bounds the memory."""

MAX_SIZE_LENGTH = 120
"""Most characters of a grid or of input shapes in a size."""


class Groups(msgspec.Struct, frozen=True):
    """Groups of calls. `which` int64[k]: the group of each call; `first` int64[g]: index of the first call."""

    which: Int64
    first: Int64

    def __len__(self) -> int:
        return len(self.first)

    @property
    def counts(self) -> Int64:
        return np.bincount(self.which, minlength=len(self))

    def sums(self, values: Int64) -> Int64:
        """Return int64[g]: exact sums of values per group."""
        return sums_by_number(self.which, values, len(self))

    def members(self, group: int) -> Int64:
        """Return the indices of the calls of one group."""
        return np.flatnonzero(self.which == group)

    def order(self) -> Int64:
        """Return int64[k]: the indices of all calls by group, ascending within each."""
        return stable_order(self.which)


def group(*keys: Int32 | Int64) -> Groups:
    """Group calls with equal keys; groups come in order of their first call."""
    which, count = dense_codes(*keys)
    if functions := column_functions(len(which)):
        first = functions.first(which, count)
    else:
        first = np.empty(count, np.int64)
        first[which[::-1]] = np.arange(len(which))[::-1]  # the last write wins: the first call
    if (first[:-1] < first[1:]).all():
        return Groups(which, first)
    order = np.argsort(first, kind="stable")
    rank = np.empty(count, np.int64)
    rank[order] = np.arange(count)
    _look_up_in_place(which, rank)
    return Groups(which, first[order])


def _look_up_in_place(indices: Int64, values: Int64) -> None:
    """Replace indices by the values there: a long column isn't in memory twice."""
    for first in range(0, len(indices), _VALUES_AT_ONCE):
        part = indices[first : first + _VALUES_AT_ONCE]
        part[:] = values[part]


def count_pairs(groups: Groups, values: Int32 | Int64, count: int) -> Int64:
    """Return int64[g]: how many distinct values, which lie in 0..count-1, the calls of each group have."""
    ascend = bool((values[1:] >= values[:-1]).all())
    if ascend and count < 2**31 and (functions := column_functions(len(values))):
        return functions.changes(groups.which, values.astype(np.int32, copy=False), len(groups))
    pairs = groups.which * count + values
    # Values that ascend do so in each group, too, so that nothing has to be sorted.
    pairs = pairs[groups.order()] if ascend else np.sort(pairs)
    first = np.append(True, pairs[1:] != pairs[:-1]) if len(pairs) else np.empty(0, np.bool_)
    return np.bincount(pairs[first] // max(count, 1), minlength=len(groups))


def dense_codes(*keys: Int32 | Int64) -> tuple[Int64, int]:
    """Return (int64[k] codes 0..c-1 in the order of the keys, the first key first; c)."""
    which, count = _dense(keys[0])
    for key in keys[1:]:
        more, times = _dense(key)
        if times > 1:
            which *= times
            which += more
            del more  # long columns of a large job are at once in few copies
            which, count = _dense(which, in_place=True)
    return which, count


def positions_by_value(key: Int32 | Int64, count: int) -> list[Int64]:
    """Return the ascending indices of each value 0..count-1; other values are left out."""
    order = stable_order(key)
    if len(key) and key.min() >= 0:
        bounds = [0, *np.cumsum(np.bincount(key, minlength=count)[:count]).tolist()]
    else:
        bounds = np.searchsorted(key[order], np.arange(count + 1)).tolist()
    return [order[begin:end] for begin, end in pairwise(bounds)]


def stable_order(key: Int32 | Int64) -> Int64:
    """Return the indices that sort the key, stable."""
    # numpy sorts sixteen bits by radix.
    if (functions := column_functions(len(key))) and 0 <= key.min() and key.max() <= 4 * len(key):
        return functions.order(key, int(key.max()) + 1)
    narrow = key.astype(np.uint16) if len(key) and 0 <= key.min() and key.max() < 2**16 else key
    return np.argsort(narrow, kind="stable")


def _dense(key: Int32 | Int64, in_place: bool = False) -> tuple[Int64, int]:
    """Return (codes 0..c-1 in the order of one key, c); with `in_place` they may replace a key of int64."""
    if len(key) == 0:
        return np.empty(0, np.int64), 0
    low, high = int(key.min()), int(key.max())
    if low == high:
        return np.zeros(len(key), np.int64), 1
    if high - low <= 4 * len(key) + 1024:
        # Codes are nearly dense already: a table is several times faster than sorting.
        shifted = np.subtract(key, low, out=key if in_place else None, dtype=np.int64)
        if functions := column_functions(len(key)):
            return shifted, functions.dense(shifted, high - low + 1)
        seen = np.zeros(high - low + 1, np.bool_)
        seen[shifted] = True
        if seen.all():
            return shifted, len(seen)
        rank = np.cumsum(seen) - 1
        return rank[shifted], int(rank[-1]) + 1
    distinct, codes = np.unique(key, return_inverse=True)
    return codes.reshape(-1), len(distinct)


class OrderStatistics(msgspec.Struct, frozen=True):
    """Minimum, maximum and quantiles of each group; `quantiles` has float64[g] per share.

    largest  int64[g]  index of the maximum, of equal ones the last
    """

    least: Int64
    most: Int64
    largest: Int64
    quantiles: list[Float64]


def order_statistics(groups: Groups, values: Int64, *shares: float) -> OrderStatistics:
    """Compute order statistics; quantiles (0.5: median) interpolate linearly, as numpy does by default."""
    which, counts = groups.which, groups.counts
    begin = np.cumsum(counts) - counts
    places = [(counts - 1) * share for share in shares]
    around = [
        (below, np.minimum(below + 1, counts - 1)) for below in (np.floor(at).astype(np.int64) for at in places)
    ]
    wanted = [np.zeros_like(counts), counts - 1, *(at for pair in around for at in pair)]
    ordered = _ordered_at(groups, values, wanted)
    quantiles = []
    for at, (below, above) in zip(places, around, strict=True):
        quantiles.append(ordered[begin + below] + (ordered[begin + above] - ordered[begin + below]) * (at - below))
    most = ordered[begin + counts - 1]
    largest = np.empty(len(groups), np.int64)
    for first in range(0, len(values), _VALUES_AT_ONCE):
        part = slice(first, first + _VALUES_AT_ONCE)
        candidates = first + np.flatnonzero(values[part] == most[which[part]])
        largest[which[candidates]] = candidates  # the last write wins
    return OrderStatistics(ordered[begin], most, largest, quantiles)


def _ordered_at(groups: Groups, values: Int64, places: list[Int64]) -> Int64:
    """Return the values by group, and within each such that those at its places are where sorting puts them."""
    which, counts = groups.which, groups.counts
    if len(groups) * _MIN_MEMBERS_TO_SELECT <= len(values):
        ordered = groups.order()
        _look_up_in_place(ordered, values)
        ends = np.cumsum(counts).tolist()
        for begin, end, wanted in zip([0, *ends], ends, np.stack(places, axis=1).tolist(), strict=False):
            ordered[begin:end].partition(sorted(set(wanted)))
        return ordered
    low = int(values.min(initial=0))
    span = int(values.max(initial=0)) - low + 1
    if len(groups) * span >= 2**62:
        return values[np.lexsort((values, which))]
    # Sorting numbers is several times faster than finding the order that sorts them.
    ordered = np.sort(which * span + (values - low))
    ordered -= np.repeat(np.arange(len(groups)) * span - low, counts)
    return ordered


def launch_times(trace: Trace, rows: Int32) -> Int64:
    """Return int64[k]: when device work was launched, or its start where no launch is recorded."""
    if len(rows) == 0:
        return np.empty(0, np.int64)
    links = device_links(trace)
    mine = cells_of_rows(links.rows, links.launch, rows, NO_CODE)
    return trace.events.start.take(np.where(mine >= 0, mine, rows))


def step_mask(trace: Trace, times: Int64, name: str) -> Bool:
    """Return bool[k]: which times lie in a step as the host ran it. Raises NotFoundError, listing the steps."""
    spans = steps(trace)
    indices = [i for i, text in enumerate(spans.names) if text == name]
    if not indices:
        noun = step_noun(trace)
        raise NotFoundError(f"there is no {noun} {name!r}", hint=list_options(f"{noun}s", spans.names))
    inside = np.zeros(len(times), np.bool_)
    for i in indices:
        inside |= (times >= spans.host_starts[i]) & (times < spans.host_ends[i])
    return inside


def thread_mask(trace: Trace, rows: Int32, thread: str) -> Bool:
    """Return bool[k]: which rows are on the thread "pid/tid". Raises NotFoundError if there is none."""
    codes = [i for i, each in enumerate(trace.threads) if each.label == thread]
    if not codes:
        raise NotFoundError(f"there is no thread {thread!r}", hint="threads are written pid/tid")
    inside: Bool = np.isin(trace.events.thread[rows], codes)
    return inside


def checked_phase_mask(trace: Trace, rows: Int32, phase: str) -> Bool:
    """Return bool[k]: which rows run in a phase. Raises NotFoundError, which lists the phases."""
    check_phase(phase)
    return phase_mask(trace, rows, phase)


def check_phase(phase: str) -> None:
    """Raise NotFoundError, which lists the phases, if there is no such phase."""
    if phase not in PHASES:
        raise NotFoundError(f"there is no phase {phase!r}", hint=f"phases: {', '.join(PHASES)}")


def rows_named(trace: Trace, rows: Int32, name: str) -> Bool:
    """Return bool[k]: which rows have this name."""
    codes = [i for i, text in enumerate(trace.strings) if text == name]
    has: Bool = np.isin(trace.events.name[rows], codes)
    return has


def select_device_work(
    trace: Trace, rows: Int32, step: str = "", device: int | None = None, stream: int | None = None
) -> Int32:
    """Select the rows launched in a step that ran on a device and stream; "" and None select all.

    Raises NotFoundError for an unknown step.
    """
    mask = np.ones(len(rows), np.bool_)
    if step:
        mask &= step_mask(trace, launch_times(trace, rows), step)
    if device is not None:
        mask &= device_ids(trace)[rows] == device
    if stream is not None:
        mask &= stream_ids(trace)[rows] == stream
    selected: Int32 = rows[mask]
    return selected


def input_shape_codes(trace: Trace) -> Int32:
    """Return int32[n]: codes into `input_shape_texts`, NO_CODE where no input shapes are recorded."""
    return _code_input_shapes(trace)[0]


def input_shape_texts(trace: Trace) -> list[str]:
    """Return the distinct input shapes of operators as the file spells them."""
    return _code_input_shapes(trace)[1]


@derived
def _code_input_shapes(trace: Trace) -> tuple[Int32, list[str]]:
    """Return the input shapes of all events as codes, int32[n], and their texts."""
    codes, texts = trace.arg_codes("Input Dims")
    if "Input dims" not in trace.args:
        return codes, [*texts]
    older, older_texts = trace.arg_codes("Input dims")
    codes = np.where(codes >= 0, codes, np.where(older >= 0, older + len(texts), NO_CODE)).astype(np.int32)
    return codes, [*texts, *older_texts]


def kernel_size_codes(trace: Trace, rows: Int32) -> tuple[Int64, Int64]:
    """Return how large device work is, int64[k] each: codes of the grid and of the operator's input shapes.

    NO_CODE where one isn't recorded. Kernels of equal size compute as much.
    """
    grid = trace.arg_codes("grid", rows)[0].astype(np.int64)
    links = device_links(trace)
    operator = cells_of_rows(links.rows, links.operator, rows, NO_CODE)
    shape = np.where(operator >= 0, input_shape_codes(trace)[operator], NO_CODE).astype(np.int64)
    return grid, shape


def kernel_size_text(trace: Trace, row: int) -> str:
    """Return the size of one kernel as a sentence names it: "[100,1,1] [[32,64],[64,64]]"; "" if unknown."""
    rows = np.array([row], np.int32)
    grid, shape = kernel_size_codes(trace, rows)
    texts = trace.arg_codes("grid", rows)[1], input_shape_texts(trace)
    codes = int(grid[0]), int(shape[0])
    return " ".join(
        spelled[code][:MAX_SIZE_LENGTH] for spelled, code in zip(texts, codes, strict=True) if code >= 0
    )
