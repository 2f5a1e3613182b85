"""The queue of an engine as its log counts it from time to time: counters of the trace."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.added_slices import AddedSample, add_counters
from torch_tb_profiler.model.kinds import event_ends
from torch_tb_profiler.model.serving.requests import REQUESTS_PROCESS
from torch_tb_profiler.model.trace import Float64, Int64, Thread, Trace

RUNNING, WAITING, KV_CACHE = "requests running", "requests waiting", "KV cache usage"
_COUNTERS = {"running": RUNNING, "waiting": WAITING, "kv_share": KV_CACHE}
_PREFIX = "log: "


class QueueSample(msgspec.Struct, frozen=True):
    """What a line of the log counts; None where it doesn't.

    time_ns   ns since the epoch
    engine    which of several engines, "" for the only one
    running   requests that are in the batch
    waiting   requests that are in the queue
    kv_share  share of the KV cache in use, 0 to 1
    """

    time_ns: int
    engine: str = ""
    running: int | None = None
    waiting: int | None = None
    kv_share: float | None = None


class QueueCounts(msgspec.Struct, frozen=True):
    """What the log counts while the trace is recorded.

    engines          how many engines wrote it
    times            int64[k] ns since the start of the trace
    waiting          float64[k] requests in the queue of the engine that wrote the line
    """

    engines: int
    times: Int64
    waiting: Float64


def with_queue(trace: Trace, samples: Sequence[QueueSample]) -> Trace:
    """Return the trace with the samples that lie within it as counters; as it is if none does.

    The trace needs a wall clock (`Trace.wall_start_ns`).
    """
    origin, reach = trace.wall_start_ns, int(event_ends(trace).max(initial=0))
    if origin is None:
        return trace
    thread = Thread(REQUESTS_PROCESS, "log")
    added = [
        AddedSample(_counter(name, each.engine), thread, each.time_ns - origin, float(value))
        for each in sorted(samples, key=lambda each: each.time_ns)
        for field, name in _COUNTERS.items()
        if 0 <= each.time_ns - origin <= reach and (value := getattr(each, field)) is not None
    ]
    return add_counters(trace, added) if added else trace


def _counter(name: str, engine: str) -> str:
    return f"{_PREFIX}{name}{f', {engine}' if engine else ''}"


@derived
def queue_counts(trace: Trace) -> QueueCounts | None:
    """Return what the log beside the trace counts, or None without a log or without a line of it in the trace."""
    wanted = _counter(WAITING, "")
    names = [name for name in trace.args if name.startswith(wanted)]
    if not names:
        return None
    rows = np.concatenate([trace.args[name].rows for name in names])
    values = np.concatenate([trace.arg_float(name, trace.args[name].rows) for name in names])
    order = np.argsort(trace.events.start[rows], kind="stable")
    return QueueCounts(len(names), trace.events.start[rows[order]], values[order])
