"""Which events are communication: by recorded metadata first, then by the names of every library."""

from __future__ import annotations

import re

import numpy as np

from torch_tb_profiler.base.intervals import merge
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.communication.names import BACKEND, DEVICE_BACKENDS
from torch_tb_profiler.model.kinds import Kind, event_ends, event_kinds, slice_mask
from torch_tb_profiler.model.trace import Bool, Int32, Trace, distinct_codes, name_mask
from torch_tb_profiler.model.vendors import ascend, gaudi

# Kernels: nccl/rccl/oneCCL/hccl/ucc device code and the custom all-reduce kernels of serving engines.
_KERNEL_NAME = re.compile(
    r"nccl|rccl|oneccl|hccl|\bucc_|msccl|mscclpp|nvshmem|cross_device_reduce|multimem_all|"
    r"(?:one|two)_?shot_all_?reduce|all_?reduce_(?:one|two)_?shot|custom_all_?reduce|quick_?reduce|"
    r"all_?to_?all_?v?_kernel|all_?gather_kernel|reduce_?scatter_kernel|lamport",
    re.IGNORECASE,
)
# Host operations: c10d records them as `nccl:all_reduce`, `gloo:broadcast`, `c10d::allreduce_`, ...
_HOST_NAME = re.compile(
    r"^(?:nccl|rccl|gloo|mpi|ucc|hccl|xccl|oneccl|ccl|fake|threaded):|^record_param_comms|^c10d::|^oneccl_",
    re.IGNORECASE,
)
_HOST_BACKEND = re.compile(rf"(?!(?:{'|'.join(sorted(DEVICE_BACKENDS))}):){BACKEND.pattern}", re.IGNORECASE)
_NOT_DATA = re.compile(r"(?:^|:)(?:init|wait|barrier_wait)$", re.IGNORECASE)


@derived
def communication_kernels(trace: Trace) -> Bool:
    """bool[n]: device kernels with collective metadata, whose name says so, or on a network engine."""
    kernel = (event_kinds(trace) == Kind.KERNEL) & slice_mask(trace)
    by_name = _matches(trace, _KERNEL_NAME, kernel)
    network = (gaudi.thread_engines(trace) == gaudi.NIC) | (ascend.ascend_roles(trace) == ascend.GROUP)
    on_network = network[trace.events.thread]
    communicates: Bool = kernel & (by_name | _has_metadata(trace) | on_network)
    return communicates


@derived
def communication_calls(trace: Trace) -> Bool:
    """bool[n]: host operators and annotations that are communication operations."""
    kind = event_kinds(trace)
    host = ((kind == Kind.CPU_OP) | (kind == Kind.ANNOTATION)) & slice_mask(trace)
    by_name = _matches(trace, _HOST_NAME, host)
    communicates: Bool = host & (by_name | _has_metadata(trace))
    return communicates


@derived
def host_communication(trace: Trace) -> Int32:
    """int32[k]: communication calls that launched no device work (gloo, mpi): their host time counts.

    A call that contains one that launched kernels is the host side of those and does not. Where communication
    kernels are recorded, they alone are the communication of a back end that works on the device: its calls
    without a kernel (waits, initialization, kernels that were not recorded) are host time like any other.
    """
    calls = np.flatnonzero(communication_calls(trace)).astype(np.int32)
    if communication_kernels(trace).any():
        calls = calls[_in_host_backend(trace, calls)]
    if len(calls) == 0:
        return calls
    links = device_links(trace)
    by_id = (links.launch < 0) & (links.operator >= 0)  # without a recorded launch the operator stands for it
    launches = np.concatenate([links.launch[links.launch >= 0], links.operator[by_id]])
    events = trace.events
    end = event_ends(trace)
    launched = np.zeros(len(calls), np.bool_)
    for thread in distinct_codes(events.thread[calls]):
        mine = events.thread[calls] == thread
        times = np.sort(events.start[launches[events.thread[launches] == thread]])
        first = np.searchsorted(times, events.start[calls[mine]], "left")
        last = np.searchsorted(times, end[calls[mine]], "left")
        launched[mine] = last > first
    return calls[~launched]


def _in_host_backend(trace: Trace, calls: Int32) -> Bool:
    """bool[k]: calls that are, contain, or lie in one that a back end of the host names (`gloo:all_reduce`)."""
    start, end, thread = trace.events.start, event_ends(trace), trace.events.thread
    named = name_mask(trace.strings, _HOST_BACKEND.search, trace.events.name[calls])
    own = calls[named[trace.events.name[calls]]]
    inside = np.zeros(len(calls), np.bool_)
    for each in distinct_codes(thread[own]):
        mine, theirs = thread[calls] == each, own[thread[own] == each]
        busy = merge(start[theirs], end[theirs])
        after = np.append(busy.starts, np.iinfo(np.int64).max)[
            np.searchsorted(busy.ends, start[calls[mine]], "right")
        ]
        inside[mine] = after < end[calls[mine]]
    return inside


def _has_metadata(trace: Trace) -> Bool:
    column = trace.args.get("Collective name")
    described = np.zeros(len(trace), np.bool_)
    if column is not None and column.kind == "text":
        data = np.array([bool(text) and not _NOT_DATA.search(text) for text in column.dictionary])
        described[column.rows] = data[column.values] if len(data) else False
    return described


def _matches(trace: Trace, pattern: re.Pattern[str], which: Bool) -> Bool:
    """bool[n]: which of these events have a name that matches."""
    names = trace.events.name
    matches: Bool = which & name_mask(trace.strings, pattern.search, names[which])[names]
    return matches
