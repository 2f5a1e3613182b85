"""Device work that a recording lacks: calls ask for it, but nothing of its kind was recorded.

rocprofv3 records kernels and copies by separate options, so a file may hold only one of them. When a device is
idle is then unknown (without kernels), or at most what it seems (without copies).
"""

from __future__ import annotations

from collections.abc import Iterable

from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.kinds import DEVICE_KINDS, Kind, names_of_kind, rows_of_kind
from torch_tb_profiler.model.trace import ROCPROF, Trace
from torch_tb_profiler.model.vendors.recording_options import recording_option

NO_DEVICE_REASON = "kernels were launched, but the profiler didn't record the device"


@derived
def missing_kernels_reason(trace: Trace) -> str | None:
    """Return why the devices' compute time is unknown, or None if kernels were recorded or none was launched."""
    if len(rows_of_kind(trace, Kind.KERNEL)):
        return None
    has_work, calls = len(rows_of_kind(trace, *DEVICE_KINDS)) > 0, _call_names(trace)
    if _any_contains("launch", calls):
        if not has_work:
            return NO_DEVICE_REASON
        return f"kernels were launched but not recorded; {recording_option(trace, 'kernels')}"
    if has_work and not calls and trace.producer == ROCPROF:
        option = recording_option(trace, "kernels")
        return f"no kernels were recorded, nor calls that would show whether any ran; {option}"
    return None


@derived
def missing_copies_reason(trace: Trace) -> str | None:
    """Return why the copies beside recorded kernels are unknown, or None if any are recorded or none was made."""
    if len(rows_of_kind(trace, Kind.MEMCPY)) or not len(rows_of_kind(trace, Kind.KERNEL)):
        return None
    calls = _call_names(trace)
    if _any_contains("memcpy", calls):
        return f"copies were made but not recorded; {recording_option(trace, 'copies')}"
    if not calls and trace.producer == ROCPROF:
        option = recording_option(trace, "copies")
        return f"no copies were recorded, nor calls that would show whether any were made; {option}"
    return None


def _call_names(trace: Trace) -> set[str]:
    return names_of_kind(trace, Kind.RUNTIME, Kind.DRIVER)


def _any_contains(part: str, names: Iterable[str]) -> bool:
    return any(part in name.lower() for name in names)
