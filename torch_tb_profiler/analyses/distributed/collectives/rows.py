"""One collective of the table, and each rank's part in it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.collectives.table import CollectiveTable
from torch_tb_profiler.analyses.distributed.comparison import Comparison
from torch_tb_profiler.analyses.distributed.job import Source
from torch_tb_profiler.analyses.distributed.reduction.rank_details import RankDetails
from torch_tb_profiler.analyses.shared.breakdown import CATEGORIES
from torch_tb_profiler.analyses.shared.optional import optional_float, optional_int
from torch_tb_profiler.model.trace import ABSENT, NO_CODE


class CollectiveRow(msgspec.Struct, frozen=True):
    """A row of the table as Python values: see CollectiveTable; None where unknown.

    operation  the row of the job's table that stands for it
    ranks      how many recorded it; size: ranks of the group
    skew       ns from the first to the last arrival
    last       who arrived last, None where the clocks' error exceeds the skew
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
    last: Source | None
    algorithm_bandwidth: float | None
    bus_bandwidth: float | None
    lower_bound: bool


def collective_row(comparison: Comparison, table: CollectiveTable, collective: int) -> CollectiveRow:
    """One of 0..c-1."""
    job, arrivals = comparison.job, comparison.arrivals
    operation, last = int(table.example[collective]), int(arrivals.last[collective])
    group = int(job.table.group[operation])
    return CollectiveRow(
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


class Window(msgspec.Struct, frozen=True):
    """What a rank did between the group's previous collective and this one; ns by category and by name.

    short_names  of kernels of the rank: name -> short name
    """

    length: int
    categories: Mapping[str, int]
    host: list[tuple[str, int]]
    kernels: list[tuple[str, int]]
    short_names: Mapping[str, str]


class Participant(msgspec.Struct, frozen=True):
    """One rank's operation; see `reduction.operations`. None where unknown.

    operation  row of the job's table
    event, call  rows of the rank's trace
    trace_start  in the rank's own trace; start, end: job time
    after_first  ns after the first arrival
    middle     it arrived in the middle
    """

    source: Source
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
    middle: bool
    before: Window | None


def participants(comparison: Comparison, collective: int) -> list[Participant]:
    """In order of rank."""
    rows = np.flatnonzero(comparison.matching.instance == collective).tolist()
    return [_participant(comparison, row) for row in rows]


def _participant(comparison: Comparison, row: int) -> Participant:
    table, arrivals = comparison.job.table, comparison.arrivals
    source, shift = comparison.job.source_of(row), comparison.clocks.clocks[table.member[row]].shift
    details = source.details()
    cell = details.table()[table.row[row]]
    trace_start, trace_end = optional_int(table.start[row]), optional_int(table.end[row])
    start = None if trace_start is None or shift is None else trace_start + shift
    first = int(arrivals.first[comparison.matching.instance[row]])
    return Participant(
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
        middle=bool(arrivals.middle[row]),
        before=None if table.window[row] == ABSENT else _window(int(table.window[row]), details, cell),
    )


def _window(length: int, details: RankDetails, cell: np.void) -> Window:
    def named(codes: str, times: str) -> list[tuple[str, int]]:
        pairs = zip(cell[codes].tolist(), cell[times].tolist(), strict=True)
        return [(details.names[code], time) for code, time in pairs if code != NO_CODE]

    categories = dict(zip(CATEGORIES, cell["categories"].tolist(), strict=True))
    host, kernels = named("host", "host_ns"), named("kernels", "kernel_ns")
    return Window(length, categories, host, kernels, details.short_names)
