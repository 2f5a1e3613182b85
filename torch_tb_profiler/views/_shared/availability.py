"""Why a trace has nothing to show in a tab that builds nothing while the trace is loaded.

Whoever loads a trace asks for the reasons here: importing these tabs with all that they compute from takes as long
as reading 100 MB.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch_tb_profiler.analyses.roofline.speeds import missing_work_reason
from torch_tb_profiler.analyses.schedule.step_spans import recorded_spans
from torch_tb_profiler.analyses.tracks.events import has_time
from torch_tb_profiler.model.calls.missing import missing_kernels_reason
from torch_tb_profiler.model.communication.collectives import collectives
from torch_tb_profiler.model.counters.ranges import counter_ranges
from torch_tb_profiler.model.devices import devices
from torch_tb_profiler.model.kinds import DEVICE_KINDS, Kind, rows_of_kind
from torch_tb_profiler.model.lightning import has_lightning_marks
from torch_tb_profiler.model.memory.events import has_memory
from torch_tb_profiler.model.modules import has_modules
from torch_tb_profiler.model.origins.compiled import has_compiled_calls
from torch_tb_profiler.model.origins.replayed_kernels import replayed_kernels
from torch_tb_profiler.model.schedule.schedule import schedule
from torch_tb_profiler.model.serving.iterations import no_iterations_reason
from torch_tb_profiler.model.steps import step_noun, steps
from torch_tb_profiler.model.trace import AORTA, NO_CODE, Trace
from torch_tb_profiler.model.vendors.recording_options import missing_device_work_reason, recording_option

NO_TIME = "no event in this trace has a timestamp (`ts`), so there is no timeline"

NO_DUMPS = "no flight recorder dumps were found (`nccl_trace_rank_*`; set `TORCH_NCCL_DUMP_ON_TIMEOUT=1`)"


def operators_reason(trace: Trace) -> str | None:
    """Return why there is no table: it needs at least one operator, recorded or replayed."""
    replayed = (each.operator is not None for each in replayed_kernels(trace).values)
    if len(rows_of_kind(trace, Kind.CPU_OP)) or any(replayed):
        return None
    return f"no operators are recorded ({recording_option(trace, 'operators')})"


def kernels_reason(trace: Trace) -> str | None:
    """Return why the tab is unavailable: it needs one kernel, copy or memset."""
    if len(rows_of_kind(trace, *DEVICE_KINDS)):
        return None
    if devices(trace):
        return f"no kernels were recorded; {recording_option(trace, 'kernels')}"
    return missing_device_work_reason(trace)


def roofline_reason(trace: Trace) -> str | None:
    """Return why there is no roofline: it needs counters, or device work and the input shapes of operators."""
    return None if len(counter_ranges(trace)) else missing_work_reason(trace)


def idle_reason(trace: Trace) -> str | None:
    """Return why there is no Idle time: it needs device work, and all of its kernels."""
    if len(rows_of_kind(trace, *DEVICE_KINDS)):
        return missing_kernels_reason(trace)
    return missing_device_work_reason(trace)


def critical_path_reason(trace: Trace) -> str | None:
    """Return why there is no path: it needs a host, a complete step, and the launches of any device work."""
    graph = schedule(trace)
    if graph.main_thread == NO_CODE:
        return f"the host is not recorded; {recording_option(trace, 'host')}"
    if recorded_spans(trace).end.size == 0:
        return f"there is no complete {step_noun(trace)}"
    if len(graph.items) and (reason := missing_kernels_reason(trace)) is not None:
        return reason
    if len(graph.items) and not (graph.items.call >= 0).any():
        if len(rows_of_kind(trace, Kind.RUNTIME, Kind.DRIVER)):
            return "the recording doesn't link the device work to the calls that launched it"
        option = recording_option(trace, "runtime")
        return f"no runtime call is recorded, so what launched the device work is unknown; {option}"
    return None


def timeline_reason(trace: Trace) -> str | None:
    """Return why there is no timeline: it needs an event with a time."""
    return None if has_time(trace) else NO_TIME


def modules_reason(trace: Trace) -> str | None:
    """Return why there are no modules: they need Python frames, or a scripted model."""
    if has_modules(trace):
        return None
    if len(rows_of_kind(trace, Kind.PYTHON)):
        return (
            "Python frames are recorded, but none of them is a call of an `nn.Module`; profile code that calls "
            "the model"
        )
    return f"no module call is recorded: {recording_option(trace, 'calls')}"


def origins_reason(trace: Trace) -> str | None:
    """Return why there is nothing to show; None if a kernel ran on a device, or a compiled one on the host."""
    if len(rows_of_kind(trace, Kind.KERNEL)) or has_compiled_calls(trace):
        return None
    return f"no kernels were recorded; {recording_option(trace, 'kernels')}"


def lightning_reason(trace: Trace) -> str | None:
    """Return why the view has nothing to show; None if Lightning's profiler marked something."""
    if has_lightning_marks(trace):
        return None
    return (
        "no marks of Lightning's profiler (`[pl][profile]`, `[pl][module]`) were recorded; train with "
        "`Trainer(profiler=PyTorchProfiler(record_module_names=True))`"
    )


def distributed_reason(trace: Trace) -> str | None:
    """Return why the view has nothing to show; None if the trace communicates or is one of several ranks."""
    info: Any = trace.metadata.get("distributedInfo")
    world = info.get("world_size") if isinstance(info, dict) else None
    if len(collectives(trace)) or (type(world) is int and world > 1):
        return None
    return "the trace records no communication between ranks (NCCL, Gloo, MPI, ...)"


def overlap_reason(trace: Trace) -> str | None:
    """Return why the view has nothing to show; None if the trace has timed iterations."""
    if trace.clock == "iteration":
        return None
    return f"no iteration metrics were recorded ({AORTA}: `rank_*_metrics.jsonl`)"


def memory_reason(trace: Trace) -> str | None:
    """Return why the tab is unavailable: it needs one memory event with a time."""
    return None if has_memory(trace) else no_memory_reason(trace)


def no_memory_reason(trace: Trace) -> str:
    """Return why a trace has no memory data."""
    if trace.snapshot is not None:
        return "this recording is a memory snapshot; `memory/snapshot` shows it"
    return f"no memory events were recorded ({recording_option(trace, 'memory')})"


def hangs_reason(_: Trace) -> str:
    """Return why a trace alone has nothing to show; the dumps beside it are no part of it."""
    return NO_DUMPS


def diff_reason(trace: Trace) -> str | None:
    """Return why the trace can't be compared: it needs an event with a time and a duration."""
    if len(steps(trace).names) == 0:
        return "the trace has no event with a time and a duration, so there is nothing to compare"
    return None


REASONS: Mapping[str, Callable[[Trace], str | None]] = {
    "operators": operators_reason,
    "kernels": kernels_reason,
    "roofline": roofline_reason,
    "trace": timeline_reason,
    "idle": idle_reason,
    "critical_path": critical_path_reason,
    "modules": modules_reason,
    "origins": origins_reason,
    "lightning": lightning_reason,
    "serving": no_iterations_reason,
    "distributed": distributed_reason,
    "overlap": overlap_reason,
    "memory": memory_reason,
    "hangs": hangs_reason,
    "diff": diff_reason,
}
"""Slug of a tab -> its `unavailable`."""


def known_reasons(trace: Trace) -> Mapping[str, Callable[[Trace], str | None]]:
    """Return the tabs whose reasons for this trace need no import: all of `REASONS` for a recording of events."""
    return REASONS if trace.snapshot is None and trace.clock in ("epoch", "boot") else {}
