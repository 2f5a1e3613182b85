"""Requests and the queue of an engine, from files beside the trace: slices and counters of their own.

request        |- request 7 -----------------------------|
request_phase  |- queue -|- prefill -|- decode ----------|
counter        requests waiting, requests running, KV cache usage: as the log counts them from time to time

They are clipped to the recording, and events of the trace like all others, so they are cached with it and the
timeline draws them.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.added_slices import AddedSample, AddedSlice, add_counters, add_slices
from torch_tb_profiler.model.kinds import event_ends
from torch_tb_profiler.model.trace import ArgColumn, Float64, Int32, Int64, Thread, Trace

REQUEST_CATEGORY = "request"
PHASE_CATEGORY = "request_phase"
REQUESTS_PROCESS = "requests"

_INTEGERS = (
    *("arrival_ns", "end_ns", "queue_ns", "first_token_ns", "prompt_tokens", "output_tokens"),
    "arrival_precision_ns",
)
"""Fields of a request, each an argument `request <field>` of its slice."""


RUNNING, WAITING, KV_CACHE = "requests running", "requests waiting", "KV cache usage"
_COUNTERS_BY_FIELD = {"running": RUNNING, "waiting": WAITING, "kv_share": KV_CACHE}
_COUNTER_PREFIX = "log: "


class RequestRecord(msgspec.Struct, frozen=True):
    """A request as an engine recorded it; None where it didn't.

    arrival_ns, end_ns    ns since the epoch
    queue_ns              from its arrival until it is scheduled first
    first_token_ns        from its arrival until its first token
    prefill_ns            from the start of its prefill to its first token
    arrival_precision_ns  it arrived less than this after `arrival_ns`; 0 where the time is exact
    """

    name: str
    arrival_ns: int
    end_ns: int | None
    queue_ns: int | None = None
    first_token_ns: int | None = None
    prefill_ns: int | None = None
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    arrival_precision_ns: int = 0


class ServingRequests(msgspec.Struct, frozen=True):
    """Columns of r requests that overlap the recording, in order of arrival; ABSENT where unknown.

    event                int32[r] row of its slice
    arrival_ns, end_ns   int64[r] ns since the start of the trace; may lie outside the recording
    queue_ns, first_token_ns  int64[r] ns since its arrival
    prompt_tokens, output_tokens  int64[r]
    arrival_precision_ns          int64[r] it arrived less than this after `arrival_ns`
    """

    event: Int32
    arrival_ns: Int64
    end_ns: Int64
    queue_ns: Int64
    first_token_ns: Int64
    prompt_tokens: Int64
    output_tokens: Int64
    arrival_precision_ns: Int64


@derived
def serving_requests(trace: Trace) -> ServingRequests | None:
    """Return the requests that were recorded beside the trace, or None without any."""
    if REQUEST_CATEGORY not in trace.strings or f"{REQUEST_CATEGORY} arrival_ns" not in trace.args:
        return None
    rows = trace.args[f"{REQUEST_CATEGORY} arrival_ns"].rows
    columns = {name: trace.arg_int(f"{REQUEST_CATEGORY} {name}", rows) for name in _INTEGERS}
    order = np.argsort(columns["arrival_ns"], kind="stable")
    return ServingRequests(event=rows[order], **{name: values[order] for name, values in columns.items()})


def with_requests(trace: Trace, records: Sequence[RequestRecord]) -> Trace:
    """Return the trace with the requests that overlap it; as it is if none does.

    The trace needs a wall clock (`Trace.wall_start_ns`).
    """
    origin, reach = trace.wall_start_ns, int(event_ends(trace).max(initial=0))
    if origin is None:
        return trace
    moved = [
        msgspec.structs.replace(
            each,
            arrival_ns=each.arrival_ns - origin,
            end_ns=None if each.end_ns is None else each.end_ns - origin,
        )
        for each in sorted(records, key=lambda each: (each.arrival_ns, _last_seen(each), each.name))
    ]
    inside = [each for each in moved if each.arrival_ns < reach and _last_seen(each) > 0]
    return _append(trace, inside, reach) if inside else trace


def _last_seen(request: RequestRecord) -> int:
    """Return the last time at which a request is known to be in the engine, in ns."""
    return request.end_ns if request.end_ns is not None else request.arrival_ns + request.arrival_precision_ns


def _append(trace: Trace, records: Sequence[RequestRecord], reach: int) -> Trace:
    """Append a slice per request and its phases, in as many lanes as requests overlap."""
    slices: list[AddedSlice] = []
    first_row, rows = len(trace), []
    free: list[int] = []  # end of the last request of each lane
    for each in records:
        lane = next((number for number, end in enumerate(free) if end <= each.arrival_ns), len(free))
        free[lane : lane + 1] = [_last_seen(each)]
        rows.append(first_row + len(slices))
        parts = [(REQUEST_CATEGORY, each.name, each.arrival_ns, _last_seen(each)), *_list_phases(each)]
        for category, name, start, end in parts:
            low, high = max(start, 0), min(end, reach)
            if low < high or category == REQUEST_CATEGORY:
                slices.append(AddedSlice(category, name, Thread(REQUESTS_PROCESS, f"lane {lane + 1}"), low, high))
    args = {}
    for name in _INTEGERS:
        values = [getattr(each, name) for each in records]
        known = [value is not None for value in values]
        column = np.array([value for value in values if value is not None], np.int64)
        args[f"{REQUEST_CATEGORY} {name}"] = ArgColumn("int", np.array(rows, np.int32)[known], column)
    return add_slices(trace, slices, args)


def _list_phases(request: RequestRecord) -> list[tuple[str, str, int, int]]:
    """Return (category, name, start, end) of what a request goes through, as far as it is known."""
    arrival, end = request.arrival_ns, _last_seen(request)
    scheduled = None if request.queue_ns is None else min(arrival + request.queue_ns, end)
    first = None if request.first_token_ns is None else min(arrival + request.first_token_ns, end)
    phases = []
    if scheduled is not None:
        phases.append((PHASE_CATEGORY, "queue", arrival, scheduled))
    if first is not None and scheduled is not None and scheduled <= first:
        phases.append((PHASE_CATEGORY, "prefill", scheduled, first))
    if first is not None and request.end_ns is not None:
        phases.append((PHASE_CATEGORY, "decode", first, end))
    return phases


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
        for field, name in _COUNTERS_BY_FIELD.items()
        if 0 <= each.time_ns - origin <= reach and (value := getattr(each, field)) is not None
    ]
    return add_counters(trace, added) if added else trace


def _counter(name: str, engine: str) -> str:
    return f"{_COUNTER_PREFIX}{name}{f', {engine}' if engine else ''}"


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
