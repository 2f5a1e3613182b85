"""Communication events, found by metadata or by name, and the collectives that the names of all libraries mean."""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.base.intervals import merge
from torch_tb_profiler.base.memo import derived, stored
from torch_tb_profiler.base.patterns import AnyCase, fold_case, lazy_regex
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.calls.missing import missing_kernels_reason
from torch_tb_profiler.model.kinds import (
    Kind,
    event_ends,
    event_kinds,
    rows_named,
    rows_of_kind,
    slice_mask,
)
from torch_tb_profiler.model.trace import Bool, Int32, Trace, distinct_codes, name_mask, rows_mask
from torch_tb_profiler.model.vendors import ascend, gaudi

_BACKENDS = frozenset(("nccl", "rccl", "gloo", "mpi", "ucc", "hccl", "xccl", "oneccl", "ccl", "fake", "threaded"))
"""Back ends of c10d: the names of their own calls begin with them."""

DEVICE_BACKENDS = frozenset(("nccl", "rccl", "hccl", "xccl", "oneccl", "ccl"))
"""Back ends whose operations run on the device: their host calls only launch."""

POINT_TO_POINT = frozenset(("send", "recv"))
ALL_TO_ALL = frozenset(("all_to_all", "all_to_allv"))

# Kernels: nccl/rccl/oneCCL/hccl/ucc device code and the custom all-reduce kernels of serving engines.
_KERNEL_NAME = AnyCase(
    """nccl rccl oneccl hccl msccl nvshmem cross_device_reduce multimem_all custom_allreduce custom_all_reduce
    quickreduce quick_reduce allgather_kernel all_gather_kernel reducescatter_kernel reduce_scatter_kernel
    lamport""",
    ("ucc_", r"\bucc_"),
    ("shot", r"(?:one|two)_?shot_all_?reduce|all_?reduce_(?:one|two)_?shot"),
    ("toall", r"all_?toall_?v?_kernel"),
    ("to_all", r"all_?to_all_?v?_kernel"),
)
# Host operations: c10d records them as `nccl:all_reduce`, `gloo:broadcast`, `c10d::allreduce_`, ...
_HOST_BEGINNINGS = ("record_param_comms", "c10d::", "oneccl_")
_MOVE_NO_DATA = frozenset(("init", "wait", "barrier_wait"))

# Start of a name without decoration, in lower case -> collective; the first that matches.
_COLLECTIVES = {
    "allreducebarrier": "barrier",
    "monitoredbarrier": "barrier",
    "barrier": "barrier",
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "reducescatter": "reduce_scatter",
    "alltoallv": "all_to_allv",
    "alltoall": "all_to_all",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "gather": "gather",
    "scatter": "scatter",
    "send": "send",
    "recv": "recv",
    "isend": "send",
    "irecv": "recv",
    "coalesced": "coalesced",
}
_COLLECTIVE_IN_KERNEL = lazy_regex(
    r"all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|send_?recv|broadcast|cross_device_reduce|"
    r"multimem_all|lamport|quick_?reduce|reduce"
)
_CUSTOM_REDUCTIONS = ("crossdevicereduce", "multimemall", "lamport", "quickreduce")
_LIBRARIES = ("rccl", "oneccl", "hccl", "ucc", "nccl", "msccl", "nvshmem")


def collective_from_name(name: str) -> str | None:
    """Return all_reduce, all_gather, ... for the name of an operator, annotation or metadata; None for others."""
    plain = _remove_decoration(name.lower())
    return next((collective for begin, collective in _COLLECTIVES.items() if plain.startswith(begin)), None)


def _remove_decoration(name: str) -> str:
    """Return a name without its library's prefix, underscores, spaces, and "oop" (out of place)."""
    prefix, colon, rest = name.partition(":")
    if colon and prefix.isalnum():
        name = rest.removeprefix(":")
    return "".join(name.replace("oop", "").replace("_", "").split())


def backend_of_call(name: str) -> str | None:
    """Return the back end that a name of its own calls begins with (`nccl:all_reduce`), None for others."""
    prefix, colon, _ = name.partition(":")
    backend = prefix.lower()
    return backend if colon and backend in _BACKENDS else None


def _is_host_operation(name: str) -> bool:
    return backend_of_call(name) is not None or name.lower().startswith(_HOST_BEGINNINGS)


def collective_from_kernel(name: str) -> str:
    """Return the collective that a kernel's name contains, or is (Gaudi's `Send`), else "unknown"."""
    match = _COLLECTIVE_IN_KERNEL.search(fold_case(name))
    plain = match[0].replace("_", "") if match else name
    if plain in _CUSTOM_REDUCTIONS:
        return "all_reduce"
    return "send_recv" if plain == "sendrecv" else collective_from_name(plain) or "unknown"


def backend_from_kernel(name: str) -> str:
    """Return the library of a kernel; "custom" for the kernels of serving engines."""
    lower = name.lower()
    return next((library for library in _LIBRARIES if library in lower), "custom")


@stored
def is_communication_kernel(trace: Trace) -> Bool:
    """Return bool[n]: device kernels with collective metadata, with such a name, or on a network engine."""
    communicates = rows_mask(trace, rows_named(trace, _KERNEL_NAME.search, Kind.KERNEL))
    communicates[_find_slices_with_metadata(trace, Kind.KERNEL)] = True
    network = (gaudi.thread_engines(trace) == gaudi.NIC) | (ascend.ascend_roles(trace) == ascend.GROUP)
    if network.any():
        kernels = rows_of_kind(trace, Kind.KERNEL)
        communicates[kernels[network[trace.events.thread[kernels]]]] = True
    return communicates


def computing_kernels(trace: Trace) -> Int32:
    """Return the rows of the kernels that don't communicate, in file order."""
    return _split_kernels(trace)[0]


def communication_kernels(trace: Trace) -> Int32:
    """Return the rows of the kernels that communicate, in file order."""
    return _split_kernels(trace)[1]


@derived
def _split_kernels(trace: Trace) -> tuple[Int32, Int32]:
    kernels = rows_of_kind(trace, Kind.KERNEL)
    communicates = is_communication_kernel(trace).take(kernels)
    return kernels[~communicates], kernels[communicates]


@derived
def is_communication_call(trace: Trace) -> Bool:
    """Return bool[n]: host operators and annotations that are communication operations."""
    kinds = Kind.CPU_OP, Kind.ANNOTATION
    communicates = rows_mask(trace, rows_named(trace, _is_host_operation, *kinds))
    communicates[_find_slices_with_metadata(trace, *kinds)] = True
    return communicates


@derived
def host_communication_calls(trace: Trace) -> Int32:
    """Return the rows of communication calls that launched no device work (gloo, mpi): their host time counts.

    A call that contains one that launched kernels is the host side of those and does not. Where communication
    kernels are recorded, they alone are the communication of a back end that works on the device: its calls
    without a kernel (waits, initialization, kernels that were not recorded) are host time like any other. So they
    are where kernels were launched, and none was recorded.
    """
    calls = np.flatnonzero(is_communication_call(trace)).astype(np.int32)
    if is_communication_kernel(trace).any() or missing_kernels_reason(trace) is not None:
        calls = calls[_in_host_backend(trace, calls)]
    if len(calls) == 0:
        return calls
    links = device_links(trace)
    without_launch = (links.launch < 0) & (links.operator >= 0)  # the operator stands in for the launch
    launches = np.concatenate([links.launch[links.launch >= 0], links.operator[without_launch]])
    events = trace.events
    end = event_ends(trace)
    has_launched = np.zeros(len(calls), np.bool_)
    for thread in distinct_codes(events.thread[calls]):
        on_thread = events.thread[calls] == thread
        times = np.sort(events.start[launches[events.thread[launches] == thread]])
        first = np.searchsorted(times, events.start[calls[on_thread]], "left")
        last = np.searchsorted(times, end[calls[on_thread]], "left")
        has_launched[on_thread] = last > first
    return calls[~has_launched]


def _in_host_backend(trace: Trace, calls: Int32) -> Bool:
    """Return bool[k]: calls that are, contain, or lie in a host back end's own call (`gloo:all_reduce`)."""
    start, end, thread = trace.events.start, event_ends(trace), trace.events.thread
    on_host = _BACKENDS - DEVICE_BACKENDS
    is_backend = name_mask(trace.strings, lambda name: backend_of_call(name) in on_host, trace.events.name[calls])
    backend_calls = calls[is_backend[trace.events.name[calls]]]
    overlaps = np.zeros(len(calls), np.bool_)
    for code in distinct_codes(thread[backend_calls]):
        on_thread, backend_here = thread[calls] == code, backend_calls[thread[backend_calls] == code]
        busy = merge(start[backend_here], end[backend_here])
        next_start = np.append(busy.starts, np.iinfo(np.int64).max)[
            np.searchsorted(busy.ends, start[calls[on_thread]], "right")
        ]
        overlaps[on_thread] = next_start < end[calls[on_thread]]
    return overlaps


def _find_slices_with_metadata(trace: Trace, *wanted: Kind) -> Int32:
    """Return the rows of the slices of these kinds that say which collective they are."""
    column = trace.args.get("Collective name")
    if column is None or column.kind != "text" or not column.dictionary:
        return np.empty(0, np.int32)
    moves_data = np.array(
        [bool(text) and text.lower().rpartition(":")[2] not in _MOVE_NO_DATA for text in column.dictionary],
        np.bool_,
    )
    rows = column.rows[moves_data[column.values]]
    is_slice_of_kind: Bool = np.isin(event_kinds(trace)[rows], wanted) & slice_mask(trace)[rows]
    found: Int32 = rows[is_slice_of_kind]
    return found
