"""How each device spends its time: the track above its streams, and the details of one moment."""

from __future__ import annotations

import msgspec

from torch_tb_profiler.analyses.idle.device_time import (
    DEVICE_TIME_CATEGORIES,
    DeviceTimePart,
    device_time_lanes,
    find_moment,
)
from torch_tb_profiler.analyses.timeline.boxes import ArrayColumns, Grid, pyramid_columns, restore_pyramid
from torch_tb_profiler.analyses.timeline.counters import all_series, counter_id
from torch_tb_profiler.analyses.timeline.tile import arranged_tile
from torch_tb_profiler.analyses.tracks.flows import operator_of
from torch_tb_profiler.analyses.tracks.sources import name_of
from torch_tb_profiler.analyses.tracks.tracks import ROLES_BESIDE_WORK, device_labels, tracks
from torch_tb_profiler.base.errors import NotFoundError, UsageError
from torch_tb_profiler.base.memo import derived, seed_derived
from torch_tb_profiler.model.calls.missing import missing_kernels_reason
from torch_tb_profiler.model.schedule.unrecorded_waits import has_unrecorded_waits
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import NO_CODE, Trace
from torch_tb_profiler.view import CachedColumns, TraceView
from torch_tb_profiler.views._shared.text import Text
from torch_tb_profiler.views.trace import words
from torch_tb_profiler.views.trace.event import TraceRef, event_ref
from torch_tb_profiler.views.trace.payload import TILE_BUCKETS, Time, Width, WindowParams, check_order, first_tiles
from torch_tb_profiler.views.trace.tile import TraceTile, tile_payload

MAX_GAP_PARTS = 50
"""Most parts of a gap in one answer."""

BlameTracks = tuple[tuple[int, int], ...]
"""(device, track id) of each blame track."""


@derived
def blame_tracks(trace: Trace) -> BlameTracks:
    """Return the blame track of each device that works in a trace with a complete step; ids follow the ruler's.

    Empty if kernels are missing, because apparent idle time may not be idle.
    """
    table, first = tracks(trace), counter_id(trace, len(all_series(trace))) + 1
    if not steps(trace).complete.any() or missing_kernels_reason(trace) is not None:
        return ()
    groups = {t.group for t in table.tracks if t.kind == "stream" and t.role not in ROLES_BESIDE_WORK}
    devices = [table.groups[group].device for group in sorted(groups)]
    return tuple((device, first + i) for i, device in enumerate(d for d in devices if d is not None))


class BlameParams(WindowParams, frozen=True):
    """A window as for tiles."""

    width: Width = 1500


def build_blame(trace: Trace, params: BlameParams) -> TraceTile:
    """Build a tile of all blame tracks: one lane per category, whose depth and color index `categories`."""
    grid = Grid.of(params.begin, params.end, params.width)
    return tile_payload(
        arranged_tile(trace, grid, device_time_lanes, blame_tracks(trace)), params.begin, params.end
    )


def _first_blame_params(trace: Trace) -> tuple[BlameParams, ...]:
    windows = first_tiles(trace) if blame_tracks(trace) else ()
    return tuple(BlameParams(*window, TILE_BUCKETS) for window in windows)


def _restore_blame(trace: Trace, columns: ArrayColumns) -> None:
    seed_derived(trace, blame_tracks, value=restore_pyramid(trace, columns, device_time_lanes, BlameTracks))


class MomentParams(msgspec.Struct, frozen=True):
    """A device and a time, ns since the trace's start: the part that lies there.

    With `until`, the longest part that touches [at, until); with `category`, among those of it. `python`: whether
    Python frames are unfolded.
    """

    device: int
    at: Time
    until: Time | None = None
    category: str = ""
    python: bool = False

    def __post_init__(self) -> None:
        if self.until is not None:
            check_order(self.at, self.until)


class MomentPart(msgspec.Struct, frozen=True):
    """A part of a gap; `event`: what caused it, null if nothing was recorded."""

    category: str
    begin_ns: int
    end_ns: int
    event: int | None
    name: str | None


class TraceMoment(msgspec.Struct, frozen=True):
    """What a device does at one moment.

    headline    how long it is idle there and why; for work: what runs
    emptied     what drained the queue before the gap; empty for work
    evidence    link to the row of the Idle time view that this is part of; empty for work
    track       of the blame track
    category    a text of `TracePayload.categories`, in [begin_ns, end_ns)
    gap_begin_ns, gap_end_ns  the entire gap; null for work
    subject     the cause, or the item that runs; null if nothing was recorded
    operator    the operator that the subject lies in or that launched it
    emptied_by  the call that drained the queue; null: the device caught up with the host
    parts       of the gap, the 50 longest, in order of time; `more` are left out
    """

    headline: Text
    emptied: Text
    evidence: Text
    device: int
    track: int
    category: str
    begin_ns: int
    end_ns: int
    step: str
    gap_begin_ns: int | None
    gap_end_ns: int | None
    subject: TraceRef | None
    operator: TraceRef | None
    emptied_by: TraceRef | None
    parts: list[MomentPart]
    more: int


def build_moment(trace: Trace, params: MomentParams) -> TraceMoment:
    """Build the details of one moment.

    Raise NotFoundError if nothing ran on the device, kernels are missing, or no complete step has such a part.
    """
    if params.category and params.category not in DEVICE_TIME_CATEGORIES:
        allowed = ", ".join(DEVICE_TIME_CATEGORIES)
        raise UsageError(f"there is no category {params.category!r}", hint=f"categories: {allowed}")
    if (reason := missing_kernels_reason(trace)) is not None:
        raise NotFoundError(f"can't tell what the device does: {reason}")
    until = params.at + 1 if params.until is None else params.until
    code = DEVICE_TIME_CATEGORIES.index(params.category) if params.category else None
    moment = find_moment(trace, params.device, params.at, until, code)
    part, gap = moment.part, moment.gap
    category = DEVICE_TIME_CATEGORIES[part.category]
    device = device_labels(trace)[params.device].partition(" · ")[0]
    blamed = NO_CODE if category == "unrecorded" else part.row  # a step alone says nothing
    operator_row = operator_of(trace, part.row) if part.row != NO_CODE else NO_CODE
    subject, operator, emptied_by = (
        _optional_ref(trace, row, params.python)
        for row in (blamed, operator_row, gap.emptied_by if gap else NO_CODE)
    )
    time = part.end - part.begin
    emptied: Text = ()
    evidence: Text = ()
    if gap is None:
        headline = words.device_runs(device, subject.short_name if subject else None, time)
    else:
        headline = words.device_idle(device, category, time, gap.end - gap.begin)
        call = (emptied_by.name, emptied_by.event) if emptied_by else (None, None)
        emptied = words.queue_drained(device, *call, waits_unrecorded=has_unrecorded_waits(trace))
        evidence = words.idle_row_link(category, name_of(trace, part.row) if subject else None, params.device)
    return TraceMoment(
        headline=headline,
        emptied=emptied,
        evidence=evidence,
        device=params.device,
        track=dict(blame_tracks(trace))[params.device],
        category=category,
        begin_ns=part.begin,
        end_ns=part.end,
        step=moment.step,
        gap_begin_ns=gap.begin if gap else None,
        gap_end_ns=gap.end if gap else None,
        subject=subject,
        operator=operator,
        emptied_by=emptied_by,
        parts=[_build_part(trace, gap_part) for gap_part in gap.longest(MAX_GAP_PARTS)] if gap else [],
        more=max(len(gap.parts) - MAX_GAP_PARTS, 0) if gap else 0,
    )


def _optional_ref(trace: Trace, row: int, python: bool) -> TraceRef | None:
    return None if row == NO_CODE else event_ref(trace, row, python)


def _build_part(trace: Trace, part: DeviceTimePart) -> MomentPart:
    has_row = part.row != NO_CODE
    return MomentPart(
        category=DEVICE_TIME_CATEGORIES[part.category],
        begin_ns=part.begin,
        end_ns=part.end,
        event=part.row if has_row else None,
        name=name_of(trace, part.row) if has_row else None,
    )


PARTS = (
    TraceView(
        "trace/blame",
        "Device time",
        BlameParams,
        TraceTile,
        build_blame,
        answers="How each device spends a window, as slices: work and causes of idle time.",
        first=_first_blame_params,
        columns=CachedColumns(
            lambda trace: pyramid_columns(trace, device_time_lanes, blame_tracks(trace)), _restore_blame
        ),
    ),
    TraceView("trace/moment", "Device at one moment", MomentParams, TraceMoment, build_moment),
)
