"""A trainer's trace with what PyTorch's own file of the same rank and window says.

Composer copies PyTorch's events into its own file with the rank as their process, and drops what stands around
them: the devices, the job. Where it has copied none (its file was closed before PyTorch's was written), they come
from there, in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, BinaryIO

import numpy as np

from torch_tb_profiler.base.memo import Memo
from torch_tb_profiler.ingest.kineto.assemble import assemble
from torch_tb_profiler.ingest.kineto.columns import Columns
from torch_tb_profiler.ingest.kineto.read import collect_events, read_metadata
from torch_tb_profiler.ingest.progress import Report
from torch_tb_profiler.model.health import HealthLog
from torch_tb_profiler.model.kinds import DEVICE, HOST, of_kind
from torch_tb_profiler.model.ranks import rank
from torch_tb_profiler.model.trace import Thread, Trace

Open = Callable[[], BinaryIO]

_BASE = "baseTimeNanoseconds"
"""Times are brought to those of the trainer, which count since the epoch."""


def add_pytorch(trace: Trace, open_own: Open, open_pytorch: Open, *, report: Report, limit: int) -> Trace:
    """Raises TraceError and TooLargeError as reading either file does."""
    if len(of_kind(trace, *HOST, *DEVICE)):
        with open_pytorch() as stream:
            metadata = read_metadata(stream, report=report, limit=limit)
        return replace(trace, metadata=_without_base(metadata) | dict(trace.metadata), _memo=Memo())
    columns, health = Columns(), HealthLog()
    with open_own() as stream:
        own = collect_events(stream, columns, health, report=report, limit=limit)
    first = columns.length
    with open_pytorch() as stream:
        metadata = collect_events(stream, columns, health, report=report, limit=limit)
    joined = assemble(columns, _without_base(metadata) | own, health)
    return replace(_in_one_process(joined, first, rank(trace)), producer=trace.producer)


def _without_base(metadata: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in metadata.items() if key != _BASE}


def _in_one_process(trace: Trace, first: int, number: int | None) -> Trace:
    """The process that has a thread of the trainer is the trainer's, in the events from row `first` on."""
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
