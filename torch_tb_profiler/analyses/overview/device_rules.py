"""Rules about the devices: what they exchange, and how they compute."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torch_tb_profiler.analyses.overview.communication_rules import (
    latency_bound_collectives,
    max_transfer_times,
    stage_messages,
)
from torch_tb_profiler.analyses.overview.finding import Finding, job_kind
from torch_tb_profiler.analyses.shared.breakdown import role_intervals
from torch_tb_profiler.analyses.shared.typical_steps import typical_windows
from torch_tb_profiler.base.arrays import distinct, median
from torch_tb_profiler.base.intervals import intersect, merge, subtract, total, union
from torch_tb_profiler.base.markers import DATA_PARALLEL
from torch_tb_profiler.model.communication.collectives import Collectives, collectives
from torch_tb_profiler.model.communication.events import (
    POINT_TO_POINT,
    collective_from_kernel,
    computing_kernels,
)
from torch_tb_profiler.model.devices import DeviceInfo, device_ids, devices
from torch_tb_profiler.model.dtypes import bytes_per_element
from torch_tb_profiler.model.kinds import (
    DEVICE_KINDS,
    Kind,
    event_intervals,
    names_of_kind,
    rows_of_kind,
)
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Int32, Int64, Trace, name_mask

LATE_RATIO = 3
"""A collective this many times slower than the median of its kind is assumed to wait for another rank."""

MIN_SAMPLES = 4
"""Fewest collectives of one kind that make their median meaningful."""

MIN_NCCL_CAPABILITY = (3, 5)
"""Compute capability from which NCCL supports a GPU."""


def find_communication(trace: Trace) -> Iterator[Finding]:
    """Find exposed gradient communication or waiting for a straggler, whichever is larger."""
    operations = collectives(trace)
    # A stage of a pipeline waits for its messages by design, which no other message of the file explains.
    is_message = np.array([name in POINT_TO_POINT for name in operations.names] + [False], np.bool_)
    timed = np.flatnonzero((operations.end > operations.start) & ~is_message[operations.collective])
    if len(timed) == 0:
        return
    roles = role_intervals(trace)
    computing = union(roles["kernel"], roles["memcpy"], roles["memset"])
    start, end, kind = operations.start[timed], operations.end[timed], operations.collective[timed]
    longest = int(timed[np.argmax(end - start)])
    on_device = len(rows_of_kind(trace, *DEVICE_KINDS)) > 0
    size = (
        np.maximum(operations.bytes_in, operations.bytes_out)[timed] if on_device else np.full(len(timed), ABSENT)
    )
    expected = _estimate_max_times(end - start, kind, size)
    is_known = expected != ABSENT
    waiting = merge(start[is_known] + expected[is_known], end[is_known])
    exposed = intersect(subtract(merge(start[is_known], end[is_known]), computing), typical_windows(trace))
    late = intersect(exposed, waiting)
    if 2 * total(late) > total(exposed):
        name = (
            "" if operations.collective[longest] == NO_CODE else operations.names[operations.collective[longest]]
        )
        unnamed = _is_send_or_receive(trace, operations)[timed]
        in_messages = intersect(late, merge(start[unnamed], end[unnamed]))
        case = "messages" if 2 * total(in_messages) > total(late) else "pipeline" if stage_messages(trace) else ""
        yield Finding(
            "late_rank",
            waiting,
            computing,
            on_device=on_device,
            case=case,
            subject=name,
            event=int(operations.event[longest]),
        )
        return
    wrapper = job_kind(trace).wrapper
    if not job_kind(trace).training or wrapper is None:
        return
    gradients = {"ddp": ("all_reduce",), "fsdp": ("all_gather", "reduce_scatter")}[wrapper]
    mine = np.array([code >= 0 and operations.names[code] in gradients for code in kind.tolist()], np.bool_)
    mine &= ~np.isin(timed, latency_bound_collectives(trace))
    if mine.any():
        halved = wrapper == "ddp" and _are_halved(operations, timed[mine])
        yield Finding(
            "communication",
            subtract(merge(start[mine], end[mine]), waiting),
            computing,
            on_device=on_device,
            case="ddp_16_bit" if halved else wrapper,
            event=int(operations.event[timed[mine]][np.argmax((end - start)[mine])]),
        )


def _is_send_or_receive(trace: Trace, operations: Collectives) -> Bool:
    """Return bool[k]: operations that only their kernel names, the same for messages and for an all-to-all."""
    codes = trace.events.name[operations.event]
    by_kernel = name_mask(trace.strings, lambda name: collective_from_kernel(name) == "send_recv", codes)[codes]
    unnamed = np.array([name in ("send_recv", "coalesced") for name in operations.names] + [False], np.bool_)
    return by_kernel & unnamed[operations.collective]


def _are_halved(operations: Collectives, which: Int64) -> bool:
    """Return whether most of these bytes are in 16-bit types already."""
    widths = np.array([bytes_per_element(name) or 0 for name in operations.names] + [0])[operations.dtype[which]]
    sizes = np.maximum(np.maximum(operations.bytes_in, operations.bytes_out)[which], 0)
    return bool(2 * sizes[widths == 2].sum() > sizes.sum())


def _estimate_max_times(duration: Int64, kind: Int32, size: Int64) -> Int64:
    """Return what each collective takes at most without waiting, by its kind and size; ABSENT if unknown."""
    by_kind = np.full(len(duration), ABSENT)
    for code in distinct(kind):
        same = kind == code
        if same.sum() >= MIN_SAMPLES:
            by_kind[same] = int(LATE_RATIO * median(duration[same]))
    by_size = max_transfer_times(size)
    both = np.minimum(by_kind, by_size)
    times: Int64 = np.where(both == ABSENT, np.maximum(by_kind, by_size), both)
    return times


def find_data_parallel(trace: Trace) -> Iterator[Finding]:
    """Find DataParallel: with a process for each device, every device could work as the busiest does."""
    if len(devices(trace)) < 2 or DATA_PARALLEL not in names_of_kind(trace, Kind.CPU_OP, Kind.ANNOTATION):
        return
    kernels = computing_kernels(trace)
    used = device_ids(trace)[kernels]
    busiest = max(
        (event_intervals(trace, mine) for mine in (kernels[used == id] for id in distinct(used))),
        key=total,
    )
    yield Finding("data_parallel", typical_windows(trace), busiest, value=len(devices(trace)))


def find_missing_nccl(trace: Trace) -> Iterator[Finding]:
    """Find gradients that pass through host memory between GPUs that could exchange them directly."""
    if job_kind(trace).wrapper is None or not any(map(_supports_nccl, devices(trace))):
        return
    operations = collectives(trace)
    backends = {operations.names[code] for code in distinct(operations.backend[operations.backend >= 0]).tolist()}
    info = trace.metadata.get("distributedInfo")
    recorded = str(info.get("backend", "")) if isinstance(info, dict) else ""
    if "nccl" in recorded.lower() or any("ccl" in name for name in backends):
        return
    slow = next((name for name in ("gloo", "mpi") if name in backends or recorded.lower() == name), None)
    if slow:
        roles = role_intervals(trace)
        computing = union(roles["kernel"], roles["memcpy"], roles["memset"])
        yield Finding("nccl_backend", roles["communication"], computing, subject=slow)


def _supports_nccl(device: DeviceInfo) -> bool:
    return compute_capability(device) >= MIN_NCCL_CAPABILITY


def compute_capability(device: DeviceInfo) -> tuple[int, ...]:
    """Return the compute capability as numbers, (0,) if it is unknown."""
    return tuple(map(int, device.compute_capability.split("."))) if device.compute_capability else (0,)
