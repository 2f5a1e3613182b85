"""The communication operations of one rank: what they are, in which group, how much they move, when they run.

Their time is that of their kernels; of an operation whose back end works on the host (gloo, mpi), or in a
trace without any communication kernel, that of the host's call.
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
from torch_tb_profiler.model.communication.facts import groups_of, kinds_of, peers_of, sizes_of
from torch_tb_profiler.model.communication.groups import ProcessGroup
from torch_tb_profiler.model.communication.names import DEVICE_BACKENDS
from torch_tb_profiler.model.kinds import event_ends
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Int8, Int32, Int64, Trace


class Timing(IntEnum):
    """Where the time of an operation comes from: its kernels, the host's call, or nowhere."""

    DEVICE = 0
    HOST = 1
    NONE = 2


class Collectives(msgspec.Struct, frozen=True):
    """Communication operations in the order in which they began. Columns of length k.

    event       int32  row of the first kernel, else of the host's call
    call        int32  row of the outermost host call, NO_CODE if none is recorded
    collective, backend, dtype  int32  codes into `names`, NO_CODE if unknown
    group       int32  code into `groups`
    timing      int8   a Timing
    issue       int64  ns: begin of the host's call or of the launch, ABSENT if not recorded
    start, end  int64  ns: begin of the first and end of the last kernel (or of the call), ABSENT without timing
    sequence    int64  recorded sequence number, ABSENT if none
    source, target  int64  ranks between which a message passes, ABSENT if unknown and for other collectives
    bytes_in, bytes_out  int64  what this rank puts in and gets out, ABSENT if unknown
    egress_bytes  int64  what goes to other ranks where uneven splits are recorded, else ABSENT
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
    """Every communication operation of the trace."""
    calls = collective_calls(trace)
    kinds = kinds_of(trace, calls)
    sizes = sizes_of(trace, calls, kinds.collective)
    group, groups = groups_of(trace, calls, kinds.backend)
    source, target = peers_of(trace, calls, kinds.collective, [groups[code] for code in group.tolist()])
    times = _times(trace, calls, kinds.backend)
    first = calls.first_kernel()
    names: dict[str, int] = {}

    def codes(texts: Sequence[str | None]) -> Int32:
        coded = [NO_CODE if text is None else names.setdefault(text, len(names)) for text in texts]
        return np.array(coded, np.int32)

    order = np.lexsort((times.issue, np.where(times.start == ABSENT, times.issue, times.start)))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    sequence = trace.arg_int("Seq", calls.recorded)
    return Collectives(
        event=np.where(first >= 0, first, times.host)[order].astype(np.int32),
        call=calls.call[order],
        collective=codes(kinds.collective)[order],
        backend=codes(kinds.backend)[order],
        dtype=codes(sizes.dtype)[order],
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


class _Times(msgspec.Struct, frozen=True):
    """Columns of Collectives, before they are put in order; `host` int32[k] is the row of the host's own work."""

    timing: npt.NDArray[np.int8]
    issue: Int64
    start: Int64
    end: Int64
    parts: OwnedIntervals
    host: Int32


def _times(trace: Trace, calls: CollectiveCalls, backend: Sequence[str | None]) -> _Times:
    begin, finish = trace.events.start, event_ends(trace)
    first = calls.first_kernel()
    on_device = first >= 0
    launching = np.array([name is None or name in DEVICE_BACKENDS for name in backend], np.bool_)
    only_launches = launching & (len(calls.kernels) > 0)
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
    timing = np.where(on_device, Timing.DEVICE, np.where(on_host, Timing.HOST, Timing.NONE)).astype(np.int8)
    return _Times(timing, _issue(trace, calls), start, end, parts, host)


def _issue(trace: Trace, calls: CollectiveCalls) -> Int64:
    begin, links = trace.events.start, device_links(trace)
    launch = np.full(len(calls), NO_CODE, np.int32)
    launch[calls.owner[::-1]] = links.launch[np.searchsorted(links.rows, calls.kernels)][::-1]
    launched = np.where(launch >= 0, begin[launch], ABSENT)
    return np.where(calls.call >= 0, begin[calls.call], launched)
