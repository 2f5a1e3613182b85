"""What following an advice can gain at most: the only place that says so.

Where the schedule explains the trace, it is replayed without what the advice takes away; else the gain is the
share of the step that this takes and in which nothing else passes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from torch_tb_profiler.analyses.overview.finding import Finding, Gain
from torch_tb_profiler.analyses.overview.idle import device_busy, step_windows
from torch_tb_profiler.analyses.schedule.step_spans import recorded_spans
from torch_tb_profiler.analyses.schedule.what_if import (
    WhatIfTarget,
    device_work_target,
    host_time_target,
    merge_targets,
    parse_target,
    removed_calls_target,
    replay_unavailable_reason,
    step_times_without,
    sync_names,
)
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.base.intervals import covered_time, intersect, merge, subtract
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.communication.events import is_communication_kernel
from torch_tb_profiler.model.kinds import Kind, event_ends, rows_of_kind
from torch_tb_profiler.model.schedule.schedule import schedule
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Int32, Trace

WAITING_NS = 20_000
"""A runtime call that lasts longer while the device works waits for it: it blocks, or the queue is full."""


def measured(trace: Trace, findings: Sequence[Finding]) -> list[Gain]:
    """Of each finding the share alone, which needs no schedule."""
    return [Gain(share, share, "share") for share in (_share(trace, finding) for finding in findings)]


def gains(trace: Trace, findings: Sequence[Finding]) -> list[Gain]:
    """Of each finding."""
    shares = measured(trace, findings)
    replayed = replay_unavailable_reason(trace) is None
    parts = [_part(trace, finding) if replayed else None for finding in findings]
    cases = [part for part in parts if part is not None]
    now = recorded_spans(trace).mean_ns[0] if cases else 0
    times = iter((now - step_times_without(trace, cases)).tolist() if cases else ())
    return [
        share if part is None else Gain(float(next(times)), share.measured_ns, "what_if")
        for share, part in zip(shares, parts, strict=True)
    ]


def _part(trace: Trace, finding: Finding) -> WhatIfTarget | None:
    """What following the advice takes out of the schedule; None if that is not in it, such as another process."""
    match finding.id:
        case "data_loading" | "allocator":
            part = _named(trace, finding.id)
        case "start_up" | "host_code" | "launch_bound":
            part = host_time_target(trace, finding.during)
        case "synchronization":
            part = _waits(trace, finding.rows)
        case "pageable_copies":
            links = device_links(trace)
            calls = links.launch[np.isin(links.rows, finding.rows) & (links.launch >= 0)]
            part = merge_targets(
                [device_work_target(trace, finding.rows, finding.during), removed_calls_target(trace, calls)]
            )
        case "communication" | "late_rank":
            part = device_work_target(
                trace, np.flatnonzero(is_communication_kernel(trace)).astype(np.int32), finding.during
            )
        case "optimizer_loop" if not finding.on_device:
            part = host_time_target(trace, finding.during)
        case (
            "mixed_precision"
            | "layout_conversion"
            | "slow_products"
            | "unfused_attention"
            | "elementwise_chains"
            | "optimizer_loop"
        ):
            part = device_work_target(trace, finding.rows, finding.during)
        case _:
            return None
    if part is None or not (part.host.any() or part.device.any() or part.edges.any()):
        return None
    return part


def _named(trace: Trace, spelled: str) -> WhatIfTarget | None:
    try:
        return parse_target(trace, spelled)
    except NotFoundError:
        return None


def _waits(trace: Trace, calls: Int32) -> WhatIfTarget | None:
    """All waits in the operators in which these calls are, as the Critical path names them."""
    names = sync_names(trace)[np.isin(schedule(trace).edges.call, calls)]
    targets = [_named(trace, f"sync:{trace.strings[code]}") for code in np.unique(names[names >= 0]).tolist()]
    known = [each for each in targets if each is not None]
    return merge_targets(known) if known else None


def _share(trace: Trace, finding: Finding) -> float:
    """Mean ns per complete step: the time that would go and in which nothing else passes.

    Less work of the device shortens a step by no more than the host waits for the device: a host that launches
    without ever waiting takes as long as before.
    """
    spans = steps(trace)
    kept = spans.complete
    alone = subtract(finding.during, finding.passes)
    mean = float(covered_time(alone, spans.starts[kept], spans.ends[kept]).sum()) / int(kept.sum())
    waits = _host_waits(trace) if finding.on_device else None
    return mean if waits is None else min(mean, waits)


@derived
def _host_waits(trace: Trace) -> float | None:
    """Mean ns per complete step in which the host waits for the device; None without recorded calls."""
    calls = rows_of_kind(trace, Kind.RUNTIME, Kind.DRIVER)
    if len(calls) == 0:
        return None
    long = calls[trace.events.duration[calls] >= WAITING_NS]
    blocked = intersect(merge(trace.events.start[long], event_ends(trace)[long]), device_busy(trace))
    windows = step_windows(trace)
    inside = int(covered_time(blocked, windows.starts, windows.ends).sum())
    return (inside + _tail(trace, int(event_ends(trace)[calls].max()))) / int(steps(trace).complete.sum())


def _tail(trace: Trace, last_call: int) -> int:
    """ns by which the device outlasts the host after the last complete step."""
    spans = steps(trace)
    last = int(np.flatnonzero(spans.complete)[-1])
    host = int(spans.host_ends[last]) if spans.recorded else last_call
    return max(0, int(spans.ends[last]) - host)
