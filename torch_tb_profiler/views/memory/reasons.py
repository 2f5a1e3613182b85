"""Why fields of the Memory tab are null or empty."""

from __future__ import annotations

from collections.abc import Sequence

from torch_tb_profiler.analyses.memory.devices import DeviceMemory, has_memory
from torch_tb_profiler.analyses.memory.growth import LEAST_STEPS
from torch_tb_profiler.analyses.shared.call_stacks import has_stacks
from torch_tb_profiler.model.memory.blocks import has_addresses
from torch_tb_profiler.model.modules import has_modules
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.model.vendors.recording_options import recording_option

NO_ADDRESSES = (
    "the file has no addresses, so allocations and releases cannot be matched (PyTorch records them since 1.10)"
)


def no_events(trace: Trace) -> str:
    """Why nothing is known of memory."""
    return f"no memory events are recorded ({recording_option(trace, 'memory')})"


def unavailable(trace: Trace) -> str | None:
    """The tab needs one memory event with a time."""
    return None if has_memory(trace) else no_events(trace)


def reasons(trace: Trace, devices: Sequence[DeviceMemory], grown: int) -> dict[str, str]:
    """Field -> reason; `grown`: of how many devices the growth is known."""
    if not devices:
        return {"devices": no_events(trace)}
    return {
        **_of_devices(devices),
        **_of_recording(trace),
        **_of_growth(trace, grown == len(devices)),
    }


def _of_devices(devices: Sequence[DeviceMemory]) -> dict[str, str]:
    reasons = {}
    hosts = [memory for memory in devices if memory.device.name == "CPU"]
    if any(memory.device.capacity is None for memory in devices if memory not in hosts):
        reasons["capacity_bytes"] = "the file does not describe the device (`deviceProperties`)"
    elif hosts:
        reasons["capacity_bytes"] = "the memory of the host is not recorded"
    if any(memory.relative for memory in devices):
        reasons["peak_allocated"] = reasons["peak_reserved"] = (
            "the file has no totals: PyTorch records them since 1.10"
        )
        reasons["curve"] = "the change since the trace began: totals are not recorded"
    if all(memory.unused is None for memory in devices):
        reasons["fragmentation"] = "no reserved memory is recorded; the CPU's allocator reserves none"
    return reasons


def _of_recording(trace: Trace) -> dict[str, str]:
    reasons = {}
    if not has_addresses(trace):
        reasons["unreleased"] = reasons["older"] = "the file has no addresses: PyTorch records them since 1.10"
    if not has_stacks(trace):
        reasons["stacks"] = f"no call stacks are recorded ({recording_option(trace, 'stacks')})"
    if not has_modules(trace):
        reasons["modules"] = f"no nn.Module is recorded ({recording_option(trace, 'modules')})"
    return reasons


def _of_growth(trace: Trace, known: bool) -> dict[str, str]:
    recorded = steps(trace)
    if not recorded.recorded:
        return {"growth": f"no steps are recorded ({recording_option(trace, 'steps')})"}
    if len(recorded.names) < LEAST_STEPS:
        return {"growth": f"growth needs {LEAST_STEPS} steps; this trace has {len(recorded.names)}"}
    if not has_addresses(trace):
        return {"growth": NO_ADDRESSES}
    return {} if known else {"growth": "the first memory events of a device have no totals"}
