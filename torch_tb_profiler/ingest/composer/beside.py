"""A trainer's trace with what PyTorch's own files of the same ranks and windows say.

Composer copies PyTorch's events into its own file with the rank as their process, and drops what stands around
them: the devices, the job. Where it has copied none of a rank (its file was closed before PyTorch's was written),
they come from there, in the same way.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, BinaryIO

import numpy as np

from torch_tb_profiler.base.memo import Memo
from torch_tb_profiler.ingest.kineto.assemble import assemble
from torch_tb_profiler.ingest.kineto.columns import EventColumns
from torch_tb_profiler.ingest.kineto.read import collect_events, read_metadata
from torch_tb_profiler.ingest.runtime import Report
from torch_tb_profiler.model.health import HealthLog
from torch_tb_profiler.model.kinds import DEVICE_KINDS, HOST_KINDS, rows_of_kind
from torch_tb_profiler.model.ranks import RANK_METADATA_KEY, split_ranks, trace_rank
from torch_tb_profiler.model.trace import ABSENT, Thread, Trace
from torch_tb_profiler.model.trainer import merge_offsets

Open = Callable[[], BinaryIO]

_BASE = "baseTimeNanoseconds"
"""Times are brought to those of the trainer, which count since the epoch."""


def add_pytorch(
    trace: Trace,
    open_own: Open,
    beside: Sequence[tuple[int, Open]],
    *,
    report: Report,
    limit: int,
    shared: bool = False,
) -> Trace:
    """Raises TraceError and TooLargeError as reading any of the files does.

    open_own  the file of `trace`, of one rank or merged of several
    beside    (rank, how to open one of PyTorch's files of that rank), in order of the windows; one at least
    shared    what this file does not hold, other merged files may
    """
    ranks = split_ranks(trace)
    alone = trace_rank(trace) if shared else beside[0][0]
    parts = ranks or ({} if alone is None else {alone: trace})
    files: dict[int, list[Open]] = defaultdict(list)
    for number, open_ in beside:
        if number in parts:
            files[number].append(open_)
    metadata_of: dict[int, dict[str, Any]] = {}
    copied = {number for number, part in parts.items() if len(rows_of_kind(part, *HOST_KINDS, *DEVICE_KINDS))}
    if any(number not in copied for number in files):
        columns, health = EventColumns(), HealthLog()
        with open_own() as stream:
            own = collect_events(stream, columns, health, report=report, limit=limit)
        begins: list[tuple[int, int]] = []
        for number in sorted(files.keys() - copied):
            for open_ in files[number]:
                begins.append((columns.length, number))
                with open_() as stream:
                    metadata = collect_events(stream, columns, health, report=report, limit=limit)
                metadata_of.setdefault(number, metadata)
        joined = replace(assemble(columns, own, health), producer=trace.producer)
        trace = _of_ranks(joined, begins, merge_offsets(ranks)) if ranks else _in_one_process(joined, begins[0][0])
    for number in files.keys() - metadata_of.keys():
        with files[number][0]() as stream:
            metadata_of[number] = read_metadata(stream, report=report, limit=limit)
    described = {number: _without_base(metadata) for number, metadata in metadata_of.items()}
    metadata = (
        {RANK_METADATA_KEY: {str(number): described[number] for number in described}}
        if ranks
        else next(iter(described.values()), {})
    )
    strangers = sorted({number for number, _ in beside} - parts.keys())
    notes = HealthLog()
    if strangers:
        own_workers = "once all merged files are read, those that no file holds are workers of their own"
        fate = own_workers if shared else "they are workers of their own"
        message = f"files of PyTorch lie beside this one whose ranks it does not hold: {fate}"
        notes.add("rank_not_merged", "info", message, count=len(strangers))
    return replace(
        trace,
        metadata={**metadata, **trace.metadata},
        health=(*trace.health, *notes.notes()),
        _memo=Memo(),
    )


def _without_base(metadata: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in metadata.items() if key != _BASE}


def _of_ranks(trace: Trace, begins: Sequence[tuple[int, int]], moved: Mapping[int, int]) -> Trace:
    """All events of PyTorch are of the process that is their rank, at the times to which the merge moved it.

    begins  (first row, rank) of each file, one behind the other
    moved   ns by rank
    """
    threads = {each: code for code, each in enumerate(trace.threads)}
    thread, start = trace.events.thread.copy(), trace.events.start.copy()
    timed = start != ABSENT
    ends = [first for first, _ in begins[1:]] + [len(trace)]
    for (first, number), end in zip(begins, ends, strict=True):
        rows = slice(first, end)
        codes = [threads.setdefault(Thread(number, each.tid), len(threads)) for each in trace.threads]
        thread[rows] = np.array([*codes, -1], np.int32)[thread[rows]]
        start[rows][timed[rows]] += moved.get(number, 0)
    events = replace(trace.events, thread=thread, start=start)
    return replace(trace, events=events, threads=list(threads), _memo=Memo())


def _in_one_process(trace: Trace, first: int) -> Trace:
    """The process that has a thread of the trainer is the trainer's, in the events from row `first` on."""
    number = trace_rank(trace)
    if number is None:
        return trace
    used = trace.events.thread
    mine = {trace.threads[code].tid for code in np.unique(used[:first]).tolist() if code >= 0}
    later = {code for code in np.unique(used[first:]).tolist() if code >= 0}
    same = {trace.threads[code].pid for code in later if trace.threads[code].tid in mine}
    threads: dict[Thread, int] = {}
    codes = [
        threads.setdefault(Thread(number, each.tid) if each.pid in same else each, len(threads))
        for each in trace.threads
    ]
    events = replace(trace.events, thread=np.array([*codes, -1], np.int32)[used])
    return replace(trace, events=events, threads=list(threads), _memo=Memo())
