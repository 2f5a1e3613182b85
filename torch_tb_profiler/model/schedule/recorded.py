"""What the profiler recorded of synchronization (`cuda_sync`): which stream a call waits for, which event."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.model.kinds import Kind, of_kind
from torch_tb_profiler.model.trace import ABSENT, Int32, Int64, Trace

_NO_STREAM = 2**32 - 1


class RecordedWaits(msgspec.Struct, frozen=True):
    """For some calls the stream that each waits for, and when the event in it was recorded.

    stream  int64[k]  ABSENT if not recorded
    since   int64[k]  ns: what was launched before counts; the begin of the call itself where no event is recorded
    """

    stream: Int64
    since: Int64


def recorded_waits(trace: Trace, calls: Int64) -> RecordedWaits:
    """What is recorded of these calls (rows)."""
    since = trace.events.start[calls]
    marks = of_kind(trace, Kind.SYNC)
    if len(marks) == 0 or len(calls) == 0:
        return RecordedWaits(np.full(len(calls), ABSENT), since)
    correlation = trace.arg_int("correlation")
    mark = _rows_with(correlation, marks, correlation[calls])
    other, own = trace.arg_int("wait_on_stream"), trace.arg_int("stream")
    stream = np.where(other[mark] != ABSENT, other[mark], own[mark])
    stream = np.where((mark < 0) | (stream == _NO_STREAM) | (stream < 0), ABSENT, stream)
    event = np.where(mark < 0, ABSENT, trace.arg_int("wait_on_cuda_event_record_corr_id")[mark])
    record = _rows_with(correlation, of_kind(trace, Kind.RUNTIME, Kind.DRIVER), event)
    return RecordedWaits(stream, np.where(record < 0, since, np.minimum(trace.events.start[record], since)))


def _rows_with(keys: Int64, rows: Int32, wanted: Int64) -> Int64:
    """int64[k]: the row among `rows` with each key, -1 where there is none."""
    if len(rows) == 0:
        return np.full(len(wanted), -1)
    ordered = rows[np.argsort(keys[rows], kind="stable")]
    at = np.minimum(np.searchsorted(keys[ordered], wanted), len(ordered) - 1)
    return np.where((wanted != ABSENT) & (keys[ordered[at]] == wanted), ordered[at], -1).astype(np.int64)
