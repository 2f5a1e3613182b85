"""The collectives of a job: the table, one collective by rank, and those that connect chosen ranks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.comparison import RankComparison
from torch_tb_profiler.analyses.distributed.job import RankDetailsCache, RankSource
from torch_tb_profiler.analyses.distributed.rank_details import RankDetails
from torch_tb_profiler.analyses.distributed.waiting import BandwidthColumns, bandwidths
from torch_tb_profiler.analyses.shared.breakdown import CATEGORIES
from torch_tb_profiler.analyses.shared.payload_values import optional_float, optional_int
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.base.grammar import list_options
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Float64, Int64

CollectiveSort = Literal[
    "start", "name", "group", "step", "ranks", "bytes", "latency", "transfer", "waiting", "skew", "bandwidth"
]


class CollectiveTable(msgspec.Struct, frozen=True):
    """The collectives as columns of length c, in order of first start; ABSENT where unknown.

    example  int64  a row of the job's table with the group, names, sequence number, and step of the collective
    start, end  int64  job time of the first arrival and of the last end
    message  int64  bytes of the largest message of a rank
    latency  int64  ns, longest of the ranks
    transfer int64  ns, shortest latency of the compared ranks
    waiting  int64  ns, sum over the compared ranks of latency - transfer
    """

    example: Int64
    start: Int64
    end: Int64
    message: Int64
    latency: Int64
    transfer: Int64
    waiting: Int64
    bandwidth: BandwidthColumns


def collective_table(comparison: RankComparison) -> CollectiveTable:
    """Return the table with one row per collective."""
    table, instance, count = comparison.job.table, comparison.matching.instance, len(comparison.matching)
    example = np.empty(count, np.int64)
    example[instance[::-1]] = np.arange(len(table))[::-1]
    shift, aligned = comparison.clocks.shifts()
    has_time = table.start != ABSENT
    placed = np.flatnonzero(has_time & aligned[table.member])
    shifts = shift[table.member[placed]]
    timed = np.flatnonzero(has_time)
    compared = np.flatnonzero(comparison.matching.compared)
    known = np.zeros(count, np.bool_)
    known[instance[compared]] = True
    waiting = np.zeros(count, np.int64)
    np.add.at(waiting, instance[compared], comparison.split.waiting[compared])
    return CollectiveTable(
        example,
        start=_find_extreme(np.minimum, instance[placed], table.start[placed] + shifts, count),
        end=_find_extreme(np.maximum, instance[placed], table.end[placed] + shifts, count),
        message=_find_extreme(np.maximum, instance, table.message[:], count),
        latency=_find_extreme(np.maximum, instance[timed], table.latency[timed], count),
        transfer=_find_extreme(np.minimum, instance[compared], table.latency[compared], count),
        waiting=np.where(known, waiting, ABSENT),
        bandwidth=bandwidths(comparison.job, comparison.split, instance, count),
    )


def _find_extreme(choose: np.ufunc, which: Int64, values: Int64, count: int) -> Int64:
    """Return int64[count], the minimum or the maximum of each collective's values, ABSENT without any."""
    limits = np.iinfo(np.int64)
    none = limits.max if choose is np.minimum else limits.min
    extremes = np.full(count, none)
    choose.at(extremes, which, values)
    return np.where(extremes == none, ABSENT, extremes)


class CollectiveFilter(msgspec.Struct, frozen=True):
    """Which collectives to select; None selects all.

    group  id of a process group
    last   the worker that arrived last
    mismatched  only those on which the ranks disagree
    """

    group: int | None = None
    name: str | None = None
    step: str | None = None
    last: str | None = None
    mismatched: bool = False


def select_collectives(
    comparison: RankComparison,
    table: CollectiveTable,
    filter_: CollectiveFilter,
    sort: CollectiveSort,
    descending: bool,
) -> list[int]:
    """Return the collectives that pass the filter, in order.

    NotFoundError for a group, step, or worker that does not exist.
    """
    rows = np.flatnonzero(_filter_mask(comparison, table, filter_))
    order = rows[np.argsort(_sort_key(comparison, table, sort)[rows], kind="stable")]
    ids: list[int] = (order[::-1] if descending else order).tolist()
    return ids


def _filter_mask(comparison: RankComparison, table: CollectiveTable, filter_: CollectiveFilter) -> Bool:
    job = comparison.job
    passes = np.ones(len(comparison.matching), np.bool_)
    if filter_.group is not None:
        if filter_.group >= len(job.groups):
            raise NotFoundError(f"there is no process group {filter_.group}", hint=f"0 to {len(job.groups) - 1}")
        passes &= job.table.group[table.example] == filter_.group
    if filter_.name is not None:
        passes &= np.array([job.name_of(row) == filter_.name for row in table.example.tolist()], np.bool_)
    if filter_.step is not None:
        if filter_.step not in job.steps:
            raise NotFoundError(f"there is no step {filter_.step!r}", hint=list_options("steps", job.steps))
        passes &= job.table.step[table.example] == job.steps.index(filter_.step)
    if filter_.last is not None:
        if filter_.last not in comparison.positions:
            raise NotFoundError(f"no worker {filter_.last!r} is compared", hint="`ranks` of the view lists them")
        last = comparison.arrivals.last
        members = np.append(job.table.member, NO_CODE)[last]
        passes &= (last >= 0) & (members == comparison.positions[filter_.last])
    if filter_.mismatched:
        mismatched = [mismatch.instance for mismatch in comparison.matching.mismatches]
        passes &= np.isin(np.arange(len(passes)), mismatched)
    return passes


def _sort_key(comparison: RankComparison, table: CollectiveTable, sort: CollectiveSort) -> Int64 | Float64:
    job, example = comparison.job, table.example
    names = np.array(sorted(range(len(job.names)), key=job.names.__getitem__), np.int64)
    name_order = np.empty(len(names) + 1, np.int64)
    name_order[names], name_order[-1] = np.arange(len(names)), -1
    keys: dict[CollectiveSort, Int64 | Float64] = {
        "start": np.arange(len(example)),
        "name": name_order[job.table.collective[example]],
        "group": job.table.group[example].astype(np.int64),
        "step": job.table.step[example].astype(np.int64),
        "ranks": comparison.matching.sizes,
        "bytes": table.message,
        "latency": table.latency,
        "transfer": table.transfer,
        "waiting": table.waiting,
        "skew": comparison.arrivals.skew,
        "bandwidth": np.nan_to_num(table.bandwidth.bus, nan=-1.0),
    }
    return keys[sort]


class CollectiveTableRow(msgspec.Struct, frozen=True):
    """A row of CollectiveTable as Python values, None where unknown.

    operation  the example row of the job's table
    ranks      number of ranks that recorded it; size: ranks of the group
    skew       ns from the first to the last arrival
    last       who arrived last, None if the clocks' error exceeds the skew
    """

    operation: int
    group: int
    ranks: int
    size: int | None
    sequence: int | None
    start: int | None
    end: int | None
    message: int | None
    latency: int | None
    transfer: int | None
    waiting: int | None
    skew: int | None
    last: RankSource | None
    algorithm_bandwidth: float | None
    bus_bandwidth: float | None
    lower_bound: bool


def collective_table_row(
    comparison: RankComparison, table: CollectiveTable, collective: int
) -> CollectiveTableRow:
    """Return the row of one collective, 0..c-1."""
    job, arrivals = comparison.job, comparison.arrivals
    operation, last = int(table.example[collective]), int(arrivals.last[collective])
    group = int(job.table.group[operation])
    return CollectiveTableRow(
        operation=operation,
        group=group,
        ranks=int(comparison.matching.sizes[collective]),
        size=job.groups[group].size,
        sequence=optional_int(job.table.sequence[operation]),
        start=optional_int(table.start[collective]),
        end=optional_int(table.end[collective]),
        message=optional_int(table.message[collective]),
        latency=optional_int(table.latency[collective]),
        transfer=optional_int(table.transfer[collective]),
        waiting=optional_int(table.waiting[collective]),
        skew=optional_int(arrivals.skew[collective]),
        last=job.source_of(last) if last != NO_CODE else None,
        algorithm_bandwidth=optional_float(table.bandwidth.algorithm[collective]),
        bus_bandwidth=optional_float(table.bandwidth.bus[collective]),
        lower_bound=bool(table.bandwidth.lower_bound[collective]),
    )


# ---- one collective by rank -----------------------------------------------------------------------------


class OperationWindow(msgspec.Struct, frozen=True):
    """What a rank did between its previous operation and this one: ns by category and by name.

    short_names  kernel name of the rank -> short name
    """

    length: int
    categories: Mapping[str, int]
    host: list[tuple[str, int]]
    kernels: list[tuple[str, int]]
    short_names: Mapping[str, str]


class CollectiveParticipant(msgspec.Struct, frozen=True):
    """One rank's operation in a collective (see OPERATION), None where unknown.

    operation    row of the job's table
    event, call  rows of the rank's trace
    trace_start  time in the rank's own trace; start, end: job time
    after_first  ns after the first arrival
    is_median    it has the median arrival
    before       its window
    """

    source: RankSource
    operation: int
    event: int
    call: int | None
    bytes_in: int | None
    bytes_out: int | None
    trace_start: int | None
    start: int | None
    end: int | None
    latency: int | None
    transfer: int | None
    waiting: int | None
    exposed: int | None
    after_first: int | None
    is_median: bool
    before: OperationWindow | None


def collective_participants(comparison: RankComparison, collective: int) -> list[CollectiveParticipant]:
    """Return the operations of a collective in order of rank."""
    rows = np.flatnonzero(comparison.matching.instance == collective).tolist()
    return [_build_participant(comparison, row) for row in rows]


def _build_participant(comparison: RankComparison, row: int) -> CollectiveParticipant:
    table, arrivals = comparison.job.table, comparison.arrivals
    source, shift = comparison.job.source_of(row), comparison.clocks.clocks[table.member[row]].shift
    details = source.details()
    cell = details.table()[table.row[row]]
    trace_start, trace_end = optional_int(table.start[row]), optional_int(table.end[row])
    start = None if trace_start is None or shift is None else trace_start + shift
    first = int(arrivals.first[comparison.matching.instance[row]])
    return CollectiveParticipant(
        source=source,
        operation=row,
        event=int(cell["event"]),
        call=int(cell["call"]) if cell["call"] != NO_CODE else None,
        bytes_in=optional_int(table.bytes_in[row]),
        bytes_out=optional_int(table.bytes_out[row]),
        trace_start=trace_start,
        start=start,
        end=None if trace_end is None or shift is None else trace_end + shift,
        latency=optional_int(table.latency[row]),
        transfer=optional_int(comparison.split.transfer[row]),
        waiting=optional_int(comparison.split.waiting[row]),
        exposed=optional_int(table.exposed[row]),
        after_first=None if start is None or arrivals.lateness[row] == ABSENT else start - first,
        is_median=bool(arrivals.is_median[row]),
        before=None
        if table.window[row] == ABSENT
        else _build_operation_window(int(table.window[row]), details, cell),
    )


def _build_operation_window(length: int, details: RankDetails, cell: np.void) -> OperationWindow:
    def named_times(codes: str, times: str) -> list[tuple[str, int]]:
        pairs = zip(cell[codes].tolist(), cell[times].tolist(), strict=True)
        return [(details.names[code], time) for code, time in pairs if code != NO_CODE]

    categories = dict(zip(CATEGORIES, cell["categories"].tolist(), strict=True))
    host, kernels = named_times("host", "host_ns"), named_times("kernels", "kernel_ns")
    return OperationWindow(length, categories, host, kernels, details.short_names)


# ---- collectives that connect chosen ranks --------------------------------------------------------------


class ConnectingCollective(msgspec.Struct, frozen=True):
    """One collective as columns with an entry per chosen rank that takes part.

    operations  rows of the job's table
    keys        the caller's keys of the ranks
    events      rows of the ranks' traces
    starts, ends  job time, ns
    """

    collective: int
    operations: list[int]
    keys: list[int]
    events: list[int]
    starts: list[int]
    ends: list[int]


class ConnectingCollectives(msgspec.Struct, frozen=True):
    """The longest of the `total` collectives that connect the chosen ranks, in order of first start."""

    rows: list[ConnectingCollective]
    total: int


def connecting_collectives(
    comparison: RankComparison, chosen: Mapping[int, int], begin: int | None, end: int | None, limit: int
) -> ConnectingCollectives:
    """Return the collectives that connect chosen ranks, and that at least one of them runs in [begin, end).

    chosen      index in the job's sources -> a key of the caller; ranks without a common clock connect to none
    begin, end  job time in ns, None for an open end
    """
    table, instance, count = comparison.job.table, comparison.matching.instance, len(comparison.matching)
    shift, aligned = comparison.clocks.shifts()
    key_of = np.full(len(comparison.sources), -1)
    for position, key in chosen.items():
        if aligned[position]:
            key_of[position] = key
    timed = (key_of[table.member] >= 0) & (table.start != ABSENT) & (table.end != ABSENT)
    starts, ends = table.start + shift[table.member], table.end + shift[table.member]
    rows = np.flatnonzero(timed)
    connecting = np.bincount(instance[rows], minlength=count) >= 2
    inside = _overlaps(starts[rows], ends[rows], begin, end)
    connecting &= np.bincount(instance[rows][inside], minlength=count) > 0
    longest = np.zeros(count, np.int64)
    np.maximum.at(longest, instance[rows], (ends - starts)[rows])
    ids = np.flatnonzero(connecting)
    shown = np.sort(ids[np.argsort(-longest[ids], kind="stable")[:limit]])
    rows_of: dict[int, list[int]] = {collective: [] for collective in shown.tolist()}
    for row in rows[np.isin(instance[rows], shown)].tolist():
        rows_of[int(instance[row])].append(row)
    details = RankDetailsCache(comparison.job)
    return ConnectingCollectives(
        [
            ConnectingCollective(
                collective=collective,
                operations=operations,
                keys=key_of[table.member[operations]].tolist(),
                events=[int(details.of_operation(row)["event"]) for row in operations],
                starts=starts[operations].tolist(),
                ends=ends[operations].tolist(),
            )
            for collective, operations in rows_of.items()
        ],
        len(ids),
    )


def _overlaps(starts: Int64, ends: Int64, begin: int | None, end: int | None) -> Bool:
    """Return bool[k], True for operations at least partly within [begin, end)."""
    inside = np.ones(len(starts), np.bool_)
    if begin is not None:
        inside &= ends >= begin
    if end is not None:
        inside &= starts < end
    return inside
