"""What could be made faster, in order of its time on the path; how much slack it has, and what it would bring."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

import msgspec
import numpy as np

from torch_tb_profiler.analyses.critical_path.slack import UNBOUNDED, slack
from torch_tb_profiler.analyses.schedule.host_time import HOST_CATEGORIES, HostPieces, host_pieces
from torch_tb_profiler.analyses.schedule.path import PieceKind, critical_path
from torch_tb_profiler.analyses.schedule.step_ends import recorded_spans, step_items
from torch_tb_profiler.analyses.schedule.targets import ALONE, sync_names, target
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.base.intervals import Intervals, covered_time, merge
from torch_tb_profiler.base.markers import MODULE_PREFIX, is_data_loading, is_step
from torch_tb_profiler.base.median import median
from torch_tb_profiler.model.communication.events import communication_kernels
from torch_tb_profiler.model.communication.names import collective_of_kernel
from torch_tb_profiler.model.kinds import Kind, event_ends, rows_of_kind
from torch_tb_profiler.model.schedule.schedule import schedule
from torch_tb_profiler.model.trace import NO_CODE, Int32, Int64, Trace, derived, distinct_codes

_MOST_NAMES = 20
"""Names of a kind that are looked at: those with most time on the path, or most time at all on the device."""

_HOST_KINDS = {
    "operator": (Kind.CPU_OP, Kind.ANNOTATION),
    "module": (Kind.PYTHON,),
    "call": (Kind.RUNTIME, Kind.DRIVER),
}


class Candidate(msgspec.Struct, frozen=True):
    """A target, its time on the path of all complete steps in ns, its calls in them, and its slack.

    slack_ns  half of its calls may take at least this much longer, each alone; None if nothing waits for them
    event     row of its call with most time on the path, else of the first; NO_CODE for the host as a whole
    """

    target: str
    path_ns: int
    calls: int
    slack_ns: int | None
    event: int


@derived
def candidates(trace: Trace) -> tuple[Candidate, ...]:
    """Targets of every kind with time in the complete steps, most time on the path first."""
    all_candidates = [
        _candidate(trace, spelled) for spelled in (*ALONE, *_host_names(trace), *_device_names(trace))
    ]
    known = [each for each in all_candidates if each is not None]
    return tuple(sorted(known, key=lambda each: each.path_ns, reverse=True))


def candidate(trace: Trace, spelled: str) -> Candidate:
    """What the table would say of a target; NotFoundError if the complete steps have nothing of it."""
    match = _candidate(trace, spelled)
    if match is None:
        raise NotFoundError(f"the complete steps have nothing of {spelled!r}")
    return match


def _host_names(trace: Trace) -> Iterator[str]:
    """Operators, modules and calls with most time on the path, that of what they call included."""
    for word, of in _HOST_KINDS.items():
        rows = rows_of_kind(trace, *of)
        rows = rows[trace.events.name[rows] >= 0]  # an event may have no name
        # By time, not by what calls what: an annotation whose ends lie in Python frames does not nest with them.
        sums = np.bincount(trace.events.name[rows], weights=_spent(trace, rows))
        ordered = (trace.strings[code] for code in np.argsort(-sums, kind="stable").tolist() if sums[code] > 0)
        yield from islice((f"{word}:{name}" for name in map(_MEANT[word], ordered) if name), _MOST_NAMES)


def _not_counted_elsewhere(text: str) -> str | None:
    return None if is_step(text) or is_data_loading(text) else text


_MEANT: dict[str, Callable[[str], str | None]] = {
    "operator": _not_counted_elsewhere,
    "module": lambda text: text[len(MODULE_PREFIX) :] if text.startswith(MODULE_PREFIX) else None,
    "call": lambda text: text,
}
"""What an event's name says of a target of each kind; None if it is no such target."""


def _device_names(trace: Trace) -> Iterator[str]:
    """Kernels and copies with most time, every collective, every wait for the device."""
    work = schedule(trace).items
    inside = step_items(trace).order
    inside = inside[trace.events.name[work.row[inside]] >= 0]
    names, talking = trace.events.name[work.row[inside]], communication_kernels(trace)[work.row[inside]]
    duration = (work.end - work.start)[inside]
    sums = np.bincount(names[~talking], weights=duration[~talking])
    for code in np.argsort(-sums, kind="stable")[:_MOST_NAMES].tolist():
        if sums[code] > 0:
            yield f"kernel:{trace.strings[code]}"
    yield from (
        f"collective:{name}"
        for name in sorted(
            {collective_of_kernel(trace.strings[code]) for code in np.unique(names[talking]).tolist()}
        )
    )
    waits, counts = np.unique(sync_names(trace), return_counts=True)
    for at in np.argsort(-counts, kind="stable")[:_MOST_NAMES].tolist():
        if waits[at] >= 0:
            yield f"sync:{trace.strings[waits[at]]}"


def _candidate(trace: Trace, spelled: str) -> Candidate | None:
    try:
        part = target(trace, spelled)
    except NotFoundError:
        return None
    graph, path, spans = schedule(trace), critical_path(trace), recorded_spans(trace)
    begin, end = int(spans.begin[0, 0]), int(spans.end[0, -1])
    room = slack(trace)
    if spelled == "host":
        pieces = host_pieces(trace)
        return Candidate(spelled, int((pieces.end - pieces.begin).sum()), 0, None, NO_CODE)
    if part.items.any():
        inside = np.zeros(len(graph.items), np.bool_)
        inside[step_items(trace).order] = True
        mine = part.items & inside
        device = path.kind == PieceKind.DEVICE
        spent = np.zeros(len(graph.items), np.int64)
        np.add.at(spent, path.ref[device], (path.end - path.begin)[device])
        return _known(spelled, int(spent[mine].sum()), graph.items.row[mine], spent[mine], room.items[mine])
    if part.edges.any():
        calls = np.unique(graph.edges.call[part.edges])
        calls = calls[(trace.events.start[calls] >= begin) & (trace.events.start[calls] < end)]
        waking = (path.kind == PieceKind.WAKE_UP) & np.isin(path.ref, calls)
        spent = np.zeros(len(calls), np.int64)
        np.add.at(spent, np.searchsorted(calls, path.ref[waking]), (path.end - path.begin)[waking])
        return _known(spelled, int(spent.sum()), calls, spent, room.points[graph.edges.target[part.edges]])
    start = trace.events.start[part.rows]
    calls = part.rows[(start >= begin) & (start < end)]
    time = graph.points.time
    mine = (part.host > 0) & (time > begin) & (time <= end)
    return _known(spelled, _host_path(trace, spelled, part.rows), calls, _spent(trace, calls), room.points[mine])


def _known(spelled: str, path_ns: int, calls: Int32, spent: Int64, room: Int64) -> Candidate | None:
    if len(calls) == 0:
        return None
    bounded = room[room < UNBOUNDED // 2]
    middle = int(median(bounded)) if len(bounded) else None
    return Candidate(spelled, path_ns, len(calls), middle, int(calls[np.argmax(spent)]))


def _spent(trace: Trace, calls: Int32) -> Int64:
    """int64[k]: ns of the path's host time inside each of these slices, or in what it calls."""
    spent = np.zeros(len(calls), np.int64)
    for code, pieces in _pieces_by_thread(trace):
        of = np.flatnonzero(trace.events.thread[calls] == code)
        spent[of] = covered_time(pieces, trace.events.start[calls[of]], event_ends(trace)[calls[of]])
    return spent


def _host_path(trace: Trace, spelled: str, rows: Int32) -> int:
    """ns of the path's host time inside the slices of a target."""
    if spelled == "data_loading":
        return _sum_of(host_pieces(trace), HOST_CATEGORIES.index("data_loading"))
    begin, finish, thread = trace.events.start[rows], event_ends(trace)[rows], trace.events.thread[rows]
    total = 0
    for code, pieces in _pieces_by_thread(trace):
        of = thread == code
        if of.any():
            total += int(covered_time(merge(begin[of], finish[of]), pieces.starts, pieces.ends).sum())
    return total


@derived
def _pieces_by_thread(trace: Trace) -> list[tuple[int, Intervals]]:
    """(thread code, when the path is on it)."""
    pieces = host_pieces(trace)
    return [
        (code, merge(pieces.begin[pieces.thread == code], pieces.end[pieces.thread == code]))
        for code in distinct_codes(pieces.thread)
    ]


def _sum_of(pieces: HostPieces, category: int) -> int:
    return int((pieces.end - pieces.begin)[pieces.category == category].sum())
