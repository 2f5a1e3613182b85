"""Complete a trainer's trace with PyTorch's own files of the same ranks and windows.

Composer copies PyTorch's events into its own file, with the rank as their process, but not the devices and the job
around them. If it copied none of a rank's events (its file was closed before PyTorch wrote its own), they are read
from PyTorch's files and placed in the same way.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np
from msgspec.structs import replace

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

OpenFile = Callable[[], BinaryIO]

_BASE_KEY = "baseTimeNanoseconds"
"""Metadata that is left out: the merged times are those of the trainer, which count from the epoch."""


def add_pytorch_files(
    trace: Trace,
    open_trace: OpenFile,
    companions: Sequence[tuple[int, OpenFile]],
    *,
    report: Report,
    limit: int,
    shared: bool = False,
) -> Trace:
    """Return `trace` with the events and metadata of PyTorch's files that it lacks.

    open_trace  opens the file of `trace`, which has one rank or several merged ones
    companions  (rank, opens one of PyTorch's files of this rank) in order of the windows; at least one
    shared      other merged files may have the ranks that this file doesn't have

    Raises TraceError and TooLargeError as reading any of the files does.
    """
    rank_traces = split_ranks(trace)
    single_rank = trace_rank(trace) if shared else companions[0][0]
    parts = rank_traces or ({} if single_rank is None else {single_rank: trace})
    files: dict[int, list[OpenFile]] = defaultdict(list)
    for rank, open_file in companions:
        if rank in parts:
            files[rank].append(open_file)
    metadata_by_rank: dict[int, dict[str, Any]] = {}
    copied = {rank for rank, part in parts.items() if len(rows_of_kind(part, *HOST_KINDS, *DEVICE_KINDS))}
    if any(rank not in copied for rank in files):
        columns, health = EventColumns(), HealthLog()
        with open_trace() as stream:
            trainer_metadata = collect_events(stream, columns, health, report=report, limit=limit)
        first_rows: list[tuple[int, int]] = []
        for rank in sorted(files.keys() - copied):
            for open_file in files[rank]:
                first_rows.append((columns.length, rank))
                with open_file() as stream:
                    metadata = collect_events(stream, columns, health, report=report, limit=limit)
                metadata_by_rank.setdefault(rank, metadata)
        joined = replace(assemble(columns, trainer_metadata, health), producer=trace.producer)
        trace = (
            _set_ranks(joined, first_rows, merge_offsets(rank_traces))
            if rank_traces
            else _join_process(joined, first_rows[0][0])
        )
    for rank in files.keys() - metadata_by_rank.keys():
        with files[rank][0]() as stream:
            metadata_by_rank[rank] = read_metadata(stream, report=report, limit=limit)
    described = {rank: _without_base(metadata) for rank, metadata in metadata_by_rank.items()}
    metadata = (
        {RANK_METADATA_KEY: {str(rank): each for rank, each in described.items()}}
        if rank_traces
        else next(iter(described.values()), {})
    )
    notes = HealthLog()
    missing_ranks = {rank for rank, _ in companions} - parts.keys()
    if missing_ranks:
        outcome = (
            "those of ranks that no merged file has become workers of their own once all merged files are read"
            if shared
            else "they are workers of their own"
        )
        message = f"the folder has PyTorch files of ranks that this file doesn't have; {outcome}"
        notes.add("rank_not_merged", "info", message, count=len(missing_ranks))
    return replace(
        trace,
        metadata={**metadata, **trace.metadata},
        health=(*trace.health, *notes.notes()),
        _memo=Memo(),
    )


def _without_base(metadata: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in metadata.items() if key != _BASE_KEY}


def _set_ranks(trace: Trace, first_rows: Sequence[tuple[int, int]], offsets: Mapping[int, int]) -> Trace:
    """Give all events of PyTorch's files the process that is their rank, at the times to which the merge moved it.

    first_rows  (first row, rank) of each file, in order
    offsets     ns by rank
    """
    threads = {each: code for code, each in enumerate(trace.threads)}
    thread, start = trace.events.thread.copy(), trace.events.start.copy()
    has_time = start != ABSENT
    ends = [first for first, _ in first_rows[1:]] + [len(trace)]
    for (first, rank), end in zip(first_rows, ends, strict=True):
        rows = slice(first, end)
        codes = [threads.setdefault(Thread(rank, each.tid), len(threads)) for each in trace.threads]
        thread[rows] = np.array([*codes, -1], np.int32)[thread[rows]]
        start[rows][has_time[rows]] += offsets.get(rank, 0)
    events = replace(trace.events, thread=thread, start=start)
    return replace(trace, events=events, threads=list(threads), _memo=Memo())


def _join_process(trace: Trace, first: int) -> Trace:
    """Give the events from row `first` on the trainer's process if theirs has a thread of the trainer."""
    rank = trace_rank(trace)
    if rank is None:
        return trace
    thread = trace.events.thread
    trainer_tids = {trace.threads[code].tid for code in np.unique(thread[:first]).tolist() if code >= 0}
    pytorch_codes = [code for code in np.unique(thread[first:]).tolist() if code >= 0]
    pids = {trace.threads[code].pid for code in pytorch_codes if trace.threads[code].tid in trainer_tids}
    threads: dict[Thread, int] = {}
    codes = [
        threads.setdefault(Thread(rank, each.tid) if each.pid in pids else each, len(threads))
        for each in trace.threads
    ]
    events = replace(trace.events, thread=np.array([*codes, -1], np.int32)[thread])
    return replace(trace, events=events, threads=list(threads), _memo=Memo())
