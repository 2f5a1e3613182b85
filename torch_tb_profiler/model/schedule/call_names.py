"""What runtime and driver calls do, by the names of every vendor: CUDA, HIP, Level Zero, MTIA."""

from __future__ import annotations

import re

from torch_tb_profiler.model.kinds import Kind, kinds
from torch_tb_profiler.model.trace import ABSENT, Bool, Trace, name_mask

_WHOLE_DEVICE = re.compile(
    r"DeviceSynchronize|CtxSynchronize|^synchronize$|^(?:cuda|hip|cu|ze)\w*Free(?:Host)?(?:_v\d)?$", re.IGNORECASE
)
_STREAM_OR_EVENT = re.compile(
    r"StreamSynchronize|synchronizeStream|EventSynchronize|HostSynchronize|Events?Wait$|QueueFinish", re.IGNORECASE
)
_STREAM_WAIT = re.compile(r"StreamWaitEvent|waitOnEvent", re.IGNORECASE)


def waits_for_device(trace: Trace) -> Bool:
    """bool[n]: calls that return once everything handed to the device before them is done."""
    return _calls(trace, _WHOLE_DEVICE)


def waits_for_stream(trace: Trace) -> Bool:
    """bool[n]: calls that return once a stream, or an event in it, is done."""
    return _calls(trace, _STREAM_OR_EVENT)


def makes_stream_wait(trace: Trace) -> Bool:
    """bool[n]: calls that make a stream wait for another."""
    return _calls(trace, _STREAM_WAIT)


def _calls(trace: Trace, pattern: re.Pattern[str]) -> Bool:
    kind, names = kinds(trace), trace.events.name
    calls: Bool = ((kind == Kind.RUNTIME) | (kind == Kind.DRIVER)) & (trace.events.start != ABSENT)
    calls &= name_mask(trace.strings, pattern.search, names[calls])[names]
    return calls
