"""What-if: the parts of a program that can be made faster, and how long a step takes then.

A target is written `kind` or `kind:name`: operator:aten::mul, module:Linear_0, line:train.py(12): step,
call:cudaLaunchKernel, kernel:<name>, collective:all_reduce, sync:aten::item, data_loading, allocator, wait,
communication, host, device.

The recorded schedule is replayed with a share of the target's time removed: from the host's time between points
(only where the host works, not where it waits), and from the duration of device items. A removed wait holds nobody
up; waits are removed at 100 % only. The time of all steps together is convex and piecewise linear in the percent,
so a few points draw the whole curve. Steps are the typical ones: those of a replay are the same as recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import Any

import msgspec
import numpy as np

from torch_tb_profiler.analyses.schedule.causes import Cause, slice_causes
from torch_tb_profiler.analyses.schedule.step_spans import (
    most_saved_by_host,
    recorded_spans,
    step_items,
    step_spans,
)
from torch_tb_profiler.analyses.shared.grouping import stable_order
from torch_tb_profiler.analyses.shared.typical_steps import step_kinds
from torch_tb_profiler.base.arrays import distinct, search_sorted, sums_by_number
from torch_tb_profiler.base.errors import NotFoundError, UsageError
from torch_tb_profiler.base.format import format_ratio
from torch_tb_profiler.base.intervals import Intervals, covered_time, covered_time_between, merge
from torch_tb_profiler.base.markers import MODULE_PREFIX
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.calls.calltree import enclosing_operators
from torch_tb_profiler.model.calls.missing import missing_kernels_reason
from torch_tb_profiler.model.communication.events import collective_from_kernel, is_communication_kernel
from torch_tb_profiler.model.kinds import Kind, event_kinds, event_spans, rows_of_kind
from torch_tb_profiler.model.schedule.blocking import WaitKind
from torch_tb_profiler.model.schedule.compiled import ThreadTimes, schedule_functions
from torch_tb_profiler.model.schedule.replay import replay
from torch_tb_profiler.model.schedule.schedule import MIN_EXPLAINED_SHARE, Schedule, schedule
from torch_tb_profiler.model.steps import step_noun, steps
from torch_tb_profiler.model.trace import NO_CODE, Bool, Float64, Int32, Int64, Trace, name_mask, rows_mask

UNNAMED_TARGETS = ("data_loading", "allocator", "wait", "communication", "host", "device")
"""Targets without a name."""

NAMED_TARGET_KINDS = ("operator", "module", "line", "call", "kernel", "collective", "sync")
"""Kinds of targets that need a name."""

REDUCTION_PERCENTS = (0, 25, 50, 75, 100)
"""Percent of a target's time that is removed at the points of a curve."""

_MAX_BATCH_CELLS = 1_000_000
"""Times computed in one batch of replays, which limits its memory; each batch goes through the whole graph."""

_MAX_TABLE_CELLS, _MIN_CURVES, _MAX_CURVES = 4_000_000, 6, 60
"""Times computed for all curves of a table, and the number of curves it has in any case and at most."""


class WhatIfTarget(msgspec.Struct, frozen=True):
    """A part of the program, in terms of the schedule (p points, n items, a host edges).

    rows   int32[k]  its host slices; a slice inside another counts once
    host   int64[p]  ns of it between each point and the point before
    items  bool[n]   its items
    device int64[n]  ns of it in each item; 0 in items of others
    edges  bool[a]   its waits for the device
    """

    rows: Int32
    host: Int64
    items: Bool
    device: Int64
    edges: Bool


def replay_unavailable_reason(trace: Trace) -> str | None:
    """Return why a replay can't estimate what a change would save, or None if it can."""
    graph = schedule(trace)
    if graph.explained_share is None:
        return "no device work is recorded"
    if missing_kernels_reason(trace) is not None:
        return "kernels are missing from the recording"
    if len(graph.step_begin) == 0 or not (graph.items.call >= 0).any():
        return "no launch is recorded"
    if graph.is_reliable:
        return None
    share = f"only {format_ratio(graph.explained_share)}" if graph.explained_share else "none"
    required = format_ratio(MIN_EXPLAINED_SHARE)
    return (
        f"the recorded launches and syncs explain the start of {share} of "
        f"{explained_work(steps(trace).recorded, step_noun(trace))} (at least {required} is needed)"
    )


def explained_work(recorded: bool, noun: str) -> str:
    """Return what `Schedule.explained_share` is a share of, in a sentence."""
    return f"the device work in complete {noun}s" if recorded else "the device work"


def what_if_step_time(trace: Trace, target: str, percent: int) -> int:
    """Return ns of the mean typical step if `percent` of a target's time is removed (negative: added)."""
    return int(_replayed_step_times(trace, [(parse_target(trace, target), percent)])[0])


@derived
def what_if_curves(trace: Trace, targets: tuple[str, ...]) -> Int64:
    """Return ns of the mean typical step at each of REDUCTION_PERCENTS: int64[targets, percents]."""
    parts = [parse_target(trace, target) for target in targets]
    cases = [(part, percent) for part in parts for percent in REDUCTION_PERCENTS[1:]]
    times = _replayed_step_times(trace, cases).reshape(len(targets), len(REDUCTION_PERCENTS) - 1)
    now = np.full((len(targets), 1), recorded_spans(trace).mean_ns[0])
    # Less work ends no step later, but the step before it may end even earlier: then the difference can rise.
    curves: Int64 = np.minimum.accumulate(np.concatenate([now, times], axis=1), axis=1)
    return curves


def step_times_without(trace: Trace, parts: Sequence[WhatIfTarget]) -> Int64:
    """Return ns of the mean typical step without each of these parts: int64[k]."""
    return _replayed_step_times(trace, [(part, 100) for part in parts])


def savings_in_steps(trace: Trace, parts: Sequence[WhatIfTarget], counted: Bool) -> list[int]:
    """Return by how many ns removing each of these parts would shorten the `counted` complete steps together."""
    if not parts:
        return []
    now = recorded_spans(trace).durations[:, counted].sum()
    then = replayed_durations(trace, [(part, 100) for part in parts])[:, counted].sum(axis=1)
    saved: list[int] = np.maximum(now - then, 0).tolist()
    return saved


def max_curves(trace: Trace) -> int:
    """Return for how many targets a table computes curves: fewer for larger traces."""
    graph = schedule(trace)
    nodes = len(graph.points) + len(graph.items)
    return int(
        np.clip(_MAX_TABLE_CELLS // max((len(REDUCTION_PERCENTS) - 1) * nodes, 1), _MIN_CURVES, _MAX_CURVES)
    )


def parse_target(trace: Trace, target: str) -> WhatIfTarget:
    """Return the part of a trace that `target` names.

    Raise UsageError if it can't be parsed, NotFoundError if the trace has nothing of it. The result isn't cached:
    its columns are as long as the schedule, and there are as many targets as names.
    """
    kind, _, name = target.partition(":")
    if kind not in (UNNAMED_TARGETS if not name else NAMED_TARGET_KINDS):
        options = ", ".join([*UNNAMED_TARGETS, *(f"{each}:NAME" for each in NAMED_TARGET_KINDS)])
        raise UsageError(f"{target!r} is not a what-if target", hint=f"one of {options}")
    graph = schedule(trace)
    if kind == "host":
        return _target_of(trace, host=graph.points.elapsed)
    if kind in ("device", "communication", "kernel", "collective"):
        items = _items_of_target(trace, kind, name)
        if items.any():
            return _target_of(trace, items=items, device=_item_lengths(trace) * items)
    elif kind == "sync":
        edges = (graph.edges.call >= 0) & (sync_names(trace) == string_code(trace, name))
        if edges.any():
            return _target_of(trace, edges=edges)
    else:
        rows = _slices_of_target(trace, kind, name)
        if len(rows):
            host = _host_time_between_points(trace, slices_by_start(trace, target))
            # Without the calls that free memory nothing waits for the device, as they do.
            edges = np.isin(graph.edges.call, rows if kind == "allocator" else ())
            return _target_of(trace, rows=rows, host=host, edges=edges)
    raise NotFoundError(f"the trace has no {target!r}")


def host_time_target(trace: Trace, during: Intervals) -> WhatIfTarget:
    """Return the time of every host thread in these intervals, on the host's clock, as a target."""
    graph = schedule(trace)
    host = np.zeros(len(graph.points), np.int64)
    for code in graph.points.threads.tolist():
        _fill_covered_times(trace, host, code, during)
    return _target_of(trace, host=host)


def host_time_targets(
    trace: Trace, during: Intervals, part: Int32, parts: Sequence[Sequence[int]]
) -> list[WhatIfTarget]:
    """Return the time of every host thread in some of these intervals, on the host's clock, as targets.

    The intervals ascend and don't overlap; `part` numbers those in any target, and a target consists of those of
    some numbers. NO_CODE is the number of all others.
    Each interval is looked at once per thread, however many targets there are.
    """
    points, count = (
        schedule(trace).points,
        max((number for numbers in parts for number in numbers), default=-1) + 1,
    )
    time = np.zeros((count + 1, len(points)), np.int64)  # the last row is that of intervals in no target
    if (functions := schedule_functions()) is not None:
        for low, high in pairwise(points.bounds.tolist()):
            functions.during(points.time[low:high], *during, part, time[:, low:high])
        return [_target_of(trace, host=time[list(numbers)].sum(axis=0)) for numbers in parts]
    part = np.where(part >= 0, part, count)
    for low, high in pairwise(points.bounds.tolist()):
        times = points.time[low:high]
        started = search_sorted(during.starts, times, "right")
        inside = slice(int(started[0]), int(started[-1]))
        # An interval counts where it starts; what reaches beyond the next point is moved on.
        cell = np.repeat(np.arange(1, len(times)), np.diff(started))
        lengths = during.ends[inside] - during.starts[inside]
        sums = sums_by_number(part[inside] * len(times) + cell, lengths, time.shape[0] * len(times))
        of_thread = sums.reshape(time.shape[0], len(times))
        last = np.maximum(started - 1, 0)
        beyond = np.where(started > 0, np.maximum(during.ends[last] - times, 0), 0)
        at = np.arange(len(times))
        of_thread[part[last], at] -= beyond
        of_thread[part[last[:-1]], at[1:]] += beyond[:-1]
        time[:, low + 1 : high] = of_thread[:, 1:]
    return [_target_of(trace, host=time[list(numbers)].sum(axis=0)) for numbers in parts]


def device_work_target(trace: Trace, rows: Int32, during: Intervals, part: Int64 | None = None) -> WhatIfTarget:
    """Return the part of this device work in these intervals, on the device's own clock, as a target.

    part  int64[k]: one piece of work does what rows of one number do, without the gaps between them
    """
    graph = schedule(trace)
    items = rows_mask(trace, rows)[graph.items.row]
    device = np.zeros(len(items), np.int64)
    mine = graph.items.row[items]
    device[items] = covered_time(during, *event_spans(trace, mine))
    if part is not None:
        number = np.full(len(trace), NO_CODE, np.int64)
        number[rows] = part
        number = number[graph.items.row]
        joins = items[1:] & (number[1:] == number[:-1]) & (np.diff(graph.items.queue) == 0)
        device[:-1][joins] += graph.gap[1:][joins]
    return _target_of(trace, items=items, device=device)


def removed_calls_target(trace: Trace, calls: Int32) -> WhatIfTarget:
    """Return these calls and their waits for the device as a target."""
    edges = np.isin(schedule(trace).edges.call, calls)
    return _target_of(trace, rows=calls, host=_host_time_between_points(trace, calls), edges=edges)


def odd_steps_target(trace: Trace) -> WhatIfTarget | None:
    """Return all that odd steps between typical ones do: without it, those are in a row. None if there is none."""
    typical, spans = recorded_spans(trace).typical, steps(trace)
    odd = np.flatnonzero(
        step_kinds(trace).odd[: len(typical)]
        & np.logical_or.accumulate(typical)
        & np.logical_or.accumulate(typical[::-1])[::-1]
    )
    if len(odd) == 0:
        return None
    launched = step_items(trace)
    items = np.zeros(len(schedule(trace).items), np.bool_)
    for step in odd.tolist():
        items[launched.order[launched.bounds[step] : launched.bounds[step + 1]]] = True
    host = host_time_target(trace, merge(spans.host_starts[odd], spans.host_ends[odd]))
    return msgspec.structs.replace(host, items=items, device=_item_lengths(trace) * items)


def merge_targets(targets: Sequence[WhatIfTarget]) -> WhatIfTarget:
    """Merge targets into one; time that several of them cover counts once."""
    return WhatIfTarget(
        rows=distinct(np.concatenate([each.rows for each in targets])),
        host=np.maximum.reduce([each.host for each in targets]),
        items=np.logical_or.reduce([each.items for each in targets]),
        device=np.maximum.reduce([each.device for each in targets]),
        edges=np.logical_or.reduce([each.edges for each in targets]),
    )


def string_code(trace: Trace, name: str) -> int:
    """Return the code of a string, or -2, which no event has, if the trace doesn't contain it."""
    return _string_codes(trace).get(name, -2)


@derived
def _string_codes(trace: Trace) -> dict[str, int]:
    return {text: code for code, text in reversed(tuple(enumerate(trace.strings)))}


@derived
def sync_names(trace: Trace) -> Int32:
    """Return the name of each wait for the device: the operator around its call, or else the call. int32[a]."""
    graph = schedule(trace)
    call = graph.edges.call
    around = enclosing_operators(trace)[call]
    row = np.where((around >= 0) & (event_kinds(trace)[around] == Kind.CPU_OP), around, call)
    names = np.where(call >= 0, trace.events.name[row], -1).astype(np.int32)
    waits_for_queue = np.isin(call, graph.calls.call[graph.calls.kind == WaitKind.QUEUE])
    names[waits_for_queue] = -1  # waiting for room in a full queue is no synchronization
    return names


def _target_of(trace: Trace, **parts: Any) -> WhatIfTarget:
    """Return a target of these parts and nothing else."""
    return msgspec.structs.replace(_empty_target(trace), **parts)


@derived
def _empty_target(trace: Trace) -> WhatIfTarget:
    graph = schedule(trace)
    items, edges = len(graph.items), len(graph.edges.target)
    return WhatIfTarget(
        rows=np.empty(0, np.int32),
        host=np.zeros(len(graph.points), np.int64),
        items=np.zeros(items, np.bool_),
        device=np.zeros(items, np.int64),
        edges=np.zeros(edges, np.bool_),
    )


def _items_of_target(trace: Trace, kind: str, name: str) -> Bool:
    names, communicates = _item_names(trace)
    mine: Bool = communicates if kind in ("communication", "collective") else ~communicates
    if kind == "kernel":
        mine = mine & (names == string_code(trace, name))
    elif kind == "collective":
        named = name_mask(trace.strings, lambda text: collective_from_kernel(text) == name, names[communicates])
        mine = mine & named[names]
    return mine


@derived
def _item_names(trace: Trace) -> tuple[Int32, Bool]:
    """Return (the name of each item, whether it communicates)."""
    rows = schedule(trace).items.row
    return trace.events.name[rows], is_communication_kernel(trace)[rows]


@derived
def _item_lengths(trace: Trace) -> Int64:
    items = schedule(trace).items
    return items.end - items.start


def slices_by_start(trace: Trace, target: str) -> Int32:
    """Return the rows of the host slices of a target, those of operators, calls and the like by their start."""
    kind, _, name = target.partition(":")
    return _slices_of_target(trace, kind, name, by_start=True)


def _slices_of_target(trace: Trace, kind: str, name: str, by_start: bool = False) -> Int32:
    if kind in ("data_loading", "allocator", "wait"):
        return np.flatnonzero(slice_causes(trace) == Cause[kind.upper()]).astype(np.int32)
    if kind == "module":
        return _slices_named(trace, MODULE_PREFIX + name, by_start, Kind.PYTHON)
    if kind == "line":
        return _slices_named(trace, name, by_start, Kind.PYTHON)
    if kind == "call":
        return _slices_named(trace, name, by_start, Kind.RUNTIME, Kind.DRIVER)
    return _slices_named(trace, name, by_start, Kind.CPU_OP, Kind.ANNOTATION)


def _slices_named(trace: Trace, name: str, by_start: bool, *allowed: Kind) -> Int32:
    rows, bounds = _rows_by_name(trace, by_start, *allowed)
    code = string_code(trace, name)
    return rows[bounds[code] : bounds[code + 1]] if code >= 0 else rows[:0]


@derived
def _rows_by_name(trace: Trace, by_start: bool, *allowed: Kind) -> tuple[Int32, Int64]:
    """Return (rows of these kinds by name; where those of each string begin, and the end: int64[strings + 1]).

    by_start  the rows of a name are in order of their start instead of that of the file
    """
    rows = rows_of_kind(trace, *allowed)
    if by_start:
        start = trace.events.start[rows]
        if (start[1:] >= start[:-1]).all():
            return _rows_by_name(trace, False, *allowed)
        rows = rows[np.argsort(start, kind="stable")]  # they nearly ascend: once for all names is quick
    names = trace.events.name[rows]
    rows, names = rows[names >= 0], names[names >= 0]
    counts = np.bincount(names, minlength=len(trace.strings))
    return rows[stable_order(names)], np.append(0, np.cumsum(counts))


def _host_time_between_points(trace: Trace, rows: Int32) -> Int64:
    """Return ns that these slices cover between each point and the point before: int64[p]."""
    return covered_between(trace, rows, _times_of_points(trace))


@derived
def _times_of_points(trace: Trace) -> ThreadTimes:
    points, chain = schedule(trace).points, np.full(len(trace.threads), NO_CODE, np.int32)
    chain[points.threads] = np.arange(len(points.threads))
    return ThreadTimes(chain, points.time, points.bounds)


def covered_between(trace: Trace, rows: Int32, of_threads: ThreadTimes) -> Int64:
    """Return ns that slices cover between each time of their thread and the one before; 0 for the first."""
    events, (chain, times, bounds) = trace.events, of_threads
    if (functions := schedule_functions()) is not None:
        columns = events.start, events.duration, events.thread, of_threads
        found = functions.cover(rows, *columns)
        if found is None:  # they nearly ascend, for which a stable sort is ten times faster than another
            found = functions.cover(rows[np.argsort(events.start[rows], kind="stable")], *columns)
        if found is not None:
            return found
    covered = np.zeros(len(times), np.int64)
    (begin, end), owner = event_spans(trace, rows), chain[events.thread[rows]]
    for number, (low, high) in enumerate(pairwise(bounds.tolist())):
        mine = owner == number
        if mine.any():
            covered[low + 1 : high] = covered_time_between(merge(begin[mine], end[mine]), times[low:high])
    return covered


def _fill_covered_times(trace: Trace, time: Int64, thread: int, during: Intervals) -> None:
    """Set `time`, int64[p], to ns of the intervals between each point of a thread and the point before."""
    points = schedule(trace).points
    index = points.thread_index(thread)
    low, high = points.bounds[index], points.bounds[index + 1]
    if (functions := schedule_functions()) is not None:
        number = np.zeros(len(during.starts), np.int32)
        time[low:high] = 0
        functions.during(points.time[low:high], *during, number, time[None, low:high])
        return
    time[low + 1 : high] = covered_time_between(during, points.time[low:high])


def _replayed_step_times(trace: Trace, cases: Sequence[tuple[WhatIfTarget, int]]) -> Int64:
    """Return ns of the mean typical step (without waits: in a row) in each (target, percent): int64[cases]."""
    recorded = recorded_spans(trace)
    durations = replayed_durations(trace, cases)[:, recorded.typical]
    mean: Int64 = durations.sum(axis=1) // max(durations.shape[1], 1)
    waits = [i for i, (part, percent) in enumerate(cases) if percent == 100 and _is_waits_alone(part)]
    saved = (recorded.durations[:, recorded.typical] - durations[waits]).astype(np.float64)
    in_a_row = savings_in_a_row(trace, [cases[i][0] for i in waits])
    for number, case in enumerate(waits):
        savings = [each[number] for each in (saved, in_a_row) if each is not None]
        mean[case] = min(mean[case], recorded.mean_ns[0] - int(most_saved_by_host(trace, savings)))
    return mean


def _is_waits_alone(part: WhatIfTarget) -> bool:
    """Return whether a target is waits for the device, and no time of the host or the device."""
    return bool(part.edges.any() and not part.host.any() and not part.device.any())


def savings_in_a_row(trace: Trace, parts: Sequence[WhatIfTarget]) -> Float64 | None:
    """Return what removing each part saves in each typical step if no odd one is between them: float64[k, steps].

    A host that no longer waits prepares a step while the device works on all that it launched before: on less
    after an odd step than in a row of typical ones, which most of a run is. None without an odd one between them.
    """
    odd = odd_steps_target(trace) if parts else None
    if odd is None:
        return None
    cases = [(odd, 100), *((merge_targets([part, odd]), 100) for part in parts)]
    durations = replayed_durations(trace, cases)[:, recorded_spans(trace).typical].astype(np.float64)
    saved: Float64 = durations[0] - durations[1:]
    return saved


def replayed_durations(trace: Trace, cases: Sequence[tuple[WhatIfTarget, int]]) -> Int64:
    """Return ns of each complete step in each case (target, percent removed): int64[cases, steps]."""
    graph = schedule(trace)
    batch_size = max(1, _MAX_BATCH_CELLS // max(len(graph.points) + len(graph.items), 1))
    batches = (cases[first : first + batch_size] for first in range(0, len(cases), batch_size))
    return np.concatenate([_replay_batch(trace, graph, batch) for batch in batches])


def _percents_by_part(
    cases: Sequence[tuple[WhatIfTarget, int]],
) -> Iterator[tuple[WhatIfTarget, list[tuple[int, int]]]]:
    """Yield each part with (number of the case, percent) of the successive cases that remove it."""
    for _, group in groupby(enumerate(cases), lambda each: id(each[1][0])):
        of_part = list(group)
        yield of_part[0][1][0], [(number, percent) for number, (_, percent) in of_part]


def _replay_batch(trace: Trace, graph: Schedule, cases: Sequence[tuple[WhatIfTarget, int]]) -> Int64:
    duration = graph.items.end - graph.items.start
    since = np.maximum(graph.points.elapsed, 1)
    steps = np.repeat(graph.step[None], len(cases), axis=0)
    durations = np.repeat(duration[None], len(cases), axis=0)
    removed = np.zeros((len(cases), len(graph.edges.target)), np.bool_)
    # Nothing changes before the first step, so that all cases begin at the recorded time.
    begin = recorded_spans(trace).begin[0, :1]
    points, items = graph.points.time > begin, graph.items.start >= begin
    for part, case_of_percent in _percents_by_part(cases):
        # Scale down only where the host waited, too: the product of two long times would overflow.
        changed = np.flatnonzero(points & (part.host > 0))
        host, step = part.host[changed], graph.step[changed]
        partly = np.flatnonzero(step != since[changed])
        host[partly] = (host[partly] * (step[partly] / since[changed[partly]])).astype(np.int64)
        working = np.flatnonzero((part.device > 0) & items)
        device = part.device[working]
        for case, percent in case_of_percent:
            steps[case, changed] -= host * percent // 100
            durations[case, working] -= device * percent // 100
            removed[case] = part.edges & points[graph.edges.target] & (percent == 100)
    return step_spans(trace, replay(trace, steps, durations, removed)).durations
