"""The ranks of a job on one clock: their steps and collectives, for one timeline of all."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from torch_tb_profiler.analyses.rank_summary import RankSummary
from torch_tb_profiler.errors import UsageError
from torch_tb_profiler.model.trace import ABSENT, Int64, Trace
from torch_tb_profiler.view import Members, Scope, View
from torch_tb_profiler.views.distributed_operations import full_name
from torch_tb_profiler.views.distributed_part_payloads import (
    Lane,
    StepMark,
    Timeline,
    TimelineParams,
)
from torch_tb_profiler.views.distributed_ranks import Party, party

_RANKS = re.compile(r"(\d{1,7})(?:-(\d{1,7}))?")


def build(members: Members[RankSummary], params: TimelineParams) -> Timeline:
    """The chosen ranks between two moments."""
    who = party(members)
    job, clocks = who.found.job, who.found.clocks
    shift, aligned = clocks.shifts()
    chosen = _chosen(who, params.ranks)
    table = job.table
    rows = np.flatnonzero((table.start != ABSENT) & (aligned & chosen)[table.member])
    start, end = (column[rows] + shift[table.member[rows]] for column in (table.start, table.end))
    last = params.end if params.end > 0 else int(end.max(initial=0))
    inside = np.flatnonzero((end >= params.begin) & (start <= last))
    kept = _longest(inside, (end - start)[inside], params.limit)
    rows, start, end = rows[kept], start[kept], end[kept]
    texts = [full_name(who, row) for row in rows.tolist()]
    names = list(dict.fromkeys(texts))
    codes = np.array([names.index(text) for text in texts], np.int64)
    span = {member.worker: member.span for member in members}
    lanes = []
    for position in np.flatnonzero(aligned & chosen).tolist():
        source, own = who.sources[position], table.member[rows] == position
        wait = who.found.split.waiting[rows[own]]
        lanes.append(
            Lane(
                worker=source.worker,
                rank=source.rank,
                span=span[source.worker],
                shift_ns=int(shift[position]),
                steps=_steps(source.summary, int(shift[position]), params.begin, last),
                start=_packed(start[own], np.int64),
                end=_packed(end[own], np.int64),
                wait=_packed(np.where(wait == ABSENT, -1, wait), np.int64),
                collective=_packed(who.found.matching.instance[rows[own]], np.int32),
                name=_packed(codes[own], np.int32),
                event=_packed(source.summary.table()["event"][table.row[rows[own]]], np.int32),
            )
        )
    lost = [who.sources[position].worker for position in np.flatnonzero(~aligned & chosen).tolist()]
    return Timeline(params.begin, last, names, lanes, lost, len(inside) - len(kept))


def _chosen(who: Party, ranks: str) -> npt.NDArray[np.bool_]:
    """bool[sources]: the ranks that the text names; all for an empty one."""
    if not ranks:
        return np.ones(len(who.sources), np.bool_)
    wanted: set[int] = set()
    for part in ranks.split(","):
        match = _RANKS.fullmatch(part.strip())
        if match is None:
            raise UsageError(f"{part!r} is no rank", hint="ranks are written 0-7,12")
        wanted |= set(range(int(match[1]), int(match[2] or match[1]) + 1))
    return np.array([source.rank in wanted for source in who.sources], np.bool_)


def _longest(rows: Int64, lasting: Int64, limit: int) -> Int64:
    """At most `limit` of these, in their order."""
    if limit <= 0 or len(rows) <= limit:
        return rows
    return rows[np.sort(np.argpartition(-lasting, limit)[:limit])]


def _steps(summary: RankSummary, shift: int, begin: int, end: int) -> list[StepMark]:
    marks = [StepMark(each.name, each.start + shift, each.start + each.duration + shift) for each in summary.steps]
    return [mark for mark in marks if mark.end_ns >= begin and mark.start_ns <= end]


def _packed(values: npt.NDArray[Any], kind: type[np.signedinteger[Any]]) -> bytes:
    return values.astype(np.dtype(kind).newbyteorder("<")).tobytes()


def _never(trace: Trace) -> None:
    return None


TIMELINE: View[Any, Any] = View(
    "distributed/timeline", "Ranks on one clock", 0, Scope.RUN, TimelineParams, Timeline, _never, build
)
