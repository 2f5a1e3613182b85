"""Causes of idle time, and which of them a host slice stands for."""

from __future__ import annotations

import re
from enum import IntEnum

import numpy as np

from torch_tb_profiler.base.markers import is_data_loading
from torch_tb_profiler.model.communication.events import communication_calls
from torch_tb_profiler.model.kinds import Kind, event_kinds
from torch_tb_profiler.model.trace import Bool, Int8, Trace, derived, name_mask


class Cause(IntEnum):
    """Why a device has nothing to do. Those up to UNRECORDED: the host has not submitted the next work yet."""

    DATA_LOADING = 0
    COMPILE = 1
    SYNC = 2
    ALLOCATOR = 3
    COPY_STAGING = 4
    LAUNCH_CALL = 5
    RUNTIME = 6
    HOST_COMMUNICATION = 7
    WAIT = 8
    PROFILER = 9
    OPERATOR = 10
    PYTHON = 11
    ANNOTATION = 12
    UNRECORDED = 13
    LAUNCH_LATENCY = 14
    KERNEL_GAP = 15
    GRAPH_GAP = 16
    WAITS_FOR_STREAM = 17
    DEVICE_WAIT = 18
    UNLINKED = 19
    BEFORE_RECORDING = 20
    TAIL = 21


CAUSES = tuple(cause.name.lower() for cause in Cause)
"""Their names in payloads, by number."""

SOFT = (Cause.UNRECORDED, Cause.PYTHON, Cause.ANNOTATION)
"""What a thread that waits for another one may be in: there, the other thread's operator or call counts."""

LAUNCH_BOUND = (Cause.LAUNCH_CALL, Cause.RUNTIME, Cause.OPERATOR, Cause.PYTHON, Cause.ANNOTATION)
"""Where most idle time is of these, with nothing emptying the queue, the device outruns the host."""

# Runtime and driver calls by what they do, in every vendor's spelling; the first that matches decides.
_CALLS = (
    (Cause.SYNC, r"Synchronize|synchronizeStream|EventsWait|eventWait$|QueueFinish"),
    (
        Cause.COMPILE,
        r"ModuleLoad|ModuleUnload|LibraryLoad|GetFuncBySymbol|ModuleGetFunction|FuncGetAttributes|Lazy Function",
    ),
    (
        Cause.ALLOCATOR,
        r"^(?:cuda|hip|cu|ze|ur|urUSM)\w*(?:Malloc|Free|HostAlloc|MemAlloc|HostRegister|HostUnregister|MemCreate|"
        r"MemMap|MemUnmap|MemRelease)",
    ),
    (Cause.COPY_STAGING, r"Memcpy|memcpy"),
    (Cause.LAUNCH_CALL, r"Launch|Memset|enqueueCommand|submit"),
)
_COMPILE = (
    r"TorchDynamo Cache|_compile\.compile|compile_fx|torch/_dynamo/convert_frame|inductor/compile|CachingAutotuner"
)
_WAIT = (
    r"_thread\.(?:lock|RLock)|built-in (?:function|method) (?:sleep|select|poll|collect|acquire|wait)\b|"
    r"threading\.py\(\d+\): (?:wait|join|acquire)|queue\.py\(\d+\): get|multiprocessing/(?:connection|queues)\.py|"
    r"selectors\.py\(\d+\): select"
)


@derived
def slice_causes(trace: Trace) -> Int8:
    """int8[n]: what the time in each host slice stands for, less slices inside it; -1 for other events."""
    kind, name = event_kinds(trace), trace.events.name
    cause = np.full(len(trace), -1, np.int8)
    cause[kind == Kind.ANNOTATION] = Cause.ANNOTATION
    cause[kind == Kind.CPU_OP] = Cause.OPERATOR
    cause[kind == Kind.PYTHON] = Cause.PYTHON
    cause[_named(trace, _WAIT, kind == Kind.PYTHON)] = Cause.WAIT
    call = (kind == Kind.RUNTIME) | (kind == Kind.DRIVER)
    cause[call] = Cause.RUNTIME
    for meaning, pattern in reversed(_CALLS):
        cause[_named(trace, pattern, call)] = meaning
    marks = (kind == Kind.ANNOTATION) | (kind == Kind.CPU_OP)
    cause[_named(trace, _COMPILE, marks | (kind == Kind.PYTHON))] = Cause.COMPILE
    cause[communication_calls(trace)] = Cause.HOST_COMMUNICATION
    cause[marks & name_mask(trace.strings, is_data_loading, name[marks])[name]] = Cause.DATA_LOADING
    return cause


def _named(trace: Trace, pattern: str, which: Bool) -> Bool:
    """bool[n]: which of these events have a name that matches."""
    names = trace.events.name
    named: Bool = which & name_mask(trace.strings, re.compile(pattern).search, names[which])[names]
    return named
