"""Idle time: why the device waits, cause by cause."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import structs

from torch_tb_profiler.analyses.idle.device_time import DeviceStepTimes, device_step_times
from torch_tb_profiler.analyses.idle.table import IdleTable, idle_gains, idle_table
from torch_tb_profiler.analyses.launches.calls import launch_pace
from torch_tb_profiler.analyses.schedule.causes import CAUSE_NAMES
from torch_tb_profiler.analyses.schedule.gaps import default_device
from torch_tb_profiler.analyses.schedule.what_if import replay_unavailable_reason
from torch_tb_profiler.analyses.shared.breakdown import no_host
from torch_tb_profiler.analyses.tracks.sources import name_of
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.model.calls.missing import missing_copies_reason, missing_kernels_reason
from torch_tb_profiler.model.devices import device_kind
from torch_tb_profiler.model.health import is_truncated
from torch_tb_profiler.model.kernels.short_names import display_name
from torch_tb_profiler.model.kinds import DEVICE_KINDS, Kind, rows_of_kind
from torch_tb_profiler.model.schedule.items import clock_shift_ns, device_items
from torch_tb_profiler.model.schedule.schedule import schedule
from torch_tb_profiler.model.steps import has_host_events, steps
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.model.vendors.recording_options import missing_device_work_reason
from torch_tb_profiler.view import RankView, Tab, TraceView
from torch_tb_profiler.views._shared.job.exposed import MAX_RANKS_READ
from torch_tb_profiler.views._shared.job.members import RANK_SUMMARIES
from torch_tb_profiler.views._shared.text import Text, reason_texts
from torch_tb_profiler.views._shared.wording import truncation_sentence
from torch_tb_profiler.views.idle.launches import LAUNCH_PARTS
from torch_tb_profiler.views.idle.parts import PARTS
from torch_tb_profiler.views.idle.payload import (
    IdleCauseTotal,
    IdleParams,
    IdlePayload,
    IdleRow,
    IdleStep,
    IdleStream,
)
from torch_tb_profiler.views.idle.ranks import build as beside
from torch_tb_profiler.views.idle.words import WAITING, explanation, headline, limits

MOST_SUBJECTS = 40
"""Rows of each cause that are sent; the rest is summed up in one."""


def build(trace: Trace, params: IdleParams) -> IdlePayload:
    """Raises NotFoundError for an unknown step, device or stream."""
    device = default_device(trace) if params.device is None else params.device
    if device is None:
        raise NotFoundError("no device work is recorded")
    table = idle_table(trace, device, params.stream, params.by, params.step)
    listed = _steps(device_step_times(trace, device, params.stream))
    counted = [step for step in listed if step.complete and params.step in ("", step.name)]
    gains = idle_gains(trace, table)
    rows = _rows(trace, table, _per_step(gains.rows, len(counted)), params.by == "cause")
    speed = launch_pace(trace, device)
    caught_up = int(table.time.sum()) - int(table.emptied_time.sum())
    payload = IdlePayload(
        headline=(),
        explanation=(),
        device=device,
        device_type=device_kind(trace),
        stream=params.stream,
        streams=_streams(trace),
        by=params.by,
        steps=listed,
        steps_recorded=steps(trace).recorded,
        counted=len(counted),
        duration_ns=sum(step.duration_ns for step in counted),
        compute_ns=sum(step.compute_ns for step in counted),
        exposed_communication_ns=sum(step.exposed_communication_ns for step in counted),
        exposed_copy_ns=sum(step.exposed_copy_ns for step in counted),
        idle_ns=sum(step.idle_ns for step in counted),
        communication=None,
        waits_for=[],
        beside=(),
        causes=rows,
        sums=_sums(table, _per_step(gains.causes, len(counted))),
        gaps=len(table.segments.gaps.begin),
        caught_up_ns=caught_up,
        launch_bound=speed.launch_bound,
        launch_ns=speed.launch_ns,
        item_ns=speed.item_ns,
        explained=schedule(trace).explained_share,
        clock_shift_ns=clock_shift_ns(trace),
        limits=limits(schedule(trace).explained_share, clock_shift_ns(trace)),
        reasons=reason_texts(_reasons(trace)),
    )
    if is_truncated(trace.health):
        return structs.replace(payload, headline=truncation_sentence())
    words = {"headline": headline(payload, device_kind(trace)), "explanation": explanation(payload)}
    return structs.replace(payload, **words)


def _steps(times: DeviceStepTimes) -> list[IdleStep]:
    columns = (times.start, times.duration, times.compute, times.communication, times.copies, times.idle)
    rows = zip(times.names, *(column.tolist() for column in columns), times.complete.tolist(), strict=True)
    return [
        IdleStep(name, start, duration, compute, communication, None, None, [], copies, idle, complete)
        for name, start, duration, compute, communication, copies, idle, complete in rows
    ]


def _rows(trace: Trace, table: IdleTable, gains: Mapping[int, float], by_slice: bool) -> list[IdleRow]:
    """`gains`: by row, ns per step; `by_slice`: the subjects are the slices to blame."""
    rows: list[IdleRow] = []
    kept: dict[int, int] = {}
    rest: dict[int, list[int]] = {}
    columns = (
        table.cause,
        table.event,
        table.begin,
        table.end,
        table.time,
        table.gaps,
        table.median,
        table.emptied_by,
        table.emptied_time,
    )
    for at, (cause, event, begin, end, time, gaps, median, emptied, emptied_time) in enumerate(
        zip(*(column.tolist() for column in columns), strict=True)
    ):
        if kept.get(cause, 0) == MOST_SUBJECTS:
            rest.setdefault(cause, []).append(at)
            continue
        kept[cause] = kept.get(cause, 0) + 1
        subject = table.subject[at]
        rows.append(
            IdleRow(
                cause=CAUSE_NAMES[cause],
                subject=subject,
                short_subject=display_name(trace, event, subject) if subject and by_slice else subject,
                event=event if event >= 0 else None,
                begin_ns=begin,
                end_ns=end,
                time_ns=time,
                gaps=gaps,
                median_ns=median,
                emptied_by=name_of(trace, emptied) if emptied >= 0 else None,
                emptied_ns=emptied_time,
                gain_ns=gains.get(at),
                others=0,
            )
        )
    return rows + [_others(table, cause, places) for cause, places in rest.items()]


def _others(table: IdleTable, cause: int, at: list[int]) -> IdleRow:
    """The small rows of a cause as one; its longest part and median are those of the first of them."""
    first = at[0]
    return IdleRow(
        cause=CAUSE_NAMES[cause],
        subject=None,
        short_subject=None,
        event=None,
        begin_ns=int(table.begin[first]),
        end_ns=int(table.end[first]),
        time_ns=int(table.time[at].sum()),
        gaps=table.count_gaps(at),
        median_ns=float(table.median[first]),
        emptied_by=None,
        emptied_ns=int(table.emptied_time[at].sum()),
        gain_ns=None,
        others=len(at),
    )


def _per_step(gains: Mapping[int, int], steps: int) -> dict[int, float]:
    return {key: saved / max(steps, 1) for key, saved in gains.items()}


def _sums(table: IdleTable, gains: Mapping[int, float]) -> list[IdleCauseTotal]:
    """`gains`: by cause, ns per step."""
    rows: dict[int, list[int]] = {}
    for at, cause in enumerate(table.cause.tolist()):
        rows.setdefault(cause, []).append(at)
    sums = [
        IdleCauseTotal(CAUSE_NAMES[cause], int(table.time[at].sum()), table.count_gaps(at), gains.get(cause))
        for cause, at in rows.items()
    ]
    return sorted(sums, key=lambda each: -each.time_ns)


def _streams(trace: Trace) -> list[IdleStream]:
    work = device_items(trace)
    first = work.bounds[:-1]
    pairs = zip(work.device[first].tolist(), work.stream[first].tolist(), strict=True)
    return [IdleStream(device, stream) for device, stream in pairs]


def _reasons(trace: Trace) -> dict[str, str | Text]:
    reasons: dict[str, str | Text] = {
        "gain_ns": replay_unavailable_reason(trace)
        or "known of the largest rows for which the host is late, each alone, and of their causes",
        "waiting_ns": WAITING,
    }
    if (copies := missing_copies_reason(trace)) is not None:
        reasons["idle_ns"] = f"at most: {copies}"
    if not has_host_events(trace):
        reasons["causes"] = f"no gap can be attributed to the host: {no_host(trace)}"
    elif len(rows_of_kind(trace, Kind.RUNTIME, Kind.DRIVER)) == 0:
        reasons["causes"] = "no runtime calls are recorded, so nothing tells which thread launches what, and when"
    return reasons


def unavailable(trace: Trace) -> str | None:
    """Idle time needs a device that works, and all of its work."""
    if len(rows_of_kind(trace, *DEVICE_KINDS)):
        return missing_kernels_reason(trace)
    return missing_device_work_reason(trace)


_ALONE = TraceView("idle", "Idle time", IdleParams, IdlePayload, build, cached="on_request", rows="causes")

TAB = Tab(
    "Where the time goes",
    _ALONE,
    unavailable,
    (
        *PARTS,
        *LAUNCH_PARTS,
        RankView(
            "idle/ranks",
            "Idle time beside other ranks",
            IdleParams,
            IdlePayload,
            beside,
            _ALONE,
            RANK_SUMMARIES,
            MAX_RANKS_READ,
            rows="causes",
            answers="Idle time of a rank beside the others of its job: which ranks its communication waits for.",
        ),
    ),
)
