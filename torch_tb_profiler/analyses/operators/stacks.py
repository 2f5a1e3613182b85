"""Where the calls of one row of the operator table come from."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.call_stacks import MergedFrame, distinct_stacks, merge_stacks
from torch_tb_profiler.model.calls.operators import operators
from torch_tb_profiler.model.trace import Int64, Trace


class CallStack(msgspec.Struct, frozen=True):
    """A distinct stack, innermost frame first, and the calls made from it; times in ns, `event` the first call."""

    frames: tuple[str, ...]
    calls: int
    host_self: int
    host_total: int
    device_self: int
    device_total: int
    event: int


class OperatorStacks(msgspec.Struct, frozen=True):
    """Stacks, most time first, and all of them merged into one tree; `bare` calls have none and are in neither."""

    stacks: list[CallStack]
    merged: list[MergedFrame]
    bare: int


def operator_stacks(trace: Trace, calls: Int64, by_device: bool) -> OperatorStacks:
    """The stacks of some calls, int64[k] positions in `operators`, in order of host or device total time."""
    table = operators(trace)
    rows = table.rows[calls]
    stacks = distinct_stacks(trace, rows)
    count = len(stacks.frames)

    def sums(column: Int64) -> Int64:
        total = np.zeros(count, np.int64)
        np.add.at(total, stacks.which, column[calls])
        return total

    calls_of = np.bincount(stacks.which, minlength=count)
    host, device = sums(table.host_total), sums(table.device_total)
    host_self, device_self = sums(table.host_self), sums(table.device_self)
    first = np.full(count, len(rows), np.int64)
    np.minimum.at(first, stacks.which, np.arange(len(rows)))
    order = np.lexsort((-host, -device if by_device else -host))
    listed = [i for i in order.tolist() if stacks.frames[i]]
    return OperatorStacks(
        stacks=[
            CallStack(
                stacks.frames[i],
                calls=int(calls_of[i]),
                host_self=int(host_self[i]),
                host_total=int(host[i]),
                device_self=int(device_self[i]),
                device_total=int(device[i]),
                event=int(rows[first[i]]),
            )
            for i in listed
        ],
        merged=merge_stacks([stacks.frames[i] for i in listed], calls_of[listed], host[listed], device[listed]),
        bare=stacks.bare,
    )
