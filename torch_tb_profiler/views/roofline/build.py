"""Roofline: how much work there is, how fast it runs, and how fast the device could run it."""

from __future__ import annotations

from torch_tb_profiler.analyses.roofline.counters import CounterTotals, counter_totals
from torch_tb_profiler.analyses.roofline.speeds import missing_work_reason, row_speed
from torch_tb_profiler.analyses.roofline.summary import RooflineSums, sum_rows
from torch_tb_profiler.analyses.roofline.table import RooflineTable, WorkFilter, roofline_table
from torch_tb_profiler.analyses.roofline.tokens import count_tokens
from torch_tb_profiler.analyses.roofline.utilization import Utilization, utilization
from torch_tb_profiler.analyses.shared.grouping import input_shape_codes, input_shape_texts
from torch_tb_profiler.analyses.shared.payload_values import optional_float
from torch_tb_profiler.analyses.tracks.sources import name_of
from torch_tb_profiler.model.counters.dispatches import COUNTER_FILES_NOTE
from torch_tb_profiler.model.counters.ranges import counter_ranges
from torch_tb_profiler.model.devices import devices
from torch_tb_profiler.model.hardware.clocks import recorded_clocks
from torch_tb_profiler.model.health import is_truncated
from torch_tb_profiler.model.kernels.families import FAMILIES, family_codes
from torch_tb_profiler.model.kernels.short_names import short_kernel_names, short_names
from torch_tb_profiler.model.modules import modules
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.model.work.operator_work import operator_work
from torch_tb_profiler.model.work.roofline import device_peaks
from torch_tb_profiler.view import Tab, TraceView
from torch_tb_profiler.views._shared.availability import roofline_reason
from torch_tb_profiler.views._shared.text import reason_texts
from torch_tb_profiler.views._shared.wording import truncation_sentence
from torch_tb_profiler.views.roofline.payload import (
    CounterRow,
    DevicePeaks,
    OtherRows,
    RooflineCounters,
    RooflineParams,
    RooflinePayload,
    RooflineRow,
    TokenRate,
)
from torch_tb_profiler.views.roofline.words import clock_words, headline

MAX_ROWS_BYTES = 240_000
"""JSON of the rows in one answer; rows with less device time are summed up."""

ROW_BYTES = 420
"""JSON of one row without its texts."""

OUTSIDE = "outside any module"

CUPTI = "Measured by CUPTI's range profiler; the n-th range belongs to the n-th launch."
ROCPROF = "Measured by rocprofv3 for each dispatch of this recording."

MAX_COUNTER_ROWS = 100
"""Rows of counters in one answer: 40 kB with a dozen counters each."""


def build(trace: Trace, params: RooflineParams) -> RooflinePayload:
    """Return the rows with the most device time first. Raises UsageError for peaks that can't be parsed."""
    chosen = WorkFilter(params.step, params.device)
    table = roofline_table(trace, params.group_by, chosen, params.peaks)
    rows = sorted(_build_rows(trace, table, params), key=lambda row: row.device_ns, reverse=True)
    used = utilization(trace, chosen, params.peaks)
    peaks = _build_peaks(trace, params)
    counters = hardware_counters(trace)
    shown = _count_fitting(rows)
    recorded = steps(trace)
    return RooflinePayload(
        headline=truncation_sentence()
        if is_truncated(trace.health)
        else headline(rows, used, peaks, counters, params),
        rows=rows[:shown],
        others=_other_rows(rows[shown:]),
        group_by=params.group_by,
        coverage=used.coverage,
        mfu=used.mfu,
        hfu=used.hfu,
        model_flops=used.needed,
        executed_flops=used.executed,
        recomputed_flops=used.again,
        peak_ns=used.peak_ns,
        step_ns=used.step_ns,
        modeled_ns=used.modeled_ns,
        device_ns=used.device_ns,
        unlinked_ns=table.unlinked_ns,
        tokens=_build_token_rate(trace),
        counters=counters,
        devices=peaks,
        steps=list(dict.fromkeys(recorded.names)) if recorded.recorded else [],
        note=trace.catalog.note,
        reasons=reason_texts(_reasons(trace, used, peaks)),
    )


def _build_rows(trace: Trace, table: RooflineTable, params: RooflineParams) -> list[RooflineRow]:
    if len(table.groups) == 0:
        return []
    totals = sum_rows(trace, table.items, table.groups, params.peaks)
    return [_build_row(trace, totals, i, params.group_by) for i in range(len(table.groups))]


def _build_row(trace: Trace, totals: RooflineSums, i: int, group_by: str) -> RooflineRow:
    event, busy = int(totals.event[i]), int(totals.busy[i])
    name = _name(trace, event, group_by)
    flops, moved, roof = (optional_float(values[i]) for values in (totals.flops, totals.bytes, totals.roof))
    roof_ns, fast = int(totals.roof_ns[i]), row_speed(totals, i)
    return RooflineRow(
        event=event,
        name=name,
        short_name=short_kernel_names(trace).get(name, name) if group_by == "kernel" else name,
        input_shape=_shape(trace, event) if group_by == "shape" else None,
        calls=int(totals.calls[i]),
        device_ns=int(totals.device[i]),
        busy_ns=busy,
        flops=flops,
        bytes=moved,
        intensity=flops / moved if flops and moved else None,
        flops_per_s=fast.flops_per_s,
        bytes_per_s=fast.bytes_per_s,
        roof_ns=roof,
        efficiency=fast.efficiency,
        saved_ns=max(0.0, roof_ns - roof) if roof is not None else None,
        bound=fast.bound,
        unit=totals.unit[i],
        type=totals.type[i],
        estimated=totals.estimated[i],
        measured=totals.measured[i],
        captured=totals.captured[i],
        reason=fast.reason,
    )


def _name(trace: Trace, event: int, group_by: str) -> str:
    if group_by == "family":
        return FAMILIES[int(family_codes(trace)[event])]
    if group_by in ("operator", "shape"):
        captured = operator_work(trace).owners.captured_call(event)
        return name_of(trace, event) if captured is None else captured.operator
    if group_by == "kernel":
        return name_of(trace, event)
    model = modules(trace)
    code = int(model.code[event])
    return " / ".join(model.path(code)) if code >= 0 else OUTSIDE


def _shape(trace: Trace, event: int) -> str:
    captured = operator_work(trace).owners.captured_call(event)
    if captured is not None:
        return captured.inputs[0] or "" if captured.inputs else ""
    code = int(input_shape_codes(trace)[event])
    return input_shape_texts(trace)[code] if code >= 0 else ""


def _count_fitting(rows: list[RooflineRow]) -> int:
    """Return how many of the first rows fit into MAX_ROWS_BYTES."""
    size = 0
    for shown, row in enumerate(rows):
        size += ROW_BYTES + len(row.name) + len(row.short_name) + len(row.input_shape or "")
        if size > MAX_ROWS_BYTES:
            return shown
    return len(rows)


def _other_rows(rows: list[RooflineRow]) -> OtherRows | None:
    if not rows:
        return None
    return OtherRows(len(rows), sum(row.calls for row in rows), sum(row.device_ns for row in rows))


def _build_token_rate(trace: Trace) -> TokenRate | None:
    rate = count_tokens(trace)
    if rate is None:
        return None
    return TokenRate(rate.per_second, rate.prompt, rate.generating, rate.iterations, rate.duration_ns)


def _build_peaks(trace: Trace, params: RooflineParams) -> list[DevicePeaks]:
    known, clocks = device_peaks(trace, params.peaks), recorded_clocks(trace)
    return [
        DevicePeaks(
            device.id,
            device.name,
            peaks.name,
            peaks.matrix,
            peaks.vector,
            peaks.memory,
            peaks.link,
            peaks.matched,
            peaks.source,
            peaks.checked,
            peaks.reason,
            peaks.clock,
            clock.mhz if clock else None,
            clock_words(peaks, clock) if clock else None,
        )
        for device in devices(trace)
        if params.device in (None, device.id)
        for peaks, clock in ((known[device.id], clocks.get(device.id)),)
    ]


def hardware_counters(trace: Trace) -> RooflineCounters | None:
    """Return the hardware counters of `trace` by kernel and operator, most FLOPs first, or None if it has none."""
    profiled = counter_ranges(trace)
    if not len(profiled):
        return None
    table = counter_totals(trace)
    names = [name_of(trace, row) for row in table.event.tolist()]
    short = short_names(names)
    rows = [_build_counter_row(trace, table, i, name, short[name]) for i, name in enumerate(names)]
    rows.sort(key=lambda row: (row.flops or 0.0, row.calls), reverse=True)
    shown = rows[:MAX_COUNTER_ROWS]
    return RooflineCounters(
        source=_counter_source(trace, profiled.amd),
        names=list(table.names),
        rows=shown,
        ranges=len(profiled),
        left_out=len(rows) - len(shown),
        note=table.join_reason,
    )


def _counter_source(trace: Trace, amd: bool) -> str:
    messages = (note.message for note in trace.health if note.kind == COUNTER_FILES_NOTE)
    return next((f"{text[0].upper()}{text[1:]}." for text in messages), ROCPROF) if amd else CUPTI


def _build_counter_row(trace: Trace, table: CounterTotals, i: int, name: str, short: str) -> CounterRow:
    operator, outermost = int(table.operator[i]), int(table.outermost[i])
    return CounterRow(
        event=int(table.event[i]),
        name=name,
        short_name=short,
        operator=name_of(trace, operator) if operator >= 0 else None,
        outermost=name_of(trace, outermost) if outermost >= 0 else None,
        calls=int(table.calls[i]),
        values=[optional_float(value) for value in table.values[:, i].tolist()],
        flops=optional_float(table.flops[i]),
        bytes=optional_float(table.bytes[i]),
        modeled_flops=optional_float(table.modeled_flops[i]),
        modeled_bytes=optional_float(table.modeled_bytes[i]),
        reason=table.reason[i],
        modeled_reason=table.model_reason[i],
    )


def _reasons(trace: Trace, used: Utilization, peaks: list[DevicePeaks]) -> dict[str, str]:
    reasons = {}
    missing = missing_work_reason(trace)
    if missing is not None:  # counters alone
        return dict.fromkeys(("coverage", "mfu", "hfu"), missing)
    unknown = next((each.reason for each in peaks if each.reason), None)
    if used.coverage is None:
        reasons["coverage"] = "no device work matches"
    if used.mfu is None:
        reasons["mfu"] = unknown or "no matmul or convolution with known FLOPs and a known peak rate was recorded"
    if used.hfu is None:
        reasons["hfu"] = reasons.get("mfu", "the peak rate of a recomputed data type isn't known")
    return reasons


TAB = Tab(
    "Where the time goes",
    TraceView("roofline", "Roofline", RooflineParams, RooflinePayload, build, cached="on_request"),
    roofline_reason,
)
