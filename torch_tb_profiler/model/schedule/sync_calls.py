"""Synchronization calls of the host: what each waits for, by name and by `cuda_sync` records."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.base.arrays import search_sorted
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.base.patterns import AnyCase
from torch_tb_profiler.model.kinds import Kind, events_of_kind, rows_in_mask, rows_of_kind
from torch_tb_profiler.model.trace import ABSENT, Bool, Int32, Int64, Trace, distinct_codes, name_mask, rows_mask

# Names of runtime and driver calls of CUDA, HIP, Level Zero, and MTIA.
_WAITS_FOR_DEVICE = AnyCase(
    "devicesynchronize ctxsynchronize",
    ("synchronize", r"^synchronize$"),
    ("free", r"^(?:cuda|hip|cu|ze)\w*free(?:host)?(?:_v\d)?$"),
)
_WAITS_FOR_STREAM = AnyCase(
    "streamsynchronize synchronizestream eventsynchronize hostsynchronize queuefinish",
    ("eventwait", r"eventwait$"),
    ("eventswait", r"eventswait$"),
)
_WAITS_FOR_EVENT = AnyCase(
    "eventsynchronize eventhostsynchronize", ("eventwait", r"eventwait$"), ("eventswait", r"eventswait$")
)
_MAKES_STREAM_WAIT = AnyCase("streamwaitevent waitonevent")

_NO_STREAM = 2**32 - 1
"""Stream number that CUPTI writes where there is none."""


def waits_for_device(trace: Trace) -> Bool:
    """Return bool[n]: calls that return once all work submitted to the device before them is done."""
    return _is_call_named(trace, _WAITS_FOR_DEVICE)


def waits_for_stream(trace: Trace) -> Bool:
    """Return bool[n]: calls that return once a stream, or an event in it, is done."""
    return _is_call_named(trace, _WAITS_FOR_STREAM)


def waits_for_event(trace: Trace) -> Bool:
    """Return bool[n]: those of `waits_for_stream` that wait for an event; work may be launched after it."""
    return _is_call_named(trace, _WAITS_FOR_EVENT)


def makes_stream_wait(trace: Trace) -> Bool:
    """Return bool[n]: calls that make a stream wait for another one."""
    return _is_call_named(trace, _MAKES_STREAM_WAIT)


def _is_call_named(trace: Trace, rule: AnyCase) -> Bool:
    return rows_mask(trace, _calls_named(trace, rule))


@derived
def _calls_named(trace: Trace, rule: AnyCase) -> Int32:
    """Return the rows of the calls of whose name this rule is true."""
    has_name = name_mask(trace.strings, rule.search, _names_of_calls(trace))
    return rows_in_mask(trace, _find_placed_calls(trace), has_name)


@derived
def _names_of_calls(trace: Trace) -> Int64:
    """Return the codes of the names of `_find_placed_calls`, each once."""
    return np.array(distinct_codes(trace.events.name.take(_find_placed_calls(trace))), np.int64)


@derived
def _find_placed_calls(trace: Trace) -> Int32:
    """Return the rows of runtime and driver calls with a time, int32[k], whatever their phase."""
    calls = events_of_kind(trace, Kind.RUNTIME, Kind.DRIVER)
    placed: Int32 = calls[trace.events.start.take(calls) != ABSENT]
    return placed


class RecordedWaits(msgspec.Struct, frozen=True):
    """The stream that each of k calls waits for, and when the event in it was recorded.

    stream  int64[k]  ABSENT if not recorded
    since   int64[k]  ns: only work launched before this counts; the start of the call itself where no event is
                      recorded
    """

    stream: Int64
    since: Int64


def recorded_waits(trace: Trace, calls: Int64) -> RecordedWaits:
    """Return what the profiler recorded about the waits of `calls` (rows of the trace)."""
    since = trace.events.start[calls]
    records = rows_of_kind(trace, Kind.SYNC)
    if len(records) == 0 or len(calls) == 0:
        return RecordedWaits(np.full(len(calls), ABSENT), since)
    correlation = trace.arg_int("correlation")
    record = _find_rows_with(correlation, records, correlation[calls])
    other, own = trace.arg_int("wait_on_stream"), trace.arg_int("stream")
    stream = np.where(other[record] != ABSENT, other[record], own[record])
    stream = np.where((record < 0) | (stream == _NO_STREAM) | (stream < 0), ABSENT, stream)
    event_id = np.where(record < 0, ABSENT, trace.arg_int("wait_on_cuda_event_record_corr_id")[record])
    event = _find_rows_with(correlation, rows_of_kind(trace, Kind.RUNTIME, Kind.DRIVER), event_id)
    return RecordedWaits(stream, np.where(event < 0, since, np.minimum(trace.events.start[event], since)))


def _find_rows_with(keys: Int64, rows: Int32, wanted: Int64) -> Int64:
    """Return int64[k]: the row among `rows` that has each wanted key, -1 where there is none."""
    if len(rows) == 0:
        return np.full(len(wanted), -1)
    ordered = rows[np.argsort(keys[rows], kind="stable")]
    at = np.minimum(search_sorted(keys[ordered], wanted, "left"), len(ordered) - 1)
    return np.where((wanted != ABSENT) & (keys[ordered[at]] == wanted), ordered[at], -1).astype(np.int64)
