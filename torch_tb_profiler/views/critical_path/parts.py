"""What the tab asks for once it is open: the curve of one target, the pieces of the path."""

from __future__ import annotations

from torch_tb_profiler.analyses.critical_path.candidates import SpeedupCandidate, find_candidate
from torch_tb_profiler.analyses.critical_path.slices import path_groups
from torch_tb_profiler.analyses.schedule.path import PATH_CATEGORIES, path_segments
from torch_tb_profiler.analyses.schedule.step_spans import recorded_spans
from torch_tb_profiler.analyses.schedule.what_if import what_if_curves
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.model.kernels.short_names import short_kernel_names
from torch_tb_profiler.model.schedule.schedule import schedule
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import NO_CODE, Trace
from torch_tb_profiler.view import TraceView
from torch_tb_profiler.views._shared.text import reason_texts
from torch_tb_profiler.views.critical_path import words
from torch_tb_profiler.views.critical_path.payload import (
    PathGroupRow,
    PathGroupsParams,
    PathGroupsPayload,
    PathSegmentsParams,
    PathSegmentsPayload,
    TargetParams,
    TargetRow,
)

MOST_GROUPS = 200
"""Names that are sent; the rest is summed up in one row."""


def target_row(trace: Trace, row: SpeedupCandidate, curve: list[int] | None, count: int) -> TargetRow:
    """A row of the table, per mean step of `count`."""
    kind, _, name = row.target.partition(":")
    return TargetRow(
        target=row.target,
        kind=kind,
        title=words.title(kind, name, short_kernel_names(trace)),
        path_ns=row.path_ns / count,
        calls=row.calls / count,
        slack_ns=row.slack_ns,
        event=None if row.event == NO_CODE else row.event,
        step_ns=curve,
    )


def build_what_if(trace: Trace, params: TargetParams) -> TargetRow:
    """UsageError if the target cannot be read, NotFoundError if the steps have nothing of it."""
    chosen = find_candidate(trace, params.target)
    count = recorded_spans(trace).begin.shape[1]
    return target_row(trace, chosen, what_if_curves(trace, (params.target,))[0].tolist(), count)


def build_pieces(trace: Trace, params: PathSegmentsParams) -> PathSegmentsPayload:
    """NotFoundError if there is no complete step of the name."""
    pieces, number = path_segments(trace), _step(trace, params.step)
    chosen = slice(0, len(pieces.row))
    if number is not None:
        chosen = slice(int((pieces.step < number).sum()), int((pieces.step <= number).sum()))
    begin, end = pieces.begin[chosen], pieces.end[chosen]
    return PathSegmentsPayload(
        category=[PATH_CATEGORIES[each] for each in pieces.category[chosen][params.rows].tolist()],
        event=[None if row == NO_CODE else row for row in pieces.row[chosen][params.rows].tolist()],
        begin_ns=begin[params.rows].tolist(),
        duration_ns=(end - begin)[params.rows].tolist(),
        step=pieces.step[chosen][params.rows].tolist(),
        total=len(begin),
        clock_shift_ns=schedule(trace).clock_shift_ns,
    )


def build_groups(trace: Trace, params: PathGroupsParams) -> PathGroupsPayload:
    """NotFoundError if there is no complete step of the name."""
    number, spans = _step(trace, params.step), recorded_spans(trace)
    groups = path_groups(trace, params.by, number)
    count = spans.begin.shape[1] if number is None else 1
    rows = [
        PathGroupRow(
            name=name,
            title=words.NOWHERE[params.by] if name is None else name,
            time_ns=sum(times) / count,
            host_ns=times[0] / count,
            device_ns=times[1] / count,
            latency_ns=times[2] / count,
            target=target,
            event=None if event == NO_CODE else event,
            others=0,
        )
        for name, target, times, event in zip(
            groups.name, groups.target, groups.times.tolist(), groups.event.tolist(), strict=True
        )
    ]
    return PathGroupsPayload(
        by=params.by,
        duration_ns=int(groups.times.sum()) / count,
        steps=count,
        rows=[*rows[:MOST_GROUPS], *_rest(rows[MOST_GROUPS:])],
        reasons=reason_texts({} if groups.name != (None,) else {"rows": words.no_places(trace, params.by)}),
    )


def _rest(rows: list[PathGroupRow]) -> list[PathGroupRow]:
    """The small rows as one."""
    if not rows:
        return []
    total = PathGroupRow(
        name=None,
        title=f"{len(rows):,} more",
        time_ns=sum(row.time_ns for row in rows),
        host_ns=sum(row.host_ns for row in rows),
        device_ns=sum(row.device_ns for row in rows),
        latency_ns=sum(row.latency_ns for row in rows),
        target=None,
        event=None,
        others=len(rows),
    )
    return [total]


def _step(trace: Trace, name: str) -> int | None:
    """The number of a step among the complete ones, None for no name; NotFoundError if no step has it."""
    complete = steps(trace).names[: recorded_spans(trace).begin.shape[1]]
    if not name:
        return None
    if name not in complete:
        raise NotFoundError(f"there is no complete step {name!r}")
    return complete.index(name)


PARTS = (
    TraceView("critical_path/what_if", "What if", TargetParams, TargetRow, build_what_if),
    TraceView("critical_path/groups", "Path by place", PathGroupsParams, PathGroupsPayload, build_groups),
    TraceView("critical_path/pieces", "Pieces of the path", PathSegmentsParams, PathSegmentsPayload, build_pieces),
)
