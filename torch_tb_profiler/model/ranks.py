"""Which rank a trace belongs to, and the traces of a file that holds several."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from torch_tb_profiler.model.kinds import DEVICE, HOST, Kind, of_kind
from torch_tb_profiler.model.trace import (
    ABSENT,
    ArgColumn,
    Bool,
    Events,
    Int32,
    Memo,
    Trace,
    derived,
    distinct,
    name_mask,
)


@derived
def rank(trace: Trace) -> int | None:
    """The rank that the file itself names (`distributedInfo.rank`, Composer's `global_rank`); None if none."""
    info = trace.metadata.get("distributedInfo")
    value = info.get("rank") if isinstance(info, Mapping) else trace.metadata.get("global_rank")
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    told = set(trace.arg_int("value", _global_rank_rows(trace)).tolist()) - {int(ABSENT)}
    return told.pop() if len(told) == 1 else None


@derived
def split_ranks(trace: Trace) -> dict[int, Trace]:
    """One trace per rank of a merged file; empty if the file holds one process.

    A merge of several ranks (Composer's) has no `traceEvents` wrapper of its own kind: it is told by host
    *and* device work under one and the same pid, for two or more small integer pids.
    """
    events = trace.events
    host = {trace.threads[code].pid for code in distinct(events.thread[of_kind(trace, *HOST, Kind.TRAINER)])}
    device = {trace.threads[code].pid for code in distinct(events.thread[of_kind(trace, *DEVICE)])}
    named = _global_ranks(trace)
    ranks = sorted(pid for pid in host & (device | named) if isinstance(pid, int))
    if len(ranks) < 2:
        return {}
    pids = [thread.pid for thread in trace.threads]
    return {pid: select(trace, np.array([p == pid for p in pids])[events.thread]) for pid in ranks}


@derived
def split(trace: Trace) -> dict[int, Trace]:
    """The parts of a file: one trace per rank of a merged file, by rank, or one per recording, by its number from
    0 on; empty if the file holds one trace."""
    begins = trace.recordings
    if len(begins) < 2:
        return split_ranks(trace)
    rows = np.arange(len(trace))
    number = np.searchsorted(np.array(begins), rows, "right") - 1
    return {at: select(trace, number == at) for at in range(len(begins))}


def _global_rank_rows(trace: Trace) -> Int32:
    named = name_mask(trace.strings, lambda text: text == "global_rank")[trace.events.name]
    return np.flatnonzero(named & (trace.events.phase == ord("M"))).astype(np.int32)


def _global_ranks(trace: Trace) -> set[int | str | None]:
    rows = _global_rank_rows(trace)
    return {trace.threads[thread].pid for thread in trace.events.thread[rows].tolist()}


def select(trace: Trace, which: Bool) -> Trace:
    """The trace of a subset of the events; times count from the first of them."""
    events = Events(*(getattr(trace.events, name)[which] for name in Events.__slots__))
    position = np.cumsum(which) - 1
    args = {}
    for key, column in trace.args.items():
        kept = which[column.rows]
        if kept.any():
            rows = position[column.rows[kept]].astype(np.int32)
            args[key] = ArgColumn(column.kind, rows, column.values[kept], column.dictionary)
    timed = events.start != ABSENT
    counted = timed & (events.phase != ord("M"))
    origin = int(events.start[counted].min()) if counted.any() else 0
    start = np.where(timed, events.start - origin, ABSENT)
    return replace(
        trace,
        events=replace(events, start=start),
        args=args,
        trace_start_ns=trace.trace_start_ns + origin,
        recordings=(),
        _memo=Memo(),
    )
