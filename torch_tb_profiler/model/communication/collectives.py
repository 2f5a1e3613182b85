"""Communication operations of one rank: kind, group, sizes, and times.

The time of an operation is that of its kernels. Where its back end works on the host (gloo, mpi), or the trace has
no communication kernel at all, it is that of the host's call.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

import msgspec
import numpy as np
import numpy.typing as npt

from torch_tb_profiler.base.intervals import OwnedIntervals, merge_by_owner
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.communication.calls import CollectiveCalls, collective_calls
from torch_tb_profiler.model.communication.events import DEVICE_BACKENDS
from torch_tb_profiler.model.communication.groups import ProcessGroup
from torch_tb_profiler.model.communication.metadata import (
    collective_kinds,
    message_peers,
    message_sizes,
    process_groups,
)
from torch_tb_profiler.model.kinds import event_ends
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Int8, Int32, Int64, Trace


class TimingSource(IntEnum):
    """What the time of an operation is taken from: its kernels, the host's call, or nothing."""

    DEVICE = 0
    HOST = 1
    NONE = 2


class Collectives(msgspec.Struct, frozen=True):
    """Communication operations by start; columns of length k.

    event       int32  row of the first kernel, else of the host's call
    call        int32  row of the outermost host call, NO_CODE if none is recorded
    collective, backend, dtype  int32  codes into `names`, NO_CODE if unknown
    group       int32  code into `groups`
    timing      int8   a TimingSource
    issue       int64  ns: begin of the host's call or of the launch, ABSENT if not recorded
    start, end  int64  ns: begin of the first and end of the last kernel (or of the call), ABSENT without timing
    sequence    int64  recorded sequence number, ABSENT if none
    source, target  int64  ranks between which a message passes, ABSENT if unknown and for other collectives
    bytes_in, bytes_out  int64  bytes that this rank puts in and gets out, ABSENT if unknown
    egress_bytes  int64  bytes that go to other ranks where uneven splits are recorded, else ABSENT
    parts       merged times of the kernels (or calls), owned by the positions of the operations
    """

    event: Int32
    call: Int32
    collective: Int32
    backend: Int32
    dtype: Int32
    group: Int32
    timing: Int8
    issue: Int64
    start: Int64
    end: Int64
    sequence: Int64
    source: Int64
    target: Int64
    bytes_in: Int64
    bytes_out: Int64
    egress_bytes: Int64
    parts: OwnedIntervals
    names: Sequence[str]
    groups: Sequence[ProcessGroup]

    def __len__(self) -> int:
        return len(self.event)


@derived
def collectives(trace: Trace) -> Collectives:
    """Return every communication operation of the trace."""
    calls = collective_calls(trace)
    kinds = collective_kinds(trace, calls)
    sizes = message_sizes(trace, calls, kinds.collective)
    group, groups = process_groups(trace, calls, kinds.backend)
    source, target = message_peers(trace, calls, kinds.collective, [groups[code] for code in group.tolist()])
    times = _find_operation_times(trace, calls, kinds.backend)
    first = calls.first_kernel()
    names: dict[str, int] = {}

    def encode(texts: Sequence[str | None]) -> Int32:
        codes = [NO_CODE if text is None else names.setdefault(text, len(names)) for text in texts]
        return np.array(codes, np.int32)

    order = np.lexsort((times.issue, np.where(times.start == ABSENT, times.issue, times.start)))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    sequence = trace.arg_int("Seq", calls.recorded)
    return Collectives(
        event=np.where(first >= 0, first, times.host)[order].astype(np.int32),
        call=calls.call[order],
        collective=encode(kinds.collective)[order],
        backend=encode(kinds.backend)[order],
        dtype=encode(sizes.dtype)[order],
        group=group[order],
        timing=times.timing[order],
        issue=times.issue[order],
        start=times.start[order],
        end=times.end[order],
        sequence=sequence[order],
        source=source[order],
        target=target[order],
        bytes_in=sizes.bytes_in[order],
        bytes_out=sizes.bytes_out[order],
        egress_bytes=sizes.egress_bytes[order],
        parts=merge_by_owner(place[times.parts.owner], times.parts.starts, times.parts.ends),
        names=list(names),
        groups=groups,
    )


class _OperationTimes(msgspec.Struct, frozen=True):
    """Columns of Collectives before sorting; `host` int32[k] is the row of the host's own work."""

    timing: npt.NDArray[np.int8]
    issue: Int64
    start: Int64
    end: Int64
    parts: OwnedIntervals
    host: Int32


def _find_operation_times(trace: Trace, calls: CollectiveCalls, backend: Sequence[str | None]) -> _OperationTimes:
    begin, finish = trace.events.start, event_ends(trace)
    first = calls.first_kernel()
    on_device = first >= 0
    only_launches = np.array([name is None or name in DEVICE_BACKENDS for name in backend], np.bool_)
    only_launches &= len(calls.kernels) > 0
    on_host = ~on_device & ~only_launches
    host = np.where(calls.named >= 0, calls.named, calls.call)

    start, end = np.full(len(calls), ABSENT), np.full(len(calls), ABSENT)
    for which, rows in ((on_device, first), (on_host, host)):
        start[which], end[which] = begin[rows[which]], finish[rows[which]]
    np.maximum.at(end, calls.owner, finish[calls.kernels])
    device = merge_by_owner(calls.owner, begin[calls.kernels], finish[calls.kernels])
    parts = merge_by_owner(
        np.append(device.owner, np.flatnonzero(on_host)),
        np.append(device.starts, start[on_host]),
        np.append(device.ends, end[on_host]),
    )
    timing = np.where(
        on_device, TimingSource.DEVICE, np.where(on_host, TimingSource.HOST, TimingSource.NONE)
    ).astype(np.int8)
    return _OperationTimes(timing, _find_issue_times(trace, calls), start, end, parts, host)


def _find_issue_times(trace: Trace, calls: CollectiveCalls) -> Int64:
    begin, links = trace.events.start, device_links(trace)
    launch = np.full(len(calls), NO_CODE, np.int32)
    launch[calls.owner[::-1]] = links.launch[np.searchsorted(links.rows, calls.kernels)][::-1]
    launch_time = np.where(launch >= 0, begin[launch], ABSENT)
    return np.where(calls.call >= 0, begin[calls.call], launch_time)
