"""What the tab asks for once it is open: the curve of one target, the pieces of the path."""

from __future__ import annotations

from torch_tb_profiler.analyses.critical_path.table import Candidate, candidate
from torch_tb_profiler.analyses.schedule.categories import CATEGORIES, path_pieces
from torch_tb_profiler.analyses.schedule.step_ends import recorded_spans
from torch_tb_profiler.analyses.schedule.what_if import curves
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.model.families import kernel_names
from torch_tb_profiler.model.schedule.schedule import schedule
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import NO_CODE, Trace
from torch_tb_profiler.view import TraceView
from torch_tb_profiler.views.critical_path import words
from torch_tb_profiler.views.critical_path.payload import (
    PathPiecesPayload,
    PiecesParams,
    TargetParams,
    TargetRow,
)


def target_row(trace: Trace, found: Candidate, curve: list[int] | None, count: int) -> TargetRow:
    """A row of the table, per mean step of `count`."""
    kind, _, name = found.target.partition(":")
    return TargetRow(
        target=found.target,
        kind=kind,
        title=words.title(kind, name, kernel_names(trace)),
        path_ns=found.path_ns / count,
        calls=found.calls / count,
        slack_ns=found.slack_ns,
        event=None if found.event == NO_CODE else found.event,
        step_ns=curve,
    )


def build_what_if(trace: Trace, params: TargetParams) -> TargetRow:
    """UsageError if the target cannot be read, NotFoundError if the steps have nothing of it."""
    found = candidate(trace, params.target)
    count = recorded_spans(trace).begin.shape[1]
    return target_row(trace, found, curves(trace, (params.target,))[0].tolist(), count)


def build_pieces(trace: Trace, params: PiecesParams) -> PathPiecesPayload:
    """NotFoundError if there is no complete step of the name."""
    pieces, names = path_pieces(trace), steps(trace).names
    chosen = slice(0, len(pieces.row))
    if params.step:
        if params.step not in names[: recorded_spans(trace).begin.shape[1]]:
            raise NotFoundError(f"there is no complete step {params.step!r}")
        number = names.index(params.step)
        chosen = slice(int((pieces.step < number).sum()), int((pieces.step <= number).sum()))
    begin, end = pieces.begin[chosen], pieces.end[chosen]
    return PathPiecesPayload(
        category=[CATEGORIES[each] for each in pieces.category[chosen][params.rows].tolist()],
        event=[None if row == NO_CODE else row for row in pieces.row[chosen][params.rows].tolist()],
        begin_ns=begin[params.rows].tolist(),
        duration_ns=(end - begin)[params.rows].tolist(),
        step=pieces.step[chosen][params.rows].tolist(),
        total=len(begin),
        clock_shift_ns=schedule(trace).clock_shift_ns,
    )


PARTS = (
    TraceView("critical_path/what_if", "What if", TargetParams, TargetRow, build_what_if),
    TraceView("critical_path/pieces", "Pieces of the path", PiecesParams, PathPiecesPayload, build_pieces),
)
