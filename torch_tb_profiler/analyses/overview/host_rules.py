"""Rules about the host, for which the device waits. Each instant counts for the first rule that finds it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from torch_tb_profiler.analyses.overview.communication_rules import gaps_between_collectives
from torch_tb_profiler.analyses.overview.dominant_frames import (
    deepest_dominant_frame,
    dominant_frames,
    function_without_operators,
    slices_without_launches,
)
from torch_tb_profiler.analyses.overview.finding import MIN_GAIN_SHARE, NO_ROWS, Finding, job_kind
from torch_tb_profiler.analyses.overview.host_calls import (
    blocking_call_groups,
    copies_to_host,
    copying_calls,
    synchronizing_calls,
)
from torch_tb_profiler.analyses.overview.idle import (
    caused_by_calls,
    device_busy,
    host_late_times,
    idle_times,
    late_times_of,
    late_times_without_records,
    long_stretches,
    long_unrecorded_times,
    short_stretches,
)
from torch_tb_profiler.analyses.overview.kernel_rules.optimizer import optimizer_marks
from torch_tb_profiler.analyses.schedule.causes import compiling_times
from torch_tb_profiler.analyses.shared.breakdown import role_intervals
from torch_tb_profiler.analyses.shared.grouping import group
from torch_tb_profiler.analyses.shared.typical_steps import step_kinds, typical_windows
from torch_tb_profiler.base.arrays import cells_of_rows, distinct, median, search_sorted
from torch_tb_profiler.base.format import format_duration
from torch_tb_profiler.base.intervals import (
    NO_INTERVALS,
    Intervals,
    covered_time,
    intersect,
    subtract,
    total,
    union,
)
from torch_tb_profiler.base.markers import is_user_frame
from torch_tb_profiler.model.calls.calltree import enclosing_operators
from torch_tb_profiler.model.calls.links import device_launches, device_links
from torch_tb_profiler.model.communication.events import computing_kernels
from torch_tb_profiler.model.kinds import (
    DEVICE_KINDS,
    Kind,
    event_ends,
    event_intervals,
    event_kinds,
    event_spans,
    rows_named,
    rows_of_kind,
)
from torch_tb_profiler.model.serving.iterations import serving_iterations
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int32, Trace, distinct_codes, rows_mask
from torch_tb_profiler.model.trainer import loading_per_batch

MIN_LAUNCHES = 20
"""Fewest launches that can bound a step."""

MIN_STALLS = 2
"""Fewest steps after the first that wait for the loader, and are odd for it, that happen again and again."""

MIN_CODE_NS = 100_000
"""A median call that takes longer and launches nothing isn't about how fast the host launches."""

MIN_LATE_LAUNCHES = 5
"""Fewest gaps per step that are many,"""

MIN_WAITED_FOR_SHARE = 0.9
"""unless the device waits for this share of all launches: then the steps are just short."""

MIN_LINKED_SHARE = 0.9
"""Share of the device work whose launch must be recorded for a thread to be known that launches too late."""

MIN_GRADIENT_BYTES = 1024
"""A smaller copy to the host is of a loss or a norm rather than of gradients."""

_CASE_BY_KIND = {
    Kind.PYTHON: "code",
    Kind.ANNOTATION: "code",
    Kind.CPU_OP: "operator",
    Kind.RUNTIME: "call",
    Kind.DRIVER: "call",
}


def find_host_causes(trace: Trace) -> Iterator[Finding]:
    """Find what the host does while the device waits, by rules in order of precedence."""
    passes = device_busy(trace)
    for rule in (
        _find_data_loading, _start_up, _find_allocator_calls, _find_synchronization, _find_blocking_copies,
        _find_host_code, _find_short_code, _find_launch_bound, _find_unrecorded_code, _find_slow_launches,
    ):  # fmt: skip
        for finding in rule(trace, passes):
            has_own = finding.passes is not NO_INTERVALS
            yield finding if has_own else msgspec.structs.replace(finding, passes=passes)
            passes = union(passes, finding.during)


def _find_data_loading(trace: Trace, passes: Intervals) -> Iterator[Finding]:
    during = role_intervals(trace)["dataloader"]
    if len(during.starts):
        times = loading_per_batch(trace)
        case = {True: "workers", False: "process", None: "process" if times is None else "trainer"}[
            job_kind(trace).workers
        ]
        if case == "workers" and len(rows_of_kind(trace, *DEVICE_KINDS)) == 0:
            case = "same_cpu"
        yield Finding(
            "data_loading", during, case=case, value=times, window=_find_longest_stretch(subtract(during, passes))
        )


def find_loading_stalls(trace: Trace) -> Iterator[Finding]:
    """Find odd steps after the first one in which the loop waits for the loader, if typical steps hardly do.

    A first step may fill the queue of the loader. Typical steps that wait are advised on by themselves.
    """
    spans, kinds = steps(trace), step_kinds(trace)
    waits = subtract(role_intervals(trace)["dataloader"], device_busy(trace))
    times = covered_time(waits, spans.starts, spans.ends)
    durations = spans.ends - spans.starts
    if times[kinds.typical].sum() >= MIN_GAIN_SHARE * durations[kinds.typical].sum():
        return
    late = kinds.odd & (2 * times > durations)
    late[:1] = False
    if late.sum() < MIN_STALLS:
        return
    windows = Intervals(spans.starts[late], spans.ends[late])
    during = intersect(waits, windows)
    yield Finding(
        "data_loading",
        during,
        case="stalls",
        of_all_steps=True,
        place=format_duration(median(times[late])),
        value=int(late.sum()),
        window=_find_longest_stretch(during),
    )


def _start_up(trace: Trace, passes: Intervals) -> Iterator[Finding]:
    yield from _find_idle_during_calls("start_up", trace, blocking_call_groups(trace).starting, passes)


def _find_allocator_calls(trace: Trace, passes: Intervals) -> Iterator[Finding]:
    yield from _find_idle_during_calls("allocator", trace, blocking_call_groups(trace).allocating, passes)


def _find_idle_during_calls(id: str, trace: Trace, rows: Int32, passes: Intervals) -> Iterator[Finding]:
    during = intersect(idle_times(trace), event_intervals(trace, rows))
    during = subtract(during, passes)
    if len(during.starts):
        longest = int(rows[np.argmax(trace.events.duration[rows])])
        yield Finding(
            id,
            during,
            subject=trace.strings[trace.events.name[longest]],
            place=innermost_user_frame(trace, longest),
            value=len(rows),
            event=longest,
        )


def _find_synchronization(trace: Trace, passes: Intervals) -> Iterator[Finding]:
    finding = _find_waits("synchronization", trace, synchronizing_calls(trace))
    if finding is not None:
        yield msgspec.structs.replace(finding, case="" if _is_in_most_steps(trace, finding) else "some_steps")


def _is_in_most_steps(trace: Trace, finding: Finding) -> bool:
    """Return whether its calls are in more than half of the typical steps, as far as a gap can follow them.

    After the last step nothing is launched, so that none follows a call at its end. A trace without steps is one.
    """
    spans, counts = steps(trace), step_kinds(trace).typical.copy()
    if not spans.recorded:
        return True
    step = search_sorted(spans.host_starts, trace.events.start[finding.rows], "right") - 1
    found = np.zeros(len(counts), np.bool_)
    found[step[step >= 0]] = True
    counts[np.flatnonzero(counts)[-1]] &= found[np.flatnonzero(counts)[-1]]
    return 2 * int((found & counts).sum()) > int(counts.sum())


def _find_blocking_copies(trace: Trace, passes: Intervals) -> Iterator[Finding]:
    """Find copies for which the host waits: the idle time until what follows, and the copies to the host.

    Copies to the device, while nothing computes, have rules of their own.
    """
    copying = copying_calls(trace)
    finding = _find_waits("blocking_copies", trace, copying.calls)
    if finding is None:
        return
    roles = role_intervals(trace)
    copies = subtract(event_intervals(trace, copying.to_host), union(roles["kernel"], roles["communication"]))
    yield msgspec.structs.replace(
        finding,
        case="offload" if _are_gradients(trace, copying.to_host) else "",
        during=union(finding.during, copies),
        passes=subtract(passes, copies),
        rows=copying.to_host,
        on_device=True,
    )


def _are_gradients(trace: Trace, to_host: Int32) -> bool:
    """Return whether most of these copies to the host, by time, have the size of parameters that come back."""
    to_device = rows_named(trace, lambda text: "HtoD" in text, Kind.MEMCPY)
    sizes = trace.arg_int("bytes", to_device[_is_offloaded(trace, to_device)])
    duration = trace.events.duration[to_host]
    are_sent = np.isin(trace.arg_int("bytes", to_host), sizes)
    return bool(2 * duration[are_sent].sum() > duration.sum())


def _find_waits(rule: str, trace: Trace, rows: Int32) -> Finding | None:
    """Find the idle time that these waiting calls cause, named after the operator and place that cost most."""
    # An inference engine needs the tokens of a batch before it can schedule the next one.
    if len(rows) == 0 or serving_iterations(trace) is not None:
        return None
    during, which = caused_by_calls(host_late_times(trace), trace.events.start[rows], event_ends(trace)[rows])
    if len(during.starts) == 0:
        return None
    operators = enclosing_operators(trace)[rows[which]]
    names = np.where(operators >= 0, trace.events.name[operators], -1)
    places, texts = _find_user_places(trace, rows[which], operators)
    groups = group(names, places)
    sums = groups.sums(during.ends - during.starts)
    worst = int(np.argmax(sums))
    mine = groups.members(worst)
    longest = int(mine[np.argmax((during.ends - during.starts)[mine])])
    event, operator = int(rows[which[longest]]), int(operators[longest])
    return Finding(
        rule,
        during,
        subject=trace.strings[trace.events.name[event if operator < 0 else operator]],
        majority=bool(2 * sums[worst] > sums.sum()),
        place=texts[int(places[longest])],
        value=len(distinct(which)),
        rows=rows[distinct(which)],
        event=event,
        window=(int(trace.events.start[event]), int(during.ends[longest])),
    )


def _find_user_places(trace: Trace, calls: Int32, operators: Int32) -> tuple[Int32, list[str]]:
    """Return (int32[k], the code of the innermost frame of the user's code around each call; the frames)."""
    from torch_tb_profiler.analyses.shared.call_stacks import distinct_stacks  # few traces get here

    stacks = distinct_stacks(trace, np.where(operators >= 0, operators, calls).astype(np.int32))
    _, first = np.unique(stacks.which, return_index=True)
    frames = [innermost_user_frame(trace, call) for call in calls[first].tolist()]
    texts = [*dict.fromkeys(frames)]
    codes = np.array([texts.index(frame) for frame in frames], np.int32)
    return codes[stacks.which], texts


def _find_host_code(trace: Trace, passes: Intervals) -> Iterator[Finding]:
    if len(rows_of_kind(trace, *DEVICE_KINDS)) == 0:
        yield from _find_host_without_operators(trace)
    stretches = long_stretches(subtract(host_late_times(trace), passes))
    for stretch in dominant_frames(trace, stretches)[:1]:
        case = _CASE_BY_KIND[Kind(event_kinds(trace)[stretch.event])]
        compiling = compiling_times(trace, int(trace.events.thread[stretch.event]))
        if 2 * total(intersect(stretch.during, compiling)) > total(stretch.during):
            case = "compile"
        elif case == "code" and steps(trace).vary:
            case = "engine"
        yield Finding(
            "host_code",
            stretch.during,
            case=case,
            subject=stretch.name,
            event=stretch.event,
            window=_find_longest_stretch(stretch.during),
        )


def _find_host_without_operators(trace: Trace) -> Iterator[Finding]:
    """Find the function that takes time beside the operators, where there is no device."""
    stretch = function_without_operators(trace)
    if stretch is not None and steps(trace).recorded:
        window = _find_longest_stretch(stretch.during)
        yield Finding(
            "host_code", stretch.during, case="alone", subject=stretch.name, event=stretch.event, window=window
        )


def _find_short_code(trace: Trace, passes: Intervals) -> Iterator[Finding]:
    """Find the code that launches nothing, in which most of many short idle stretches pass."""
    during = subtract(short_stretches(host_late_times(trace)), passes)
    # Only on a thread with most of that time a frame can have most of it; and there, only frames with most of the
    # thread's time, a fourth of all, are compared.
    slices = slices_without_launches(trace, total(during) / 4) if total(during) else NO_ROWS
    for thread in distinct_codes(trace.events.thread[slices]):
        # What another thread does meanwhile doesn't hold up this one's launch: it may well wait for this one.
        waits = intersect(during, late_times_of(trace, thread))
        if 2 * total(waits) <= total(during):
            continue
        frame = deepest_dominant_frame(trace, waits, slices[trace.events.thread[slices] == thread])
        if frame is None or 2 * total(frame.during) <= total(during):
            continue
        same = trace.events.name == trace.events.name[frame.event]
        time = median(trace.events.duration[same & (event_kinds(trace) == event_kinds(trace)[frame.event])])
        if time >= MIN_CODE_NS:
            yield Finding(
                "short_code",
                frame.during,
                subject=frame.name,
                value=time,
                event=frame.event,
                window=_find_longest_stretch(frame.during),
            )


def _find_launch_bound(trace: Trace, passes: Intervals) -> Iterator[Finding]:
    """Find many short idle stretches, each until the host has launched what follows."""
    device, launch = device_launches(trace)
    linked = device[launch >= 0]
    if job_kind(trace).graphs or len(linked) < MIN_LAUNCHES:
        return
    # A graph or fewer operators launch collectives no sooner: buckets do, which other advice is about.
    passes = union(passes, gaps_between_collectives(trace))
    during = subtract(short_stretches(host_late_times(trace)), passes)
    many = MIN_LATE_LAUNCHES * int(step_kinds(trace).typical.sum())
    if len(during.starts) >= min(many, MIN_WAITED_FOR_SHARE * len(linked)):
        start, end = event_spans(trace, linked)
        item = median(end - start)
        case = "" if serving_iterations(trace) is None else "engine"
        yield Finding("launch_bound", during, case=case, value=item, window=_find_longest_stretch(during))


def _find_slow_launches(trace: Trace, passes: Intervals) -> Iterator[Finding]:
    """Find long idle stretches before most launches, which no code that they have in common explains."""
    device, launch = device_launches(trace)
    linked = device[launch >= 0]
    if len(linked) < MIN_LAUNCHES or serving_iterations(trace) is not None:
        return
    during = long_stretches(subtract(host_late_times(trace), passes))
    many = MIN_LATE_LAUNCHES * int(step_kinds(trace).typical.sum())
    if len(during.starts) >= many and 2 * len(during.starts) > len(linked):
        if any(2 * total(frame.during) > total(during) for frame in dominant_frames(trace, during)[:1]):
            return
        start, end = event_spans(trace, linked)
        item = median(end - start)
        yield Finding("launch_bound", during, case="slow", value=item, window=_find_longest_stretch(during))


def _typical_ns(trace: Trace) -> int:
    return total(typical_windows(trace))


def _find_unrecorded_code(trace: Trace, passes: Intervals) -> Iterator[Finding]:
    """Find long idle stretches in which nothing of the host is recorded, and call stacks would show what it does.

    An inference engine may have no request then.
    """
    launch, calls = device_launches(trace)[1], rows_of_kind(trace, Kind.RUNTIME, Kind.DRIVER)
    if len(rows_of_kind(trace, Kind.PYTHON)) or not len(calls) or not len(rows_of_kind(trace, Kind.CPU_OP)):
        return
    if len(launch) < 2 or np.mean(launch >= 0) < MIN_LINKED_SHARE:  # more of the host is missing than call stacks
        return
    if not steps(trace).recorded or serving_iterations(trace) is not None:
        return
    late, least = long_stretches(subtract(host_late_times(trace), passes)), MIN_GAIN_SHARE * _typical_ns(trace)
    if total(late) < least or total(long_stretches(intersect(late, late_times_without_records(trace)))) < least:
        return
    during = long_stretches(intersect(late, long_unrecorded_times(trace)))
    if total(during) >= least:
        yield Finding("unrecorded_code", during, window=_find_longest_stretch(during))


def find_pageable_copies(trace: Trace) -> Iterator[Finding]:
    """Find copies to the device from memory that isn't pinned, while nothing computes."""
    copies = rows_named(trace, lambda text: "HtoD" in text and "Pageable" in text, Kind.MEMCPY)
    for case, rows in _group_by_origin(trace, copies):
        roles = role_intervals(trace)
        others = union(roles["kernel"], roles["communication"], roles["dataloader"])
        during = event_intervals(trace, rows)
        longest = int(rows[np.argmax(trace.events.duration[rows])])
        yield Finding("pageable_copies", during, others, rows, case=case, value=len(rows), event=longest)


def find_pinned_copies(trace: Trace) -> Iterator[Finding]:
    """Find copies to the device from pinned memory on a stream that computes, whose kernels wait for them."""
    copies = rows_named(trace, lambda text: "HtoD" in text and "Pinned" in text, Kind.MEMCPY)
    copies = copies[_are_on_computing_streams(trace, copies)]
    for case, rows in _group_by_origin(trace, copies):
        roles = role_intervals(trace)
        others = union(roles["kernel"], roles["communication"], roles["dataloader"])
        longest = int(rows[np.argmax(trace.events.duration[rows])])
        yield Finding(
            "pinned_copies",
            event_intervals(trace, rows),
            others,
            rows,
            on_device=True,
            case=case,
            value=len(rows),
            event=longest,
        )


def find_exposed_copies(trace: Trace) -> Iterator[Finding]:
    """Find copies between pinned memory and a device on streams of their own, while nothing computes.

    Copies that the host waits for have a rule of their own.
    """
    copies = rows_named(trace, lambda text: ("HtoD" in text or "DtoH" in text) and "Pinned" in text, Kind.MEMCPY)
    copies = copies[~_are_on_computing_streams(trace, copies)]
    copies = copies[~rows_mask(trace, copying_calls(trace).to_host)[copies]]
    if len(copies):
        roles = role_intervals(trace)
        yield Finding(
            "exposed_copies",
            event_intervals(trace, copies),
            union(roles["kernel"], roles["communication"], roles["dataloader"]),
            copies,
            on_device=True,
            value=len(copies),
            event=int(copies[np.argmax(trace.events.duration[copies])]),
        )


def _are_on_computing_streams(trace: Trace, copies: Int32) -> Bool:
    """Return bool[k]: which copies are on a stream with kernels that don't communicate."""
    if len(copies) == 0:
        return np.zeros(0, np.bool_)
    computing = distinct_codes(trace.events.thread.take(computing_kernels(trace)))
    on_stream: Bool = np.isin(trace.events.thread[copies], computing)
    return on_stream


def _group_by_origin(trace: Trace, copies: Int32) -> Iterator[tuple[str, Int32]]:
    """Yield copies to the device as (case, rows): those of an offloaded optimizer apart from the others."""
    offloaded = _is_offloaded(trace, copies)
    for case, rows in (("", copies[~offloaded]), ("offload", copies[offloaded])):
        if len(rows):
            yield case, rows


def _is_offloaded(trace: Trace, copies: Int32) -> Bool:
    """Return bool[k]: which copies to the device bring back what an optimizer on the host has updated.

    Gradients are copied to the host, and these are launched in the optimizer's step, or after it in the same step
    with the size of gradients: parameters have as many bytes. A batch doesn't have the size of a gradient.
    """
    updates = event_intervals(trace, optimizer_marks(trace)) if len(copies) else NO_INTERVALS
    if not len(updates.starts):
        return np.zeros(len(copies), np.bool_)
    links = device_links(trace)
    launch = cells_of_rows(links.rows, links.launch, copies, NO_CODE)
    time = np.where(launch >= 0, trace.events.start[launch], updates.starts[0] - 1)
    last = np.searchsorted(updates.starts, time, "right") - 1
    inside = (last >= 0) & (time < updates.ends[last])
    bounds = steps(trace).host_starts
    same_step = np.searchsorted(bounds, time, "right") == np.searchsorted(bounds, updates.starts[last], "right")
    to_host = rows_of_kind(trace, Kind.MEMCPY)
    sent = trace.arg_int("bytes", copies_to_host(trace, to_host))
    size = trace.arg_int("bytes", copies)
    sent = sent[sent >= MIN_GRADIENT_BYTES]
    offloaded: Bool = (len(sent) > 0) & (inside | ((last >= 0) & same_step & np.isin(size, sent)))
    return offloaded


def innermost_user_frame(trace: Trace, row: int) -> str:
    """Return the innermost frame around a call that isn't of a library; "" where none is recorded."""
    from torch_tb_profiler.analyses.tracks.sources import call_stack  # few traces get here

    operator = int(enclosing_operators(trace)[row])
    frames, _ = call_stack(trace, row, operator)
    return next((each.text for each in frames if is_user_frame(each.text)), "")


def _find_longest_stretch(during: Intervals) -> tuple[int, int] | None:
    if total(during) == 0:
        return None
    longest = int(np.argmax(during.ends - during.starts))
    return int(during.starts[longest]), int(during.ends[longest])
