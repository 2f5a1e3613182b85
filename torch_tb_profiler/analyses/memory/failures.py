"""Allocations that failed for lack of memory."""

from __future__ import annotations

import msgspec

from torch_tb_profiler.analyses.tracks.sources import name_of
from torch_tb_profiler.model.memory.events import enclosing_calls, memory_failures
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Trace


class FailedAllocation(msgspec.Struct, frozen=True):
    """What was asked for, the totals then (bytes, None: not recorded), and the operator around it (None: outside).

    event, operator_event  rows of the trace; time in ns
    """

    event: int
    device: str
    time: int
    size: int | None
    allocated: int | None
    reserved: int | None
    operator: str | None
    operator_event: int | None


def failed_allocations(trace: Trace, limit: int) -> list[FailedAllocation]:
    """The first ones, in order of time."""
    records = memory_failures(trace)
    rows = records.rows[:limit]
    if not len(rows):
        return []
    columns = (rows, records.device, records.time, records.size, records.allocated, records.reserved)
    return [
        FailedAllocation(
            event=event,
            device=records.devices[device].name,
            time=time,
            size=abs(size) or None,
            allocated=None if allocated == ABSENT else allocated,
            reserved=None if reserved == ABSENT else reserved,
            operator=None if call == NO_CODE else name_of(trace, call),
            operator_event=None if call == NO_CODE else call,
        )
        for event, device, time, size, allocated, reserved, call in zip(
            *(column[: len(rows)].tolist() for column in columns),
            enclosing_calls(trace, rows).tolist(),
            strict=True,
        )
    ]


def first_failure(trace: Trace, device: str) -> tuple[int, int | None]:
    """(how many allocations of a device failed, row of the first one)."""
    records = memory_failures(trace)
    rows = [
        row
        for row, code in zip(records.rows.tolist(), records.device.tolist(), strict=True)
        if records.devices[code].name == device
    ]
    return len(rows), rows[0] if rows else None
