"""Work of a device that a recording lacks: calls ask for it, and none of its kind is recorded.

rocprofv3 records kernels and copies by an option each, so that a file may hold one of them alone. When a device
does nothing is then unknown (without kernels), or at most the time that seems so (without copies).
"""

from __future__ import annotations

from collections.abc import Iterable

from torch_tb_profiler.model.kinds import DEVICE_KINDS, Kind, names_of_kind, rows_of_kind
from torch_tb_profiler.model.trace import ROCPROF, Trace, derived
from torch_tb_profiler.model.vendors.recording_options import recording_option

NO_DEVICE_REASON = "kernels were launched, but the profiler did not record the device"


@derived
def missing_kernels_reason(trace: Trace) -> str | None:
    """Why it is unknown when the devices compute; None if kernels are recorded, or none was launched."""
    if len(rows_of_kind(trace, Kind.KERNEL)):
        return None
    work, calls = len(rows_of_kind(trace, *DEVICE_KINDS)) > 0, _calls(trace)
    if _any("launch", calls):
        said = "kernels were launched, but none is recorded"
        return f"{said}; {recording_option(trace, 'kernels')}" if work else NO_DEVICE_REASON
    if work and not calls and trace.producer == ROCPROF:
        return (
            f"no kernel is recorded, and no call that tells whether one ran; {recording_option(trace, 'kernels')}"
        )
    return None


@derived
def missing_copies_reason(trace: Trace) -> str | None:
    """Why it is unknown when devices with kernels copy; None if copies are recorded, or none was made."""
    if len(rows_of_kind(trace, Kind.MEMCPY)) or not len(rows_of_kind(trace, Kind.KERNEL)):
        return None
    calls = _calls(trace)
    if _any("memcpy", calls):
        return f"copies were made, but none is recorded; {recording_option(trace, 'copies')}"
    if not calls and trace.producer == ROCPROF:
        option = recording_option(trace, "copies")
        return f"no copy is recorded, and no call that tells whether one was made; {option}"
    return None


def _calls(trace: Trace) -> set[str]:
    return names_of_kind(trace, Kind.RUNTIME, Kind.DRIVER)


def _any(part: str, names: Iterable[str]) -> bool:
    return any(part in name.lower() for name in names)
