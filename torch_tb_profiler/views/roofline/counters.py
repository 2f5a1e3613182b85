"""Hardware counters by kernel and operator, arranged for the page."""

from __future__ import annotations

from math import isfinite

from torch_tb_profiler.analyses.roofline.counted import Counted, counted
from torch_tb_profiler.analyses.tracks.sources import name_of
from torch_tb_profiler.model.counters.dispatches import COUNTER_FILES_NOTE
from torch_tb_profiler.model.counters.ranges import counter_ranges
from torch_tb_profiler.model.kernels.short_names import short_names
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.views.roofline.payload import CounterRow, Counters

CUPTI = "Counted by CUPTI's range profiler; the n-th range is that of the n-th launch."
ROCPROF = "Counted by rocprofv3, for each dispatch of this recording."

MOST_ROWS = 100
"""With a dozen counters each, 40 kB."""


def hardware_counters(trace: Trace) -> Counters | None:
    """None in a trace without any."""
    profiled = counter_ranges(trace)
    if not len(profiled):
        return None
    table = counted(trace)
    names = [name_of(trace, row) for row in table.event.tolist()]
    short = short_names(names)
    rows = [_row(trace, table, i, name, short[name]) for i, name in enumerate(names)]
    rows.sort(key=lambda row: (row.flops or 0.0, row.calls), reverse=True)
    shown = rows[:MOST_ROWS]
    return Counters(
        source=_source(trace, profiled.amd),
        names=list(table.names),
        rows=shown,
        ranges=len(profiled),
        left_out=len(rows) - len(shown),
        note=table.join_reason,
    )


def _source(trace: Trace, amd: bool) -> str:
    beside = (note.message for note in trace.health if note.kind == COUNTER_FILES_NOTE)
    return next((f"{text[0].upper()}{text[1:]}." for text in beside), ROCPROF) if amd else CUPTI


def _row(trace: Trace, table: Counted, i: int, name: str, short: str) -> CounterRow:
    operator, outermost = int(table.operator[i]), int(table.outermost[i])
    return CounterRow(
        event=int(table.event[i]),
        name=name,
        short_name=short,
        operator=name_of(trace, operator) if operator >= 0 else None,
        outermost=name_of(trace, outermost) if outermost >= 0 else None,
        calls=int(table.calls[i]),
        values=[_known(value) for value in table.values[:, i].tolist()],
        flops=_known(float(table.flops[i])),
        bytes=_known(float(table.bytes[i])),
        modeled_flops=_known(float(table.modeled_flops[i])),
        modeled_bytes=_known(float(table.modeled_bytes[i])),
        reason=table.reason[i],
        modeled_reason=table.model_reason[i],
    )


def _known(value: float) -> float | None:
    return value if isfinite(value) else None
