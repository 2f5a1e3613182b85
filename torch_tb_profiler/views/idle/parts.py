"""What the page asks for once the tab is open: the gaps of a row, and the flame graph."""

from __future__ import annotations

from torch_tb_profiler.analyses.idle.flame import idle_flame_graph
from torch_tb_profiler.analyses.idle.table import idle_table
from torch_tb_profiler.analyses.schedule.causes import CAUSE_NAMES
from torch_tb_profiler.analyses.schedule.gaps import default_device
from torch_tb_profiler.analyses.tracks.sources import name_of
from torch_tb_profiler.base.errors import NotFoundError, UsageError
from torch_tb_profiler.model.kernels.short_names import display_name
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import TraceView
from torch_tb_profiler.views.idle.payload import (
    IdleFlamePayload,
    IdleFrame,
    IdleGapRow,
    IdleGapsParams,
    IdleGapsPayload,
    IdleParams,
)


def build_gaps(trace: Trace, params: IdleGapsParams) -> IdleGapsPayload:
    """Raises UsageError for an unknown cause, NotFoundError where the table has no such row."""
    if params.cause not in CAUSE_NAMES:
        raise UsageError(f"there is no cause {params.cause!r}", hint=f"causes: {', '.join(CAUSE_NAMES)}")
    table = idle_table(trace, _device(trace, params), params.stream, params.by, params.step)
    wanted = CAUSE_NAMES.index(params.cause)
    rows = [at for at, cause in enumerate(table.cause.tolist()) if cause == wanted]
    if params.subject is not None:
        rows = [at for at in rows if table.subject[at] == params.subject]
    if not rows:
        raise NotFoundError(f"no idle time is attributed to {params.cause} {params.subject or ''}".rstrip())
    idle, names = table.segments, steps(trace).names
    parts = [part for at in rows for part in table.members(at).tolist()]
    parts.sort(key=lambda part: int(idle.begin[part] - idle.end[part]))
    listed = []
    for part in parts[params.rows]:
        row, emptied = int(idle.row[part]), int(idle.gaps.emptied_by[idle.gap[part]])
        listed.append(
            IdleGapRow(
                begin_ns=int(idle.begin[part]),
                end_ns=int(idle.end[part]),
                step=names[idle.step[part]],
                event=row if row >= 0 else None,
                name=name_of(trace, row) if row >= 0 else None,
                short_name=display_name(trace, row, name_of(trace, row)) if row >= 0 else None,
                emptied_by=emptied if emptied >= 0 else None,
            )
        )
    return IdleGapsPayload(len(parts), sum(int(table.time[at]) for at in rows), listed)


def build_flame(trace: Trace, params: IdleParams) -> IdleFlamePayload:
    flame = idle_flame_graph(trace, _device(trace, params), params.stream, params.step)
    columns = (flame.cause.tolist(), flame.parent.tolist(), flame.value.tolist(), flame.event.tolist())
    frames = [
        IdleFrame(
            name=name or CAUSE_NAMES[cause],
            short_name=display_name(trace, event, name) if event >= 0 else CAUSE_NAMES[cause],
            cause=CAUSE_NAMES[cause],
            parent=parent if parent >= 0 else None,
            value_ns=value,
            event=event if event >= 0 else None,
        )
        for name, cause, parent, value, event in zip(flame.names, *columns, strict=True)
    ]
    return IdleFlamePayload(flame.total, frames)


def _device(trace: Trace, params: IdleParams | IdleGapsParams) -> int:
    device = default_device(trace) if params.device is None else params.device
    if device is None:
        raise NotFoundError("no device work is recorded")
    return device


PARTS = (
    TraceView(
        "idle/gaps",
        "Gaps",
        IdleGapsParams,
        IdleGapsPayload,
        build_gaps,
        answers="The gaps of one cause, longest first.",
    ),
    TraceView(
        "idle/flame",
        "Idle flame graph",
        IdleParams,
        IdleFlamePayload,
        build_flame,
        answers="Idle time by what the host ran meanwhile, as a flame graph.",
    ),
)
