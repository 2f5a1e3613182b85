"""Recording options by producer: what each profiler records, and which of its options turns that on.

PyTorch's options are those of `torch.profiler.profile`, for all devices. Ascend's `torch_npu.profiler.profile` has
the same ones by the same names; Composer's `Profiler` passes its own on to PyTorch's. rocprofv3 records the
driver. All other producers record busy times of streams or samples, and have no option for more.
"""

from __future__ import annotations

from typing import Literal

from torch_tb_profiler.model.health import is_truncated
from torch_tb_profiler.model.trace import AORTA, COMPOSER, PYTORCH, ROCPROF, Trace
from torch_tb_profiler.model.vendors import ascend, gaudi

RecordingTopic = Literal[
    "host", "runtime", "operators", "device", "kernels", "copies", "shapes", "stacks", "modules", "calls",
    "memory", "steps", "sizes",
]  # fmt: skip

_PRODUCER_OPTIONS: dict[str, dict[RecordingTopic, str]] = {
    PYTORCH: {
        "host": "`activities=[ProfilerActivity.CPU, ...]` records it",
        "runtime": "`activities=[ProfilerActivity.CPU, ...]` records it",
        "operators": "`activities=[ProfilerActivity.CPU, ...]` records them",
        "device": "`activities=[..., ProfilerActivity.CUDA]` (or XPU, MTIA) records it",
        "kernels": "`activities=[..., ProfilerActivity.CUDA]` (or XPU, MTIA) records them",
        "copies": "`activities=[..., ProfilerActivity.CUDA]` (or XPU, MTIA) records them",
        "shapes": "`profile(record_shapes=True)`",
        "stacks": "`profile(with_stack=True)`",
        "modules": "`profile(with_stack=True)` or `with_modules=True`",
        "calls": "set `with_stack=True` in `torch.profiler.profile(...)` "
        "(`with_modules=True` alone records modules of scripted models only)",
        "memory": "`profile(profile_memory=True)`",
        "steps": "call `prof.step()` in the training loop",
        "sizes": "`record_shapes=True`, or a newer PyTorch",
    },
    COMPOSER: {
        "host": "a `torch_prof_` option of `Profiler` lets PyTorch's profiler record it",
        "runtime": "a `torch_prof_` option of `Profiler` lets PyTorch's profiler record it",
        "operators": "a `torch_prof_` option of `Profiler` lets PyTorch's profiler record them",
        "device": "a `torch_prof_` option of `Profiler` lets PyTorch's profiler record it",
        "kernels": "a `torch_prof_` option of `Profiler` lets PyTorch's profiler record them",
        "copies": "a `torch_prof_` option of `Profiler` lets PyTorch's profiler record them",
        "shapes": "`Profiler(torch_prof_record_shapes=True)`",
        "stacks": "`Profiler(torch_prof_with_stack=True)`",
        "modules": "`Profiler(torch_prof_with_stack=True)`",
        "calls": "set `torch_prof_with_stack=True` in `Profiler(...)`",
        "memory": "`Profiler(torch_prof_profile_memory=True)`",
        "steps": "Composer marks batches as steps: this recording has none",
        "sizes": "`Profiler(torch_prof_record_shapes=True)`, or a newer PyTorch",
    },
    ROCPROF: {
        "host": "`rocprofv3 --hip-trace` records calls of the driver",
        "runtime": "`rocprofv3 --hip-trace` records it",
        "device": "`rocprofv3 --kernel-trace --memory-copy-trace` records it",
        "kernels": "`rocprofv3 --kernel-trace` records them",
        "copies": "`rocprofv3 --memory-copy-trace` records them",
        "steps": "ranges of roctx named `step 7` mark them",
    },
}
"""How to record each topic, in the terms of the producer; topics that it can't record are left out."""

_GAUDI_OPTIONS: dict[RecordingTopic, str] = {
    "device": "`activities=[..., ProfilerActivity.HPU]` records it",
    "kernels": "`activities=[..., ProfilerActivity.HPU]` records them",
    "copies": "`activities=[..., ProfilerActivity.HPU]` records them",
}
_ASCEND_OPTIONS: dict[RecordingTopic, str] = {
    "device": "`activities=[..., torch_npu.profiler.ProfilerActivity.NPU]` records it",
    "kernels": "`activities=[..., torch_npu.profiler.ProfilerActivity.NPU]` records them",
    "copies": "`activities=[..., torch_npu.profiler.ProfilerActivity.NPU]` records them",
    "memory": "Ascend's profiler keeps memory out of the trace, in tables beside it (`operator_memory.csv`, "
    "`memory_record.csv`), which are not read",
    "sizes": "Ascend's profiler writes sizes to `communication.json` beside the trace, which is not read",
}
"""Options of devices where they differ from PyTorch's."""

_RECORDED_INSTEAD = {
    ROCPROF: "rocprofv3 records calls of the driver and work of the devices, not what PyTorch does",
    AORTA: "AORTA records busy times of streams, and nothing else",
}

TRUNCATED_BEFORE_DEVICE_WORK = "the file is truncated before any device work"
"""Reason for a truncated file: whether there was device work is unknown."""

_TRUNCATED = "the file is truncated, which may be why"

_ARGUMENTS: tuple[RecordingTopic, ...] = ("shapes", "sizes")
"""Topics that are arguments of events: an event before the cut has them, or they were not recorded."""


def recording_option(trace: Trace, topic: RecordingTopic) -> str:
    """Return a clause that names the option which records `topic`, else what the producer records instead.

    A truncated file may have lost what its producer recorded, so no option is named for it.
    """
    if is_truncated(trace.health) and topic not in _ARGUMENTS:
        return _TRUNCATED
    device_options: dict[RecordingTopic, str]
    is_gaudi = (gaudi.thread_engines(trace) >= 0).any()
    device_options = _GAUDI_OPTIONS if is_gaudi else _ASCEND_OPTIONS if ascend.is_ascend(trace) else {}
    if trace.producer == PYTORCH and topic in device_options:
        return device_options[topic]
    return producer_option(trace.producer, topic)


def producer_option(producer: str, topic: RecordingTopic, *, on_ascend: bool = False) -> str:
    """Return the clause of `recording_option` where only the producer and whether it is Ascend's are known."""
    if on_ascend and producer == PYTORCH and topic in _ASCEND_OPTIONS:
        return _ASCEND_OPTIONS[topic]
    option = _PRODUCER_OPTIONS.get(producer, {}).get(topic)
    return option or _RECORDED_INSTEAD.get(producer, f"{producer} records samples, and nothing else")


def missing_device_work_reason(trace: Trace) -> str:
    """Return why a trace has no device work; no option is named for a truncated file, which may have lost it."""
    if is_truncated(trace.health):
        return TRUNCATED_BEFORE_DEVICE_WORK
    return f"no device work is recorded; {recording_option(trace, 'device')}"
