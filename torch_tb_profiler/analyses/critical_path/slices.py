"""What the critical path runs through: slices of the timeline, and operators, modules, and lines of the program.

    thread  [ data ][ launch ]  [ add ]     path: data and the launch, then a; add is not on it
    stream                  [ a ]

Slices are on the clocks that the trace was recorded with. Segments without a slice (latencies, host time in which
nothing is recorded) are on no slice, but belong to a place of the program: that of what starts after them.
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.schedule.path import PATH_CATEGORIES, category_group, path_segments
from torch_tb_profiler.analyses.schedule.places import PlaceKind, program_places
from torch_tb_profiler.analyses.schedule.step_spans import recorded_spans
from torch_tb_profiler.analyses.shared.grouping import group
from torch_tb_profiler.analyses.tracks.tracks import tracks_of
from torch_tb_profiler.base.arrays import highest_by_number, sums_by_number
from torch_tb_profiler.base.markers import MODULE_PREFIX
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.kinds import Kind, rows_of_kind
from torch_tb_profiler.model.schedule.schedule import schedule
from torch_tb_profiler.model.trace import Bool, Int32, Int64, Trace, distinct_codes

_GROUPS = ("host", "device", "latency")
_GROUP_OF_CATEGORY = np.array([_GROUPS.index(category_group(category)) for category in PATH_CATEGORIES])


class PathSlices(msgspec.Struct, frozen=True):
    """The slices on the path, in its order; columns of length k.

    row         int32  the innermost slice, or the device work
    track       int32  the track that it is drawn on
    begin, end  int64  ns since the trace's start, begin < end
    """

    row: Int32
    track: Int32
    begin: Int64
    end: Int64

    def __getitem__(self, chosen: Bool | Int64) -> PathSlices:
        return PathSlices(self.row[chosen], self.track[chosen], self.begin[chosen], self.end[chosen])


class PathGroups(msgspec.Struct, frozen=True):
    """The path by place, most time first; columns of length g that together tile the path.

    name    None: segments that belong to no place of the kind
    target  the place as a what-if target, None for a module or line that occurs in operators' arguments only
    times   int64[g, 3]  ns on the host, on the device and in latencies, over all chosen steps
    event   int32  row of the longest segment, NO_CODE if nothing is recorded there
    """

    name: tuple[str | None, ...]
    target: tuple[str | None, ...]
    times: Int64
    event: Int32


@derived
def path_slices(trace: Trace) -> PathSlices:
    """Return the slices on the path of all complete steps."""
    segments = path_segments(trace)
    group_of_segment = _GROUP_OF_CATEGORY[segments.category]
    shift = np.where(group_of_segment == _GROUPS.index("device"), schedule(trace).clock_shift_ns, 0)
    chosen = (group_of_segment != _GROUPS.index("latency")) & (segments.row >= 0)
    row = segments.row[chosen]
    begin, end = (segments.begin - shift)[chosen], (segments.end - shift)[chosen]
    return PathSlices(row, tracks_of(trace, row), begin, end)


def path_slices_between(trace: Trace, begin: int, end: int, max_slices: int) -> PathSlices:
    """Return the slices on the path that touch [begin, end).

    If there are more than `max_slices`, neighbors on one track with less than 1/`max_slices` of the window between
    them become one: the longest of them, from the first begin to the last end.
    """
    path = path_slices(trace)
    inside = path[(path.begin < end) & (path.end > begin)]
    if len(inside.row) <= max_slices:
        return inside
    starts_run = np.diff(inside.track, prepend=-1) != 0
    starts_run[1:] |= (inside.begin[1:] - inside.end[:-1]) * max_slices > end - begin
    first, length = np.flatnonzero(starts_run), inside.end - inside.begin
    max_length = np.maximum.reduceat(length, first)
    run = np.repeat(np.arange(len(first)), np.diff(first, append=len(length)))
    candidates = np.flatnonzero(length == max_length[run])
    longest = np.empty(len(first), np.int64)
    longest[run[candidates]] = candidates  # the last write wins
    return PathSlices(
        row=inside.row[longest],
        track=inside.track[first],
        begin=inside.begin[first],
        end=np.maximum.reduceat(inside.end, first),
    )


@derived
def path_groups(trace: Trace, by: PlaceKind, step: int | None = None) -> PathGroups:
    """Return the path of the typical steps, or of a complete one by its number, grouped by place.

    A latency belongs to what starts after it.
    """
    segments = path_segments(trace)
    counted = (
        recorded_spans(trace).typical if step is None else np.arange(recorded_spans(trace).end.shape[1]) == step
    )
    chosen = np.flatnonzero(counted[segments.step])
    row, length = segments.row[chosen], (segments.end - segments.begin)[chosen]
    code, texts = program_places(trace, row, by)
    groups = group(code)
    cell = groups.which * len(_GROUPS) + _GROUP_OF_CATEGORY[segments.category[chosen]]
    times = sums_by_number(cell, length, len(groups) * len(_GROUPS)).reshape(len(groups), len(_GROUPS))
    longest = np.empty(len(groups), np.int64)
    candidates = np.flatnonzero(length == highest_by_number(groups.which, length, len(groups))[groups.which])
    longest[groups.which[candidates]] = candidates  # the last write wins
    order = np.argsort(-times.sum(axis=1), kind="stable")
    names = tuple(texts[each] if each >= 0 else None for each in code[groups.first[order]].tolist())
    return PathGroups(
        name=names,
        target=tuple(_what_if_target(trace, by, name) for name in names),
        times=times[order],
        event=row[longest[order]],
    )


def _what_if_target(trace: Trace, by: PlaceKind, name: str | None) -> str | None:
    frame = MODULE_PREFIX + name if by == "module" and name else name
    recorded = name is not None and (by == "operator" or frame in _python_frames(trace))
    return f"{by}:{name}" if recorded else None


@derived
def _python_frames(trace: Trace) -> frozenset[str]:
    """Return the names of the recorded Python frames."""
    codes = distinct_codes(trace.events.name[rows_of_kind(trace, Kind.PYTHON)])
    return frozenset(trace.strings[code] for code in codes if code >= 0)
