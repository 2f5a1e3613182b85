"""What kind of job a trace is of: what advice depends on."""

from __future__ import annotations

from typing import Literal

import msgspec

from torch_tb_profiler.base.markers import DISTRIBUTED_DATA_PARALLEL, is_data_loading, is_optimizer
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.calls.autograd import backward_tasks
from torch_tb_profiler.model.calls.missing import missing_copies_reason, missing_kernels_reason
from torch_tb_profiler.model.health import is_truncated
from torch_tb_profiler.model.kinds import DEVICE_KINDS, Kind, names_of_kind, rows_of_kind
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Trace

_CAPTURES = ("BeginCapture", "EndCapture", "GraphInstantiate")


class Job(msgspec.Struct, frozen=True):
    """A job as its trace shows it.

    training   there is a backward pass or an optimizer
    wrapper    what exchanges gradients
    workers    processes load the data; None where no loader is recorded
    captures   graphs are captured: the calls are made once, and the steps are none
    graphs     graphs are replayed
    """

    training: bool
    wrapper: Literal["ddp", "fsdp"] | None
    workers: bool | None
    captures: bool
    graphs: bool


@derived
def job(trace: Trace) -> Job:
    """From the names of operators, annotations and calls."""
    marks = names_of_kind(trace, Kind.CPU_OP, Kind.ANNOTATION)
    calls = names_of_kind(trace, Kind.RUNTIME, Kind.DRIVER)
    loaders = {name for name in marks if is_data_loading(name)}
    sharded = any("FSDP" in name or "FullyShardedDataParallel" in name for name in marks)
    return Job(
        training=len(backward_tasks(trace).rows) > 0 or any(map(is_optimizer, marks)),
        wrapper="fsdp" if sharded else "ddp" if DISTRIBUTED_DATA_PARALLEL in marks else None,
        workers=any("MultiProcessing" in name for name in loaders) if loaders else None,
        captures=any(part in name for name in calls for part in _CAPTURES),
        graphs=any("GraphLaunch" in name for name in calls),
    )


def no_advice(trace: Trace) -> str | None:
    """Why nothing can be advised on this trace, None if rules can tell."""
    if is_truncated(trace.health):
        return "the file is cut off, so what it lacks may be what matters"
    if not steps(trace).complete.any():
        return "there is no complete step"
    if job(trace).captures:
        return "graphs are captured in this trace, and what happens once says nothing of the steps that follow"
    calls = rows_of_kind(trace, Kind.RUNTIME, Kind.DRIVER)
    if len(rows_of_kind(trace, *DEVICE_KINDS)) == 0 and len(calls):
        return "the profiler did not record the device"
    if len(rows_of_kind(trace, *DEVICE_KINDS)) and missing_kernels_reason(trace) is not None:
        return "the profiler did not record the kernels"
    if missing_copies_reason(trace) is not None:
        return "the profiler did not record the copies, and a device may copy where it seems to wait"
    return None
