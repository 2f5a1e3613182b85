"""Memory by operator."""

from __future__ import annotations

import msgspec

from torch_tb_profiler.analyses.memory.operators import operator_memory
from torch_tb_profiler.analyses.shared.memory_curve import of_device, records_in
from torch_tb_profiler.analyses.tracks.sources import name_of
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import TraceView


class MemoryOperatorsParams(msgspec.Struct, frozen=True):
    """The memory events of a device in [begin, end] (ns), all by default."""

    device: str = ""
    begin: int | None = None
    end: int | None = None


class MemoryOperator(msgspec.Struct, frozen=True):
    """Memory events in the calls of one operator (nested ones included, unless self).

    calls                that overlap the window
    size_increase_bytes  allocated - released; allocation_size_bytes: allocated, whatever is released
    event                row of the first call
    """

    event: int
    name: str
    calls: int
    size_increase_bytes: int
    self_size_increase_bytes: int
    allocation_count: int
    self_allocation_count: int
    allocation_size_bytes: int
    self_allocation_size_bytes: int


class OutsideOperators(msgspec.Struct, frozen=True):
    """Memory events while no operator runs on their thread."""

    size_increase_bytes: int
    allocation_count: int
    allocation_size_bytes: int


class MemoryOperators(msgspec.Struct, frozen=True):
    """Operators with memory events in the window, by self size increase, largest first.

    The self figures of all rows and `outside` add up to all memory events of the device in the window.
    """

    device: str
    begin_ns: int | None
    end_ns: int | None
    rows: list[MemoryOperator]
    outside: OutsideOperators


def build_operators(trace: Trace, params: MemoryOperatorsParams) -> MemoryOperators:
    """NotFoundError for an unknown device, UsageError for a window that is not a range."""
    level = of_device(trace, params.device)
    records_in(level.time, params.begin, params.end)
    table = operator_memory(trace, level, params.begin, params.end)
    columns = (
        table.calls,
        table.increase,
        table.self_increase,
        table.count,
        table.self_count,
        table.size,
        table.self_size,
    )
    rows = [
        MemoryOperator(event, name_of(trace, event), *figures)
        for event, *figures in zip(table.first.tolist(), *(column.tolist() for column in columns), strict=True)
    ]
    rows.sort(key=lambda row: (-row.self_size_increase_bytes, row.name))
    outside = OutsideOperators(table.outside_increase, table.outside_count, table.outside_size)
    return MemoryOperators(level.device.name, params.begin, params.end, rows, outside)


OPERATORS = TraceView(
    "memory/operators", "Memory by operator", MemoryOperatorsParams, MemoryOperators, build_operators
)
