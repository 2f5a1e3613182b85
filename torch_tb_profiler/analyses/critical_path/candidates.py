"""Candidates for a speedup: what could be made faster, its time on the critical path, its slack, and its gain."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

import msgspec
import numpy as np
from msgspec.structs import replace

from torch_tb_profiler.analyses.critical_path.slack import UNLIMITED_NS, slack
from torch_tb_profiler.analyses.schedule.path import (
    HOST_CATEGORIES,
    PathSegmentKind,
    critical_path,
    host_segments,
)
from torch_tb_profiler.analyses.schedule.step_spans import recorded_spans, step_items
from torch_tb_profiler.analyses.schedule.what_if import (
    UNNAMED_TARGETS,
    covered_between,
    parse_target,
    slices_by_start,
    step_times_without,
    sync_names,
)
from torch_tb_profiler.analyses.shared.attainable import roofline_shares
from torch_tb_profiler.base.arrays import distinct, distinct_numbers, median, search_sorted
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.base.intervals import Intervals, covered_time, merge
from torch_tb_profiler.base.markers import MODULE_PREFIX, is_data_loading, is_step
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.communication.events import collective_from_kernel, is_communication_kernel
from torch_tb_profiler.model.kinds import Kind, event_spans, rows_of_kind
from torch_tb_profiler.model.schedule.compiled import ThreadTimes
from torch_tb_profiler.model.schedule.schedule import schedule
from torch_tb_profiler.model.steps import step_noun
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int32, Int64, Trace, distinct_codes

_MAX_NAMES = 20
"""Most candidates of a kind: those with most time on the path, or for device work with most time overall."""

_FASTER_SHARE = 0.5
"""Share of its time that a kernel twice as fast saves."""

_SHAPE_KEYS = {"Input Dims", "Input dims"}
"""Arguments with the shapes of inputs, without which FLOPs and bytes are unknown."""

_HOST_KINDS = {
    "operator": (Kind.CPU_OP, Kind.ANNOTATION),
    "module": (Kind.PYTHON,),
    "call": (Kind.RUNTIME, Kind.DRIVER),
}


class SpeedupCandidate(msgspec.Struct, frozen=True):
    """A what-if target with its time on the path of the typical steps and its calls in them.

    slack_ns  half of its calls may each take at least this much longer; None if nothing waits for them
    event     row of its call with most time on the path, else of the first; NO_CODE for the host as a whole
    """

    target: str
    path_ns: int
    calls: int
    slack_ns: int | None
    event: int


@derived
def speedup_candidates(trace: Trace) -> tuple[SpeedupCandidate, ...]:
    """Return the candidates of every kind with time in the typical steps, most time on the path first."""
    targets = (*UNNAMED_TARGETS, *_find_host_targets(trace), *_find_device_targets(trace))
    candidates = [_build_candidate(trace, target) for target in targets]
    existing = [each for each in candidates if each is not None]
    return tuple(sorted(existing, key=lambda each: each.path_ns, reverse=True))


def find_candidate(trace: Trace, target: str) -> SpeedupCandidate:
    """Return the candidate for a target; raise NotFoundError if the typical steps have nothing of it."""
    found = _build_candidate(trace, target)
    if found is None:
        raise NotFoundError(f"the typical {step_noun(trace)}s have no {target!r}")
    return found


@derived
def attainable_step_ns(trace: Trace) -> int | None:
    """Return ns of the mean typical step with kernels twice as fast, but none faster than its roofline allows.

    None if all of them can be that fast, as far as is known: a kernel of unknown work counts as one that can.
    """
    if not _SHAPE_KEYS & trace.args.keys() or recorded_spans(trace).end.size == 0:
        return None
    try:
        part = parse_target(trace, "device")
    except NotFoundError:
        return None
    items = schedule(trace).items
    share = np.nan_to_num(roofline_shares(trace, items.row[part.items]))
    if (share <= 1 - _FASTER_SHARE).all():
        return None
    removed = np.zeros(len(items), np.int64)
    saved = np.minimum(_FASTER_SHARE, 1 - share)
    removed[part.items] = (saved * part.device[part.items]).astype(np.int64)
    return int(step_times_without(trace, [replace(part, device=removed)])[0])


def _find_host_targets(trace: Trace) -> Iterator[str]:
    """Yield operators, modules and calls with most time on the path, including what they call."""
    for kind, event_kinds in _HOST_KINDS.items():
        rows = rows_of_kind(trace, *event_kinds)
        rows = rows[trace.events.name[rows] >= 0]  # an event may have no name
        # Sum by time, not by call tree: an annotation whose ends lie in Python frames does not nest with them.
        sums = np.bincount(trace.events.name[rows], weights=_sum_path_time(trace)[rows])
        ordered = (trace.strings[code] for code in np.argsort(-sums, kind="stable").tolist() if sums[code] > 0)
        yield from islice((f"{kind}:{name}" for name in map(_TARGET_NAME[kind], ordered) if name), _MAX_NAMES)


def _operator_name(text: str) -> str | None:
    return None if is_step(text) or is_data_loading(text) else text


_TARGET_NAME: dict[str, Callable[[str], str | None]] = {
    "operator": _operator_name,
    "module": lambda text: text[len(MODULE_PREFIX) :] if text.startswith(MODULE_PREFIX) else None,
    "call": lambda text: text,
}
"""For each kind, the name of the target that an event's name stands for, or None if it is no such target."""


def _find_device_targets(trace: Trace) -> Iterator[str]:
    """Yield kernels and copies with most time, every collective, and every wait for the device."""
    items = schedule(trace).items
    inside = np.flatnonzero(_typical_items(trace))
    inside = inside[trace.events.name[items.row[inside]] >= 0]
    names = trace.events.name[items.row[inside]]
    communicates = is_communication_kernel(trace)[items.row[inside]]
    duration = (items.end - items.start)[inside]
    sums = np.bincount(names[~communicates], weights=duration[~communicates])
    for code in np.argsort(-sums, kind="stable")[:_MAX_NAMES].tolist():
        if sums[code] > 0:
            yield f"kernel:{trace.strings[code]}"
    codes = distinct_numbers(names[communicates])
    collectives = {collective_from_kernel(trace.strings[code]) for code in codes}
    yield from (f"collective:{name}" for name in sorted(collectives))
    waits, counts = np.unique(sync_names(trace), return_counts=True)
    for index in np.argsort(-counts, kind="stable")[:_MAX_NAMES].tolist():
        if waits[index] >= 0:
            yield f"sync:{trace.strings[waits[index]]}"


def _build_candidate(trace: Trace, target: str) -> SpeedupCandidate | None:
    try:
        part = parse_target(trace, target)
    except NotFoundError:
        return None
    graph, path = schedule(trace), critical_path(trace)
    typical, slacks = recorded_spans(trace).typical, slack(trace)
    if target == "host":
        length = (path.end - path.begin)[(path.kind == PathSegmentKind.HOST) & typical[path.step]]
        return SpeedupCandidate(target, int(length.sum()), 0, None, NO_CODE)
    if part.items.any():
        mine = np.flatnonzero(part.items & _typical_items(trace))
        spent = _sum_item_path_time(trace)[mine]
        return _build_candidate_with_calls(
            target, int(spent.sum()), graph.items.row[mine], spent, slacks.items[mine]
        )
    if part.edges.any():
        calls = distinct(graph.edges.call[part.edges])
        calls = calls[_in_typical_steps(trace, trace.events.start[calls])]
        waking = np.flatnonzero(path.kind == PathSegmentKind.WAKE_UP)
        at = np.searchsorted(calls, path.ref[waking])
        found = np.append(calls, NO_CODE)[at] == path.ref[waking]
        spent = np.zeros(len(calls), np.int64)
        np.add.at(spent, at[found], (path.end - path.begin)[waking[found]])
        slack_ns = slacks.points[graph.edges.target[part.edges]]
        return _build_candidate_with_calls(target, int(spent.sum()), calls, spent, slack_ns)
    calls = part.rows[_in_typical_steps(trace, trace.events.start[part.rows])]
    mine = (part.host > 0) & _typical_points(trace)
    path_ns = _sum_host_path_time(trace, target)
    return _build_candidate_with_calls(target, path_ns, calls, _sum_path_time(trace)[calls], slacks.points[mine])


@derived
def _typical_items(trace: Trace) -> Bool:
    """Return bool[n]: which items were launched in a typical step."""
    launched, inside = step_items(trace), np.zeros(len(schedule(trace).items), np.bool_)
    step = np.repeat(np.arange(len(launched.bounds) - 1), np.diff(launched.bounds))
    inside[launched.order[: launched.bounds[-1]][recorded_spans(trace).typical[step]]] = True
    return inside


@derived
def _typical_points(trace: Trace) -> Bool:
    """Return bool[p]: which points end time of the host in a typical step."""
    return _in_typical_steps(trace, schedule(trace).points.time - 1)


@derived
def _sum_item_path_time(trace: Trace) -> Int64:
    """Return ns of the path of the typical steps in each item: int64[n]."""
    path, spent = critical_path(trace), np.zeros(len(schedule(trace).items), np.int64)
    device = (path.kind == PathSegmentKind.DEVICE) & recorded_spans(trace).typical[path.step]
    np.add.at(spent, path.ref[device], (path.end - path.begin)[device])
    return spent


def _in_typical_steps(trace: Trace, times: Int64) -> Bool:
    """Return bool[k]: which times on the host's clock lie in a typical step."""
    spans = recorded_spans(trace)
    begin, end = spans.begin[0][spans.typical], spans.end[0][spans.typical]
    step = search_sorted(begin, times, "right") - 1
    inside: Bool = (step >= 0) & (times < np.append(end, 0)[step])
    return inside


def _build_candidate_with_calls(
    target: str, path_ns: int, calls: Int32, spent: Int64, slack_ns: Int64
) -> SpeedupCandidate | None:
    """Return a candidate with these calls, their times on the path and their slack; None without a call."""
    if len(calls) == 0:
        return None
    limited = slack_ns[slack_ns < UNLIMITED_NS // 2]
    median_slack = int(median(limited)) if len(limited) else None
    return SpeedupCandidate(target, path_ns, len(calls), median_slack, int(calls[np.argmax(spent)]))


@derived
def _sum_path_time(trace: Trace) -> Int64:
    """Return ns of the path's host time inside each slice, or in what it calls: int64[n]; 0 for other events."""
    spent, parts = np.zeros(len(trace), np.int64), _split_path_by_thread(trace)
    for kind in Kind:
        rows = rows_of_kind(trace, kind)
        thread = trace.events.thread[rows]
        for code, intervals in parts:
            mine = rows[thread == code]
            spent[mine] = covered_time(intervals, *event_spans(trace, mine))
    return spent


def _sum_host_path_time(trace: Trace, target: str) -> int:
    """Return ns of the path's host time inside the slices of a target."""
    if target == "data_loading":
        segments = host_segments(trace)
        loading = segments.category == HOST_CATEGORIES.index("data_loading")
        loading &= recorded_spans(trace).typical[segments.step]
        return int((segments.end - segments.begin)[loading].sum())
    ascending = slices_by_start(trace, target)
    return int(covered_between(trace, ascending, _find_path_borders(trace))[1::2].sum())


@derived
def _find_path_borders(trace: Trace) -> ThreadTimes:
    """Return when the path of the typical steps comes to each thread and leaves it, in turn."""
    parts, chain = _split_path_by_thread(trace), np.full(len(trace.threads), NO_CODE, np.int32)
    chain[[code for code, _ in parts]] = np.arange(len(parts))
    borders = [np.stack(intervals, axis=1).ravel() for _, intervals in parts]
    bounds = np.cumsum([0, *map(len, borders)])
    return ThreadTimes(chain, np.concatenate([np.empty(0, np.int64), *borders]), bounds)


@derived
def _split_path_by_thread(trace: Trace) -> list[tuple[int, Intervals]]:
    """Return (thread code, when the path of the typical steps is on it) for each thread on the path."""
    path = critical_path(trace)
    inside = recorded_spans(trace).typical[path.step] & (path.kind == PathSegmentKind.HOST)
    begin, end, thread = path.begin[inside], path.end[inside], path.ref[inside]
    return [(code, merge(begin[thread == code], end[thread == code])) for code in distinct_codes(thread)]
