"""The table of hardware counters by kernel and operator."""

from __future__ import annotations

from math import isfinite

from torch_tb_profiler.analyses.roofline.counters import CounterTotals, counter_totals
from torch_tb_profiler.analyses.tracks.sources import name_of
from torch_tb_profiler.model.counters.dispatches import COUNTER_FILES_NOTE
from torch_tb_profiler.model.counters.ranges import counter_ranges
from torch_tb_profiler.model.kernels.short_names import short_names
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.views.roofline.payload import CounterRow, RooflineCounters

CUPTI = "Measured by CUPTI's range profiler; the n-th range belongs to the n-th launch."
ROCPROF = "Measured by rocprofv3 for each dispatch of this recording."

MAX_ROWS = 100
"""Rows in one answer: 40 kB with a dozen counters each."""


def hardware_counters(trace: Trace) -> RooflineCounters | None:
    """Return the counters of `trace`, most FLOPs first, or None if it has none."""
    profiled = counter_ranges(trace)
    if not len(profiled):
        return None
    table = counter_totals(trace)
    names = [name_of(trace, row) for row in table.event.tolist()]
    short = short_names(names)
    rows = [_row(trace, table, i, name, short[name]) for i, name in enumerate(names)]
    rows.sort(key=lambda row: (row.flops or 0.0, row.calls), reverse=True)
    shown = rows[:MAX_ROWS]
    return RooflineCounters(
        source=_source(trace, profiled.amd),
        names=list(table.names),
        rows=shown,
        ranges=len(profiled),
        left_out=len(rows) - len(shown),
        note=table.join_reason,
    )


def _source(trace: Trace, amd: bool) -> str:
    messages = (note.message for note in trace.health if note.kind == COUNTER_FILES_NOTE)
    return next((f"{text[0].upper()}{text[1:]}." for text in messages), ROCPROF) if amd else CUPTI


def _row(trace: Trace, table: CounterTotals, i: int, name: str, short: str) -> CounterRow:
    operator, outermost = int(table.operator[i]), int(table.outermost[i])
    return CounterRow(
        event=int(table.event[i]),
        name=name,
        short_name=short,
        operator=name_of(trace, operator) if operator >= 0 else None,
        outermost=name_of(trace, outermost) if outermost >= 0 else None,
        calls=int(table.calls[i]),
        values=[_finite_or_none(value) for value in table.values[:, i].tolist()],
        flops=_finite_or_none(float(table.flops[i])),
        bytes=_finite_or_none(float(table.bytes[i])),
        modeled_flops=_finite_or_none(float(table.modeled_flops[i])),
        modeled_bytes=_finite_or_none(float(table.modeled_bytes[i])),
        reason=table.reason[i],
        modeled_reason=table.model_reason[i],
    )


def _finite_or_none(value: float) -> float | None:
    return value if isfinite(value) else None
