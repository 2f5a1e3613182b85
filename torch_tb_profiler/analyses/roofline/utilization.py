"""Model FLOPs utilization (Chowdhery et al., PaLM, appendix B): the share of the peak that the model itself used.

MFU = sum over matrix operators of (FLOPs that the mathematics needs / peak of their type) / time
HFU = the same of the FLOPs that were executed: with recomputation, and what attention's backward repeats
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.roofline.table import WorkFilter, call_times, select_calls, select_unlinked
from torch_tb_profiler.analyses.shared.typical_steps import step_kinds
from torch_tb_profiler.base.arrays import distinct_numbers
from torch_tb_profiler.model.kinds import event_spans
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Bool, Trace
from torch_tb_profiler.model.work.operator_work import operator_work
from torch_tb_profiler.model.work.roofline import roofline_times


class Utilization(msgspec.Struct, frozen=True):
    """Utilization over the typical steps, or the chosen one, and the chosen devices; None is unknown.

    mfu, hfu     0..1: lower bounds where not all device time is modeled
    peak_ns      time that the needed FLOPs would take at the peak
    needed, executed  FLOPs of matrix operators
    again        those of them that backward computed a second time
    coverage     share of the device time whose work is known, 0..1; None without device time
    modeled_ns, device_ns  this time, and all
    step_ns      length of these steps, or of the trace where none is recorded
    """

    mfu: float | None
    hfu: float | None
    peak_ns: float
    needed: float
    executed: float
    again: float
    coverage: float | None
    modeled_ns: int
    device_ns: int
    step_ns: int


def utilization(trace: Trace, chosen: WorkFilter, custom_peaks: str) -> Utilization:
    """Return the utilization over these steps; calls outside don't count. Raises as `roofline_table`."""
    work, reach = operator_work(trace), roofline_times(trace, custom_peaks)
    keep = select_calls(trace, reach, chosen)
    inside = keep & _in_steps(trace, chosen)
    matrix = work.matrix & inside & ~np.isnan(work.flops)
    rate = np.full(len(work.flops), np.nan)
    for id_, peaks in reach.peaks.items():
        for code, kind in enumerate(work.types):
            peak = peaks.rate(True, kind)
            rate[(reach.device == id_) & (work.type == code)] = np.nan if peak is None else peak
    model = matrix & ~work.recomputed
    span = _step_ns(trace, chosen)
    used = len(distinct_numbers(reach.device[keep])) if chosen.device is None else 1
    time = span * max(used, 1)
    needed_ns = 1e9 * float((work.needed[model] / rate[model]).sum())
    executed_ns = 1e9 * float((work.flops[matrix] / rate[matrix]).sum())
    measured = bool(matrix.any()) and time > 0
    modeled, device = _known_and_total_ns(trace, chosen, keep)
    return Utilization(
        mfu=needed_ns / time if measured and np.isfinite(needed_ns) else None,
        hfu=executed_ns / time if measured and np.isfinite(executed_ns) else None,
        peak_ns=needed_ns if np.isfinite(needed_ns) else 0.0,
        needed=float(work.needed[model].sum()),
        executed=float(work.flops[matrix].sum()),
        again=float(work.flops[matrix & work.recomputed].sum()),
        coverage=modeled / device if device else None,
        modeled_ns=modeled,
        device_ns=device,
        step_ns=span,
    )


def _known_and_total_ns(trace: Trace, chosen: WorkFilter, keep: Bool) -> tuple[int, int]:
    """Return (ns of calls whose FLOPs or bytes are known, ns of all device events) within the filter."""
    work = operator_work(trace)
    known = keep & (~np.isnan(work.flops) | ~np.isnan(work.bytes))
    lost = select_unlinked(trace, chosen)
    start, end = event_spans(trace, lost)
    return int(work.device[known].sum()), int(work.device[keep].sum()) + int((end - start).sum())


def _in_steps(trace: Trace, chosen: WorkFilter) -> Bool:
    """Return which calls were made in a typical step, bool[k]; all of them if no step is recorded."""
    times, spans = call_times(trace), steps(trace)
    if not spans.recorded or chosen.step:
        return np.ones(len(times), np.bool_)
    at = np.searchsorted(spans.host_starts, times, "right") - 1
    inside = (at >= 0) & (times < spans.host_ends[np.maximum(at, 0)])
    counted: Bool = inside & _counted_steps(trace)[np.maximum(at, 0)]
    return counted


def _counted_steps(trace: Trace) -> Bool:
    """Return the typical steps, or all of them where none is complete."""
    typical = step_kinds(trace).typical
    return typical if typical.any() else np.ones(len(typical), np.bool_)


def _step_ns(trace: Trace, chosen: WorkFilter) -> int:
    spans = steps(trace)
    in_filter = np.array([name == chosen.step for name in spans.names], np.bool_)
    counted = in_filter if chosen.step else _counted_steps(trace)
    return int((spans.ends - spans.starts)[counted].sum()) if len(counted) else 0
