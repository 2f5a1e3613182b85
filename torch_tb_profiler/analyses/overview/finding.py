"""What a rule of advice finds, and what all rules need to know about the job."""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.typical_steps import typical_windows
from torch_tb_profiler.base.intervals import NO_INTERVALS, Intervals, intersect, total
from torch_tb_profiler.base.markers import DISTRIBUTED_DATA_PARALLEL, is_data_loading, is_optimizer
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.calls.autograd import backward_tasks
from torch_tb_profiler.model.calls.missing import missing_copies_reason, missing_kernels_reason
from torch_tb_profiler.model.health import is_truncated
from torch_tb_profiler.model.kinds import DEVICE_KINDS, Kind, names_of_kind, rows_of_kind
from torch_tb_profiler.model.steps import step_noun, steps
from torch_tb_profiler.model.trace import Int32, Trace

MIN_GAIN_SHARE = 0.02
"""Smallest share of the step that advice must save to be worth a person's time."""

_OVERLAP_RATIO = 0.85
"""What removing a wait saves is mostly time of other code, which runs meanwhile: advice on that code comes first
where it saves at least this ratio as much."""

WITHOUT_LIMIT = frozenset({"allocator"})
"""Rules whose advice may save more than its gain: after memory was freed, operators often take longer on the host,
which no replay knows."""

ADVICE_ON_WAITS = frozenset({"synchronization", "blocking_copies"})
"""Rules whose advice removes waits of the host for the device."""

NO_ROWS: Int32 = np.empty(0, np.int32)

_GRAPH_CAPTURE_CALLS = ("BeginCapture", "EndCapture", "GraphInstantiate")

Basis = Literal["what_if", "share", "ranks"]
"""How a gain was estimated: the schedule is replayed without what the advice removes, the time that takes today is
measured, or the files of all ranks are compared."""


class Finding(msgspec.Struct, frozen=True):
    """A rule that applies.

    id         of the rule
    during     time that its advice would remove
    passes     time that passes anyway: the part of `during` that it covers is no gain
    rows       calls or device work that the advice is about, where a replay needs them
    on_device  `during` is device work, which only counts where the host waits for it
    host       time of the host that the advice saves beside that of a device: then the host need not wait for it
    of_all_steps  `during` is in odd steps: what it costs is a mean over all complete steps but the first
    case       which case of the rule applies
    subject    name of the cause, "" if it has none; place: the user's frame around it
    majority   whether more than half of `during` is the subject's
    operator   that allocates at least half of the memory in question, "" if none does
    value      the number in question, if the rule has one
    origin     where the kernel of the example comes from, "" unless it was replayed or compiled
    event      row of an example; window: (begin, end) ns that show it
    """

    id: str
    during: Intervals = NO_INTERVALS
    passes: Intervals = NO_INTERVALS
    rows: Int32 = NO_ROWS
    on_device: bool = False
    host: Intervals = NO_INTERVALS
    of_all_steps: bool = False
    case: str = ""
    subject: str = ""
    majority: bool = True
    place: str = ""
    origin: str = ""
    operator: str = ""
    value: float | None = None
    event: int | None = None
    window: tuple[int, int] | None = None


class Gain(msgspec.Struct, frozen=True):
    """What following advice saves, mean ns per typical step.

    ns           how much shorter the step becomes, at most; at least for the rules of WITHOUT_LIMIT
    measured_ns  time of what the advice removes, today and while nothing else runs; the same if that is the basis
    """

    ns: float
    measured_ns: float
    basis: Basis


class Advice(msgspec.Struct, frozen=True):
    """A finding with its gain, also as a share of the step; both are None where it saves no time."""

    finding: Finding
    gain: Gain | None
    gain_share: float | None


def advice_priority(rule: str, gain: float | None) -> float:
    """Return what advice is ordered by, largest first: its gain in any unit, 0 if it saves no time."""
    return (gain or 0.0) * (_OVERLAP_RATIO if rule == "synchronization" else 1.0)


class JobKind(msgspec.Struct, frozen=True):
    """What kind of job a trace is from.

    training   it has a backward pass or an optimizer
    wrapper    what exchanges gradients
    workers    whether worker processes load the data; None where no loader is recorded
    captures   graphs are captured: such calls happen once and aren't steps
    graphs     graphs are replayed
    """

    training: bool
    wrapper: Literal["ddp", "fsdp"] | None
    workers: bool | None
    captures: bool
    graphs: bool


@derived
def job_kind(trace: Trace) -> JobKind:
    """Recognize the kind of job from the names of operators, annotations and calls."""
    marks = names_of_kind(trace, Kind.CPU_OP, Kind.ANNOTATION)
    calls = names_of_kind(trace, Kind.RUNTIME, Kind.DRIVER)
    loaders = {name for name in marks if is_data_loading(name)}
    sharded = any("FSDP" in name or "FullyShardedDataParallel" in name for name in marks)
    return JobKind(
        training=any(map(is_optimizer, marks)) or len(backward_tasks(trace).rows) > 0,
        wrapper="fsdp" if sharded else "ddp" if DISTRIBUTED_DATA_PARALLEL in marks else None,
        workers=any("MultiProcessing" in name for name in loaders) if loaders else None,
        captures=any(part in name for name in calls for part in _GRAPH_CAPTURE_CALLS),
        graphs=any("GraphLaunch" in name for name in calls),
    )


def is_too_short(trace: Trace, during: Intervals) -> bool:
    """Return whether typical steps have so little of this time that removing it isn't worth naming."""
    windows = typical_windows(trace)
    return total(intersect(during, windows)) < MIN_GAIN_SHARE * total(windows)


def no_advice_reason(trace: Trace) -> str | None:
    """Return why no advice can be given on this trace, or None if the rules apply."""
    if is_truncated(trace.health):
        return "the file is truncated, and the missing part could change the picture"
    if not steps(trace).complete.any():
        return f"there is no complete {step_noun(trace)}"
    if job_kind(trace).captures:
        return f"this trace captures graphs, which happens once and doesn't show what later {step_noun(trace)}s do"
    calls = rows_of_kind(trace, Kind.RUNTIME, Kind.DRIVER)
    has_device_work = len(rows_of_kind(trace, *DEVICE_KINDS)) > 0
    if not has_device_work and len(calls):
        return "the profiler didn't record the device"
    if has_device_work and missing_kernels_reason(trace) is not None:
        return "the profiler didn't record the kernels"
    if missing_copies_reason(trace) is not None:
        return "the profiler didn't record the copies, so a device may be copying where it looks idle"
    return None
