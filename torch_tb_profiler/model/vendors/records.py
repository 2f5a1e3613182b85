"""What each profiler records, and which of its own options turns it on: the one place that knows.

PyTorch's options are those of `torch.profiler.profile`, for all devices. Ascend's `torch_npu.profiler.profile` has
the same by the same names, Composer's `Profiler` hands its own over to PyTorch's. rocprofv3 sees the driver. All
others record busy times of streams or samples, and have no option for more.
"""

from __future__ import annotations

from typing import Literal

from torch_tb_profiler.model.health import is_truncated
from torch_tb_profiler.model.trace import AORTA, COMPOSER, PYTORCH, ROCPROF, Trace
from torch_tb_profiler.model.vendors import ascend, gaudi

Topic = Literal[
    "host", "runtime", "operators", "device", "kernels", "copies", "shapes", "stacks", "modules", "calls",
    "memory", "steps", "sizes",
]  # fmt: skip

_OPTIONS: dict[str, dict[Topic, str]] = {
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
        "steps": "Composer marks batches as steps: the recording holds none",
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
"""By producer: how to record a thing, in its own terms; what a producer cannot record it does not list."""

_GAUDI: dict[Topic, str] = {
    "device": "`activities=[..., ProfilerActivity.HPU]` records it",
    "kernels": "`activities=[..., ProfilerActivity.HPU]` records them",
    "copies": "`activities=[..., ProfilerActivity.HPU]` records them",
}
_ASCEND: dict[Topic, str] = {
    "device": "`activities=[..., torch_npu.profiler.ProfilerActivity.NPU]` records it",
    "kernels": "`activities=[..., torch_npu.profiler.ProfilerActivity.NPU]` records them",
    "copies": "`activities=[..., torch_npu.profiler.ProfilerActivity.NPU]` records them",
    "memory": "Ascend's profiler keeps memory out of the trace, in tables beside it (`operator_memory.csv`, "
    "`memory_record.csv`), which are not read here",
}
"""Where they differ from PyTorch's."""

_INSTEAD = {
    ROCPROF: "rocprofv3 records calls of the driver and work of the devices, not what PyTorch does",
    AORTA: "AORTA records busy times of streams, and nothing else",
}

NONE_BEFORE_THE_CUT = "the file is cut off before any device work"
"""Whether there was any is not known."""


def option(trace: Trace, topic: Topic) -> str:
    """A clause in terms of who wrote the trace: the option that records this, else what is recorded instead."""
    own: dict[Topic, str]
    own = _GAUDI if (gaudi.engines(trace) >= 0).any() else _ASCEND if ascend.is_ascend(trace) else {}
    if trace.producer == PYTORCH and topic in own:
        return own[topic]
    return option_of(trace.producer, topic)


def option_of(producer: str, topic: Topic) -> str:
    """The same where nothing but the producer is known, of what does not depend on the device."""
    known = _OPTIONS.get(producer, {}).get(topic)
    return known or _INSTEAD.get(producer, f"{producer} records samples, and nothing else")


def no_device_work(trace: Trace) -> str:
    """Why a trace has none: what it lacks behind a cut is not known, and so no option is to blame."""
    if is_truncated(trace.health):
        return NONE_BEFORE_THE_CUT
    return f"no device work is recorded; {option(trace, 'device')}"
