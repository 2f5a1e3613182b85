"""How much of what the devices can do the steps use, as far as it is known."""

from __future__ import annotations

from torch_tb_profiler.analyses.roofline.speeds import missing_work_reason
from torch_tb_profiler.analyses.roofline.table import WorkFilter
from torch_tb_profiler.analyses.roofline.utilization import utilization
from torch_tb_profiler.model.health import is_truncated
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.model.work.roofline import device_peaks
from torch_tb_profiler.views._shared.text import reason_texts
from torch_tb_profiler.views.overview.payload import HardwareUse

CUT_OFF = "the file is cut off, and what it lacks may be the work of the devices"
NO_PRODUCT = "no matrix operator with known work and a known peak ran"
NO_PEAK = "the peak of a type that was recomputed is not known"


def hardware_use(trace: Trace) -> HardwareUse | str:
    """Over the steps and all devices; or why nothing can be said."""
    silent = CUT_OFF if is_truncated(trace.health) else missing_work_reason(trace)
    if silent is not None:
        return silent
    used = utilization(trace, WorkFilter(), "")
    peaks = device_peaks(trace, "").values()
    names = list(dict.fromkeys(each.name for each in peaks if each.name is not None))
    reasons = {}
    if used.mfu is None:
        reasons["mfu"] = next((each.reason for each in peaks if each.reason), None) or NO_PRODUCT
    if used.hfu is None:
        reasons["hfu"] = reasons.get("mfu", NO_PEAK)
    return HardwareUse(
        mfu=used.mfu,
        hfu=used.hfu,
        coverage=used.coverage or 0.0,
        complete=used.modeled_ns == used.device_ns,
        peaks=" and ".join(names) or None,
        sources=list(dict.fromkeys(each.source for each in peaks if each.source is not None)),
        reasons=reason_texts(reasons),
    )
