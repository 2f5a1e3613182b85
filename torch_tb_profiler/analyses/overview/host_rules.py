"""Rules about the host: for what it does, the device waits. Each instant counts for the first rule that has it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from torch_tb_profiler.analyses.overview.calls import calls
from torch_tb_profiler.analyses.overview.finding import Finding
from torch_tb_profiler.analyses.overview.idle import (
    after,
    covering,
    device_busy,
    host_late,
    idle,
    long_stretches,
    short_stretches,
)
from torch_tb_profiler.analyses.overview.job import job
from torch_tb_profiler.analyses.overview.unrecorded import host_alone
from torch_tb_profiler.analyses.shared.breakdown import role_intervals
from torch_tb_profiler.analyses.shared.grouping import group
from torch_tb_profiler.analyses.tracks.sources import call_stack
from torch_tb_profiler.base.arrays import median
from torch_tb_profiler.base.intervals import Intervals, intersect, merge, subtract, total, union
from torch_tb_profiler.base.markers import is_user_frame
from torch_tb_profiler.model.calls.calltree import enclosing_operators
from torch_tb_profiler.model.calls.links import device_launches
from torch_tb_profiler.model.kinds import DEVICE_KINDS, Kind, event_ends, event_kinds, rows_of_kind
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Int32, Trace, name_mask
from torch_tb_profiler.model.trainer import loading_per_batch

LEAST_LAUNCHES = 20
"""Fewer launches cannot bound a step."""

_CASES = {
    Kind.PYTHON: "code",
    Kind.ANNOTATION: "code",
    Kind.CPU_OP: "operator",
    Kind.RUNTIME: "call",
    Kind.DRIVER: "call",
}


def host_rules(trace: Trace) -> Iterator[Finding]:
    """In order of precedence."""
    passes = device_busy(trace)
    for rule in (_data_loading, _start_up, _allocator, _synchronization, _host_code, _launch_bound):
        for finding in rule(trace, passes):
            yield msgspec.structs.replace(finding, passes=passes)
            passes = union(passes, finding.during)


def _data_loading(trace: Trace, passes: Intervals) -> Iterator[Finding]:
    during = role_intervals(trace)["dataloader"]
    if len(during.starts):
        times = loading_per_batch(trace)
        case = {True: "workers", False: "process", None: "process" if times is None else "trainer"}[
            job(trace).workers
        ]
        yield Finding("data_loading", during, case=case, value=times, window=_longest(subtract(during, passes)))


def _start_up(trace: Trace, passes: Intervals) -> Iterator[Finding]:
    yield from _calls("start_up", trace, calls(trace).starting, passes)


def _allocator(trace: Trace, passes: Intervals) -> Iterator[Finding]:
    yield from _calls("allocator", trace, calls(trace).allocating, passes)


def _calls(id: str, trace: Trace, rows: Int32, passes: Intervals) -> Iterator[Finding]:
    during = intersect(idle(trace), merge(trace.events.start[rows], event_ends(trace)[rows]))
    during = subtract(during, passes)
    if len(during.starts):
        longest = int(rows[np.argmax(trace.events.duration[rows])])
        yield Finding(
            id,
            during,
            subject=trace.strings[trace.events.name[longest]],
            place=place_of(trace, longest),
            value=len(rows),
            event=longest,
        )


def _synchronization(trace: Trace, passes: Intervals) -> Iterator[Finding]:
    rows = calls(trace).waiting
    if len(rows) == 0:
        return
    during, which = after(host_late(trace), trace.events.start[rows], event_ends(trace)[rows])
    if len(during.starts) == 0:
        return
    # The operator whose waits cost most stands for all of them.
    operators = enclosing_operators(trace)[rows[which]]
    names = np.where(operators >= 0, trace.events.name[operators], -1)
    groups = group(names)
    worst = int(np.argmax(groups.sums(during.ends - during.starts)))
    mine = groups.members(worst)
    longest = int(mine[np.argmax((during.ends - during.starts)[mine])])
    event, operator = int(rows[which[longest]]), int(operators[longest])
    yield Finding(
        "synchronization",
        during,
        subject=trace.strings[trace.events.name[event if operator < 0 else operator]],
        place=place_of(trace, event),
        value=len(np.unique(which)),
        rows=rows[np.unique(which)],
        event=event,
        window=(int(trace.events.start[event]), int(during.ends[longest])),
    )


def _host_code(trace: Trace, passes: Intervals) -> Iterator[Finding]:
    if len(rows_of_kind(trace, *DEVICE_KINDS)) == 0:
        yield from _alone(trace)
    stretches = long_stretches(subtract(host_late(trace), passes))
    for stretch in covering(trace, stretches)[:1]:
        case = _CASES[Kind(event_kinds(trace)[stretch.event])]
        yield Finding(
            "host_code",
            stretch.during,
            case=case,
            subject=stretch.name,
            event=stretch.event,
            window=_longest(stretch.during),
        )


def _alone(trace: Trace) -> Iterator[Finding]:
    """Without a device, what takes time beside the operators."""
    stretch = host_alone(trace)
    if stretch is not None and steps(trace).recorded:
        window = _longest(stretch.during)
        yield Finding(
            "host_code", stretch.during, case="alone", subject=stretch.name, event=stretch.event, window=window
        )


def _launch_bound(trace: Trace, passes: Intervals) -> Iterator[Finding]:
    """Many short waits, each until the host has launched what follows."""
    device, launch = device_launches(trace)
    linked = device[launch >= 0]
    if job(trace).graphs or len(linked) < LEAST_LAUNCHES:
        return
    during = subtract(short_stretches(host_late(trace)), passes)
    if len(during.starts):
        item = median((event_ends(trace) - trace.events.start)[linked])
        yield Finding("launch_bound", during, value=item, window=_longest(during))


def pageable_copies(trace: Trace) -> Iterator[Finding]:
    """Copies to the device from memory that is not pinned, while nothing computes."""
    copies = rows_of_kind(trace, Kind.MEMCPY)
    pageable = name_mask(trace.strings, lambda text: "HtoD" in text and "Pageable" in text)
    copies = copies[pageable[trace.events.name[copies]]]
    if len(copies):
        roles = role_intervals(trace)
        others = union(roles["kernel"], roles["communication"], roles["dataloader"])
        during = merge(trace.events.start[copies], event_ends(trace)[copies])
        longest = int(copies[np.argmax(trace.events.duration[copies])])
        yield Finding("pageable_copies", during, others, copies, value=len(copies), event=longest)


def place_of(trace: Trace, row: int) -> str:
    """The innermost frame around a call that is not of a library; "" where none is recorded."""
    operator = int(enclosing_operators(trace)[row])
    frames, _ = call_stack(trace, row, operator)
    return next((each.text for each in frames if is_user_frame(each.text)), "")


def _longest(during: Intervals) -> tuple[int, int] | None:
    if total(during) == 0:
        return None
    at = int(np.argmax(during.ends - during.starts))
    return int(during.starts[at]), int(during.ends[at])
