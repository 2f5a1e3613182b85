"""The collectives that join chosen ranks within a window."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.comparison import Comparison
from torch_tb_profiler.analyses.distributed.job import Windows
from torch_tb_profiler.model.trace import ABSENT, Bool, Int64


class Connection(msgspec.Struct, frozen=True):
    """One collective; columns with an entry per chosen rank that takes part.

    operations  rows of the job's table
    keys        of the ranks, as they were chosen
    events      rows of the ranks' traces
    starts, ends  job time, ns
    """

    collective: int
    operations: list[int]
    keys: list[int]
    events: list[int]
    starts: list[int]
    ends: list[int]


class Connections(msgspec.Struct, frozen=True):
    """`total` collectives join the chosen ranks; `rows` are the longest of them, in order of first start."""

    rows: list[Connection]
    total: int


def connections(
    comparison: Comparison, chosen: Mapping[int, int], begin: int | None, end: int | None, limit: int
) -> Connections:
    """`chosen`: position in the job's sources -> a key of one's own; ranks without a common clock join nothing.

    Collectives that at least one of the ranks has in [begin, end) of job time; None is open.
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
    joined = np.bincount(instance[rows], minlength=count) >= 2
    inside = _touches(starts[rows], ends[rows], begin, end)
    joined &= np.bincount(instance[rows][inside], minlength=count) > 0
    longest = np.zeros(count, np.int64)
    np.maximum.at(longest, instance[rows], (ends - starts)[rows])
    ids = np.flatnonzero(joined)
    shown = np.sort(ids[np.argsort(-longest[ids], kind="stable")[:limit]])
    rows_of: dict[int, list[int]] = {collective: [] for collective in shown.tolist()}
    for row in rows[np.isin(instance[rows], shown)].tolist():
        rows_of[int(instance[row])].append(row)
    windows = Windows(comparison.job)
    return Connections(
        [
            Connection(
                collective=collective,
                operations=own,
                keys=key_of[table.member[own]].tolist(),
                events=[int(windows.before(row)["event"]) for row in own],
                starts=starts[own].tolist(),
                ends=ends[own].tolist(),
            )
            for collective, own in rows_of.items()
        ],
        len(ids),
    )


def _touches(starts: Int64, ends: Int64, begin: int | None, end: int | None) -> Bool:
    """bool[k]: which operations the window contains at least in part."""
    inside = np.ones(len(starts), np.bool_)
    if begin is not None:
        inside &= ends >= begin
    if end is not None:
        inside &= starts < end
    return inside
