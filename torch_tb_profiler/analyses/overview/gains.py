"""How much following an advice saves, at most. Nothing else estimates that.

Where the schedule explains the trace, it is replayed without what the advice removes; else the gain is the time of
the step that this takes while nothing else runs, or all time that the host is in code that it names.

A host that waits for the device in each step takes its time until then, in some steps more than in others: what
less device work saves is bounded by the step in which it takes least, not by the average one.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from torch_tb_profiler.analyses.overview.communication_rules import (
    launches_of_collectives,
    times_beyond_one_bucket,
)
from torch_tb_profiler.analyses.overview.finding import (
    ADVICE_ON_WAITS,
    MIN_GAIN_SHARE,
    NO_ROWS,
    WITHOUT_LIMIT,
    Finding,
    Gain,
)
from torch_tb_profiler.analyses.overview.host_calls import copying_calls, synchronizing_calls
from torch_tb_profiler.analyses.overview.idle import (
    LONG_STRETCH_NS,
    caused_by_calls,
    device_busy,
    host_late_times,
    long_stretches,
    short_stretches,
)
from torch_tb_profiler.analyses.overview.kernel_rules.excess import other_device_work
from torch_tb_profiler.analyses.overview.kernel_rules.optimizer import (
    gaps_between,
    optimizer_steps,
    optimizer_times,
    times_beyond_one_pass,
)
from torch_tb_profiler.analyses.overview.removed_waits import most_saved_without_waits
from torch_tb_profiler.analyses.schedule.causes import unrecorded_host_times
from torch_tb_profiler.analyses.schedule.step_spans import mean_saving, most_saved_on_host, recorded_spans
from torch_tb_profiler.analyses.schedule.what_if import (
    UNNAMED_TARGETS,
    WhatIfTarget,
    device_work_target,
    host_time_target,
    merge_targets,
    parse_target,
    removed_calls_target,
    replay_unavailable_reason,
    replayed_durations,
    savings_in_a_row,
    sync_names,
)
from torch_tb_profiler.analyses.shared.typical_steps import step_kinds, typical_bounds, typical_windows
from torch_tb_profiler.base.arrays import distinct
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.base.intervals import (
    NO_INTERVALS,
    Intervals,
    covered_time,
    intersect,
    subtract,
    total,
    union,
)
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.calls.calltree import enclosing_operators, enclosing_rows
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.communication.events import communication_kernels
from torch_tb_profiler.model.kinds import Kind, event_ends, event_intervals, event_kinds, rows_of_kind, slice_mask
from torch_tb_profiler.model.schedule.schedule import schedule
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Bool, Float64, Int32, Trace, name_mask, rows_mask

MIN_BLOCKING_NS = 20_000
"""A runtime call that lasts longer while the device works is waiting for it: it blocks, or the queue is full."""

_SHORTENED_WORK = frozenset(
    {
        *("mixed_precision", "layout_conversion", "slow_products", "unfused_attention", "elementwise_chains"),
        *("pinned_copies", "exposed_copies", "contention"),
    }
)
"""Rules whose advice shortens the device work that they find; some of it saves time of the host, too."""

COPYING_OPERATORS = frozenset({"aten::to", "aten::_to_copy", "aten::copy_"})
"""Operators that do nothing but copy, of which each may call the next one."""


def measure_gains(trace: Trace, findings: Sequence[Finding]) -> list[Gain]:
    """Return the measured gain of each finding, which needs no schedule."""
    return _measure_gains(trace, findings, _find_synced_time(findings))


def _measure_gains(trace: Trace, findings: Sequence[Finding], synced: Intervals) -> list[Gain]:
    """Return the measured gains of some of the findings; `synced`: `_find_synced_time` of all of them."""
    times = [
        max(_measured_ns(trace, finding), _mean_ns(trace, _find_idle_in_code(trace, finding, synced)))
        for finding in findings
    ]
    return [
        Gain(
            min(_bound_measured_gain(trace, finding, time, synced), _bound_overlap_gain(trace, finding)),
            time,
            "share",
        )
        for finding, time in zip(findings, times, strict=True)
    ]


def _find_synced_time(findings: Sequence[Finding]) -> Intervals:
    """Return when the device waits after a sync, or a copy that the host waits for, has let its queue run empty.

    Without the code that the host is in then, that time is saved all the same.
    """
    return union(*(finding.during for finding in findings if finding.id in ADVICE_ON_WAITS))


def _find_idle_in_code(trace: Trace, finding: Finding, synced: Intervals) -> Intervals:
    """Return when the device is idle at a stretch while the host is in some code.

    That includes the time after a sync, which is advised on by itself: both are true of it.
    """
    if finding.id != "host_code" or finding.event is None or finding.case == "alone":
        return NO_INTERVALS
    stretches = long_stretches(subtract(host_late_times(trace), subtract(finding.passes, synced)))
    return intersect(_time_in_code(trace, finding), stretches)


def _mean_ns(trace: Trace, during: Intervals) -> float:
    """Return the mean ns of this time in a typical step."""
    windows, count = typical_windows(trace), int(step_kinds(trace).typical.sum())
    return float(covered_time(during, windows.starts, windows.ends).sum()) / max(count, 1)


def _bound_measured_gain(trace: Trace, finding: Finding, alone: float, synced: Intervals) -> float:
    """Return what the advice saves at most, mean ns per typical step; `alone`: of it, while nothing else runs.

    Code on the host may also delay what follows while the device works or waits for other ranks. What earlier
    advice removes of it counts there; `synced`: see `_find_synced_time`.
    """
    if finding.id == "synchronization":
        return max(alone, most_saved_without_waits(trace, synchronizing_calls(trace)))
    if finding.id == "blocking_copies":  # the copies themselves may be done beside other work, too
        copies = _mean_ns(trace, subtract(event_intervals(trace, finding.rows), finding.passes))
        return max(alone, copies + most_saved_without_waits(trace, copying_calls(trace).calls))
    waits = _measure_host_waits(trace) if _needs_waiting_host(finding) else None
    if waits is not None:
        most = waits.max() if _waits_in_each_step(trace) else waits.mean()
        return min(_alone_ns(trace, finding), float(most))
    if finding.id == "pageable_copies":
        return alone + _bound_gain_around_copies(trace, finding, alone)
    if finding.id == "small_collectives":
        return _measured_ns(trace, msgspec.structs.replace(finding, during=times_beyond_one_bucket(trace)))
    if finding.id == "optimizer_loop":
        return max(alone, _bound_one_pass_gain(trace, finding))
    if finding.id not in ("host_code", "short_code"):
        return alone
    in_code = _mean_ns(trace, _own_code(trace, finding, synced))
    return max(alone, min(in_code, most_saved_on_host(trace)))


def _bound_one_pass_gain(trace: Trace, finding: Finding) -> float:
    """Return what one kernel for all parameters saves at most: time of the optimizer on the host or on a device.

    Either is on the critical path at each instant of it, if any is; and all but the busiest stream is on the host.
    """
    slow = times_beyond_one_pass(trace, finding.rows)
    slow = subtract(union(slow, gaps_between(trace, finding.rows)), other_device_work(trace, finding.rows))
    either = _mean_ns(trace, union(optimizer_times(trace), slow))
    return min(either, most_saved_on_host(trace) + _mean_ns(trace, slow))


def _own_code(trace: Trace, finding: Finding, synced: Intervals) -> Intervals:
    """Return when the host is in the code of a finding, without earlier advice on idle time but that on syncs."""
    return subtract(_time_in_code(trace, finding), subtract(finding.passes, union(device_busy(trace), synced)))


def estimate_gains(
    trace: Trace, findings: Sequence[Finding], measured: Sequence[Gain] = (), least: float = 0.0
) -> list[Gain]:
    """Return the gain of each finding, replayed where the schedule allows it.

    measured  `measure_gains` of the first findings, if it is known; none of the others is advice on waits
    least     ns per step, less than which isn't worth naming: what saves less in any case isn't replayed
    """
    can_replay = replay_unavailable_reason(trace) is None
    synced = _find_synced_time(findings)
    gains = [*measured, *_measure_gains(trace, findings[len(measured) :], synced)]
    targets: list[WhatIfTarget | None] = []
    for number, finding in enumerate(findings):
        limit = _bound_replayed_gain(trace, finding) if can_replay else np.inf
        is_worth_it = limit >= least and (gains[number].measured_ns > 0 or not least)
        if not is_worth_it:
            gains[number] = msgspec.structs.replace(gains[number], ns=min(gains[number].ns, limit))
        targets.append(_build_removed_target(trace, finding, synced) if can_replay and is_worth_it else None)
    cases = [target for target in targets if target is not None]
    savings = iter(_replay_savings_by_step(trace, cases))
    in_a_row = _savings_in_a_row(trace, findings, targets)
    most = most_saved_on_host(trace)
    found = []
    for number, (finding, gain, target) in enumerate(zip(findings, gains, targets, strict=True)):
        if target is None:
            found.append(gain)
            continue
        saved = next(savings)
        ns = mean_saving(trace, saved)
        if number in in_a_row:
            ns = max(ns, mean_saving(trace, in_a_row[number]))
        if finding.on_device and not target.edges.any() and finding.id not in UNNAMED_TARGETS:
            if _waits_in_each_step(trace):
                ns = max(ns, float(saved.max()))
            if not target.host.any():
                ns = min(ns, _mean_ns(trace, finding.during))  # the same as `_bound_replayed_gain`
        if not target.device.any():
            ns = min(ns, most)
        ns = min(ns + _bound_gain_around_copies(trace, finding, ns), _bound_overlap_gain(trace, finding))
        if len(finding.host.starts) and _waits_in_each_step(trace) and gain.ns > ns:
            found.append(gain)  # what the host does beside takes no longer than the device
            continue
        found.append(Gain(ns, gain.measured_ns, "what_if"))
    return found


def _bound_replayed_gain(trace: Trace, finding: Finding) -> float:
    """Return what a replay says at most that the advice saves, where that is known before."""
    if finding.id in _SHORTENED_WORK and finding.on_device and len(finding.host.starts) == 0:
        return _mean_ns(trace, finding.during)
    return np.inf


def _bound_overlap_gain(trace: Trace, finding: Finding) -> float:
    """Return what copies on a stream of their own save at most: a step still takes as long as they do."""
    if finding.id not in ("pinned_copies", "blocking_copies"):
        return np.inf
    windows, count = typical_windows(trace), int(step_kinds(trace).typical.sum())
    copying = covered_time(event_intervals(trace, finding.rows), windows.starts, windows.ends)
    return float((windows.ends - windows.starts - copying).sum()) / max(count, 1)


def later_steps_ns(trace: Trace) -> float:
    """Return ns of the mean complete step after the first, odd ones included, 0 without any."""
    spans = steps(trace)
    later = np.flatnonzero(spans.complete)[1:]
    return float((spans.ends - spans.starts)[later].mean()) if len(later) else 0.0


def _replay_savings_by_step(trace: Trace, cases: Sequence[WhatIfTarget]) -> Float64:
    """Return what removing each of these saves in each typical step, float64[cases, typical steps] ns."""
    recorded = recorded_spans(trace)
    if not cases:
        return np.empty((0, int(recorded.typical.sum())))
    then = replayed_durations(trace, [(case, 100) for case in cases])
    saved: Float64 = (recorded.durations - then)[:, recorded.typical].astype(np.float64)
    return saved


def _savings_in_a_row(
    trace: Trace, findings: Sequence[Finding], targets: Sequence[WhatIfTarget | None]
) -> dict[int, Float64]:
    """Return what each finding's waits cost each typical step if no odd one is between them, by its number."""
    ahead = {
        number: target
        for number, (finding, target) in enumerate(zip(findings, targets, strict=True))
        if target is not None and target.edges.any() and finding.id not in WITHOUT_LIMIT
    }
    saved = savings_in_a_row(trace, list(ahead.values()))
    return {} if saved is None else dict(zip(ahead, saved, strict=True))


def _build_removed_target(trace: Trace, finding: Finding, synced: Intervals) -> WhatIfTarget | None:
    """Return what the advice removes from the schedule; None if it isn't in it, such as another process.

    synced  see `_find_synced_time`
    """
    match finding.id:
        case "data_loading" if finding.of_all_steps:
            return None  # a replay knows the typical steps
        case "data_loading" | "allocator":
            target = _parse_known_target(trace, finding.id)
        case "host_code":
            # What follows the time that a sync costs may be short by itself, but is part of a stretch.
            idle = _find_idle_in_code(trace, finding, synced)
            after_syncs = intersect(synced, _time_in_code(trace, finding))
            target = host_time_target(trace, union(finding.during, idle, after_syncs))
        case "short_code":
            target = host_time_target(trace, _own_code(trace, finding, synced))
        case "start_up" | "launch_bound":
            target = host_time_target(trace, finding.during)
        case "unrecorded_code":  # it begins before the device has nothing left to do
            target = host_time_target(trace, union(finding.during, _find_unrecorded_around(trace, finding.during)))
        case "synchronization":
            target = _sync_target(trace, finding.rows)
        case "blocking_copies":
            waits = np.isin(schedule(trace).edges.call, copying_calls(trace).calls)
            parts = [device_work_target(trace, finding.rows, finding.during), _build_waits_target(trace, waits)]
            target = merge_targets([part for part in parts if part is not None])
        case "pageable_copies":
            calls = _find_calls_of_copies(trace, finding.rows)
            target = merge_targets(
                [device_work_target(trace, finding.rows, finding.during), removed_calls_target(trace, calls)]
            )
        case "pipeline_waits":
            target = device_work_target(trace, finding.rows, finding.during)
        case "communication" | "late_rank":
            target = device_work_target(trace, communication_kernels(trace), finding.during)
        case "small_collectives":  # the host launches one
            beyond = times_beyond_one_bucket(trace)
            launching = host_time_target(trace, launches_of_collectives(trace, host_late_times(trace)))
            target = merge_targets([device_work_target(trace, communication_kernels(trace), beyond), launching])
        case "optimizer_loop":
            slow = times_beyond_one_pass(trace, finding.rows)
            kernels = device_work_target(trace, finding.rows, slow, optimizer_steps(trace, finding.rows))
            target = merge_targets([kernels, host_time_target(trace, optimizer_times(trace))])
        case rule if rule in _SHORTENED_WORK:
            target = device_work_target(trace, finding.rows, finding.during)
            if len(finding.host.starts):
                target = merge_targets([target, host_time_target(trace, finding.host)])
        case _:
            return None
    if target is None or not (target.host.any() or target.device.any() or target.edges.any()):
        return None
    return target


def _find_unrecorded_around(trace: Trace, during: Intervals) -> Intervals:
    """Return the stretches of over a millisecond without a record of the host, in which `during` lies."""
    begin, end = unrecorded_host_times(trace, LONG_STRETCH_NS)
    touches = covered_time(during, begin, end) > 0
    return Intervals(begin[touches], end[touches])


def _find_calls_of_copies(trace: Trace, copies: Int32) -> Int32:
    """Return the calls that launch these copies, and those that wait for them in the same operators.

    PyTorch waits in `aten::copy_` for what it copies from memory that isn't pinned, and doesn't if it is.
    """
    links = device_links(trace)
    mine = np.isin(links.rows, copies)
    launches, operators = links.launch[mine], links.operator[mine]
    waits = copying_calls(trace).calls
    around = enclosing_operators(trace)[waits]
    waits = waits[(around >= 0) & np.isin(around, operators)]
    return distinct(np.concatenate([launches[launches >= 0], waits])).astype(np.int32)


def _bound_gain_around_copies(trace: Trace, finding: Finding, saved: float) -> float:
    """Return what copying a batch ahead saves at most beyond the copies, mean ns per typical step.

    That is when the host is in operators that copy, or launches what follows: all of that may run while the device
    computes. A copy by the host leaves its caches cold, so that the next launch takes longer than it does without.

    saved  without that; if it is too little to be named, this changes nothing about it
    """
    windows = typical_windows(trace)
    if finding.id != "pageable_copies" or saved * len(windows.starts) < MIN_GAIN_SHARE * total(windows):
        return 0.0
    rows = rows_of_kind(trace, Kind.CPU_OP)
    rows = rows[name_mask(trace.strings, COPYING_OPERATORS.__contains__)[trace.events.name[rows]]]
    around = enclosing_rows(trace, rows_mask(trace, rows))
    calls = operators = _find_calls_of_copies(trace, finding.rows)
    while (around[operators] >= 0).any():
        operators = np.where(around[operators] >= 0, around[operators], operators)
    operators = distinct(operators).astype(np.int32)
    launching, _ = caused_by_calls(
        short_stretches(host_late_times(trace)), trace.events.start[operators], event_ends(trace)[operators]
    )
    busy = union(device_busy(trace), event_intervals(trace, calls))
    return _mean_ns(trace, subtract(union(event_intervals(trace, operators), launching), busy))


def _time_in_code(trace: Trace, finding: Finding) -> Intervals:
    """Return when the host is in the code that a finding names."""
    if finding.event is None:
        return finding.during
    return _time_in_slices_like(trace, finding.event)


@derived
def _time_in_slices_like(trace: Trace, event: int) -> Intervals:
    """Return when any slice runs with the name and the kind of an event."""
    rows = np.flatnonzero(trace.events.name == trace.events.name[event]).astype(np.int32)
    same = (event_kinds(trace)[rows] == event_kinds(trace)[event]) & slice_mask(trace)[rows]
    return event_intervals(trace, rows[same])


def _parse_known_target(trace: Trace, spelled: str) -> WhatIfTarget | None:
    try:
        return parse_target(trace, spelled)
    except NotFoundError:
        return None


def _sync_target(trace: Trace, calls: Int32) -> WhatIfTarget | None:
    """Return all waits in the operators around these calls, as the Critical path names them.

    Waits for copies, which other advice is about, are none of them.
    """
    names, waits = sync_names(trace), schedule(trace).edges.call
    named = distinct(names[np.isin(waits, calls)])
    return _build_waits_target(
        trace, np.isin(names, named[named >= 0]) & ~np.isin(waits, copying_calls(trace).calls)
    )


def _build_waits_target(trace: Trace, edges: Bool) -> WhatIfTarget | None:
    """Return these waits for the device as a target, None if there are none."""
    nothing = device_work_target(trace, NO_ROWS, NO_INTERVALS)
    return msgspec.structs.replace(nothing, edges=edges) if edges.any() else None


def _measured_ns(trace: Trace, finding: Finding) -> float:
    """Return the time that the advice removes while nothing else runs, mean ns per typical step.

    Less device work shortens a step by no more than the host waits for the device: a host that launches without
    ever waiting takes as long as before.
    """
    alone = _alone_ns(trace, finding)
    waits = _measure_host_waits(trace) if _needs_waiting_host(finding) else None
    return alone if waits is None else min(alone, float(waits.mean()))


@derived
def _waits_in_each_step(trace: Trace) -> bool:
    """Return whether the device is done when the host ends a step: none takes time that another one saves."""
    spans, typical = steps(trace), step_kinds(trace).typical
    return spans.recorded and bool((spans.ends <= spans.host_ends)[typical].all())


def _needs_waiting_host(finding: Finding) -> bool:
    """Return whether the advice shortens work on a device, and nothing on the host."""
    return finding.on_device and len(finding.host.starts) == 0


def _alone_ns(trace: Trace, finding: Finding) -> float:
    """Return the time that the advice is about while nothing else runs, mean ns per typical step."""
    goes = finding.during
    if len(finding.host.starts):
        goes = union(goes, subtract(finding.host, device_busy(trace)))
    alone = subtract(goes, finding.passes)
    if finding.of_all_steps:
        return total(alone) / max(int(steps(trace).complete.sum()) - 1, 1)
    return _mean_ns(trace, alone)


@derived
def _measure_host_waits(trace: Trace) -> Float64 | None:
    """Return how long the host waits for the device in each typical step, float64[k] ns; None without calls.

    What the device does after the host's last step is waited for in all steps alike.
    """
    calls = rows_of_kind(trace, Kind.RUNTIME, Kind.DRIVER)
    if len(calls) == 0:
        return None
    long = calls[trace.events.duration.take(calls) >= MIN_BLOCKING_NS]
    blocked = intersect(event_intervals(trace, long), device_busy(trace))
    starts, ends = typical_bounds(trace)
    tail = _device_tail_ns(trace, int(event_ends(trace).take(calls).max()))
    inside = covered_time(blocked, starts, ends).astype(np.float64)
    waits: Float64 = inside + tail / max(len(starts), 1)
    return waits


def _device_tail_ns(trace: Trace, last_call: int) -> int:
    """Return the ns by which the device outlasts the host after the last complete step."""
    spans = steps(trace)
    last = int(np.flatnonzero(spans.complete)[-1])
    host = int(spans.host_ends[last]) if spans.recorded else last_call
    return max(0, int(spans.ends[last]) - host)
