"""Idle time: why a device is idle, cause by cause, with the gaps of each cause and a flame graph."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from msgspec import structs

from torch_tb_profiler.analyses.idle.device_time import DeviceStepTimes, device_step_times
from torch_tb_profiler.analyses.idle.flame import idle_flame_graph
from torch_tb_profiler.analyses.idle.table import IdleTable, idle_gains, idle_table
from torch_tb_profiler.analyses.launches.calls import launch_pace
from torch_tb_profiler.analyses.schedule.causes import CAUSE_NAMES
from torch_tb_profiler.analyses.schedule.gaps import main_device
from torch_tb_profiler.analyses.schedule.what_if import replay_unavailable_reason
from torch_tb_profiler.analyses.shared.breakdown import missing_host_reason, representatives
from torch_tb_profiler.analyses.shared.typical_steps import step_kinds
from torch_tb_profiler.analyses.tracks.sources import name_of
from torch_tb_profiler.base.errors import NotFoundError, UsageError
from torch_tb_profiler.model.calls.missing import missing_copies_reason
from torch_tb_profiler.model.communication.events import host_communication_calls, is_communication_kernel
from torch_tb_profiler.model.devices import device_kind
from torch_tb_profiler.model.health import is_truncated
from torch_tb_profiler.model.kernels.short_names import display_name
from torch_tb_profiler.model.kinds import Kind, rows_of_kind
from torch_tb_profiler.model.schedule.items import clock_shift_ns, device_items
from torch_tb_profiler.model.schedule.schedule import schedule
from torch_tb_profiler.model.schedule.unrecorded_waits import has_unrecorded_waits
from torch_tb_profiler.model.steps import has_host_events, step_noun, steps
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import RankView, Tab, TraceView, View
from torch_tb_profiler.views._shared.availability import idle_reason
from torch_tb_profiler.views._shared.odd_steps import odd_steps_sentence, outside_steps_sentence
from torch_tb_profiler.views._shared.text import Text, reason_texts, sentences
from torch_tb_profiler.views._shared.wording import truncation_sentence
from torch_tb_profiler.views.idle import words
from torch_tb_profiler.views.idle.launches import LAUNCH_VIEWS
from torch_tb_profiler.views.idle.payload import (
    IdleCauseTotal,
    IdleFlamePayload,
    IdleFrame,
    IdleGapRow,
    IdleGapsParams,
    IdleGapsPayload,
    IdleParams,
    IdlePayload,
    IdleRow,
    IdleStep,
    IdleStream,
)

MAX_SUBJECTS = 40
"""Most rows of each cause that are sent; the others are summed up in one."""


def build(trace: Trace, params: IdleParams) -> IdlePayload:
    """Build the payload from one rank's trace; raise NotFoundError for an unknown step, device or stream."""
    device = _choose_device(trace, params)
    table = idle_table(trace, device, params.stream, params.by, params.step)
    all_steps = _build_steps(trace, device_step_times(trace, device, params.stream))
    counted = [step for step, counts in zip(all_steps, table.counted.tolist(), strict=True) if counts]
    gains = idle_gains(trace, table)
    pace, explained = launch_pace(trace, device), _explained_share(trace)
    payload = IdlePayload(
        headline=(),
        explanation=(),
        device=device,
        device_type=device_kind(trace),
        stream=params.stream,
        streams=_build_streams(trace),
        by=params.by,
        steps=_select_listed_steps(trace, all_steps, params.step),
        complete_steps=len({step.name for step in all_steps if step.complete}),
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
        causes=_build_rows(trace, table, _gains_per_step(gains.rows, len(counted)), params.by == "cause"),
        sums=_build_cause_totals(table, _gains_per_step(gains.causes, len(counted))),
        gaps=len(table.segments.gaps.begin),
        caught_up_ns=int(table.time.sum()) - int(table.emptied_time.sum()),
        launch_bound=pace.launch_bound,
        launch_ns=pace.launch_ns,
        item_ns=pace.item_ns,
        explained=explained,
        clock_shift_ns=clock_shift_ns(trace),
        limits=words.limits(
            explained,
            clock_shift_ns(trace),
            steps(trace).recorded,
            step_noun(trace),
            alone=_communicates(trace),
        ),
        reasons=reason_texts(_reasons(trace)),
        step_noun=step_noun(trace),
    )
    if is_truncated(trace.health):
        return structs.replace(payload, headline=truncation_sentence())
    headline = words.headline(payload, device_kind(trace))
    return structs.replace(
        payload,
        headline=headline,
        explanation=sentences(
            words.explanation(payload, waits_unrecorded=has_unrecorded_waits(trace)),
            () if params.step else sentences(odd_steps_sentence(trace), outside_steps_sentence(trace)),
        ),
    )


def build_gaps(trace: Trace, params: IdleGapsParams) -> IdleGapsPayload:
    """Build a page of the segments of a row.

    Raise UsageError for an unknown cause, NotFoundError if the table has no such row.
    """
    if params.cause not in CAUSE_NAMES:
        raise UsageError(f"there is no cause {params.cause!r}", hint=f"causes: {', '.join(CAUSE_NAMES)}")
    table = idle_table(trace, _choose_device(trace, params), params.stream, params.by, params.step)
    wanted = CAUSE_NAMES.index(params.cause)
    rows = [row for row, cause in enumerate(table.cause.tolist()) if cause == wanted]
    if params.subject is not None:
        rows = [row for row in rows if table.subject[row] == params.subject]
    if not rows:
        raise NotFoundError(f"no idle time is attributed to {params.cause} {params.subject or ''}".rstrip())
    idle, names = table.segments, steps(trace).names
    emptied = idle.emptied_by
    segments = table.members(*rows).tolist()
    segments.sort(key=lambda segment: int(idle.begin[segment] - idle.end[segment]))
    page = []
    for segment in segments[params.rows]:
        event, emptied_by = int(idle.row[segment]), int(emptied[segment])
        page.append(
            IdleGapRow(
                begin_ns=int(idle.begin[segment]),
                end_ns=int(idle.end[segment]),
                step=names[idle.step[segment]],
                event=event if event >= 0 else None,
                name=name_of(trace, event) if event >= 0 else None,
                short_name=display_name(trace, event, name_of(trace, event)) if event >= 0 else None,
                emptied_by=emptied_by if emptied_by >= 0 else None,
            )
        )
    return IdleGapsPayload(len(segments), sum(int(table.time[row]) for row in rows), page)


def build_flame(trace: Trace, params: IdleParams) -> IdleFlamePayload:
    """Build the flame graph; raise NotFoundError for an unknown step, device or stream."""
    flame = idle_flame_graph(trace, _choose_device(trace, params), params.stream, params.step)
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


def _choose_device(trace: Trace, params: IdleParams | IdleGapsParams) -> int:
    device = main_device(trace) if params.device is None else params.device
    if device is None:
        raise NotFoundError("no device work is recorded")
    return device


def _build_steps(trace: Trace, times: DeviceStepTimes) -> list[IdleStep]:
    columns = (times.start, times.duration, times.compute, times.communication, times.copies, times.idle)
    flags = times.complete.tolist(), step_kinds(trace).typical.tolist()
    rows = zip(times.names, *(column.tolist() for column in columns), *flags, strict=True)
    return [
        IdleStep(name, start, duration, compute, communication, None, None, [], copies, idle, complete, typical)
        for name, start, duration, compute, communication, copies, idle, complete, typical in rows
    ]


def _select_listed_steps(trace: Trace, all_steps: list[IdleStep], chosen: str) -> list[IdleStep]:
    """Return the steps that the answer lists: all, or a selection with the chosen one and an odd one, if any."""
    kinds = step_kinds(trace)
    durations, idle = [step.duration_ns for step in all_steps], [step.idle_ns for step in all_steps]
    listed = set(representatives(durations, kinds.typical, (idle,)))
    if len(listed) < len(all_steps):
        odd = (i for i, step in enumerate(all_steps) if step.complete and not step.typical)
        listed |= {*(i for i, step in enumerate(all_steps) if step.name == chosen), *islice(odd, 1)}
    return [all_steps[i] for i in sorted(listed)]


def _build_rows(trace: Trace, table: IdleTable, gains: Mapping[int, float], by_slice: bool) -> list[IdleRow]:
    """Return the rows of the table, the small ones of each cause as one.

    gains     by row, ns per step
    by_slice  the subjects are the slices to blame
    """
    rows: list[IdleRow] = []
    count_of_cause: dict[int, int] = {}
    others_of_cause: dict[int, list[int]] = {}
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
    for number, (cause, event, begin, end, time, gaps, median, emptied_by, emptied_time) in enumerate(
        zip(*(column.tolist() for column in columns), strict=True)
    ):
        if count_of_cause.get(cause, 0) == MAX_SUBJECTS:
            others_of_cause.setdefault(cause, []).append(number)
            continue
        count_of_cause[cause] = count_of_cause.get(cause, 0) + 1
        subject = table.subject[number]
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
                emptied_by=name_of(trace, emptied_by) if emptied_by >= 0 else None,
                emptied_ns=emptied_time,
                gain_ns=gains.get(number),
                others=0,
            )
        )
    return rows + [_sum_rows(table, cause, numbers) for cause, numbers in others_of_cause.items()]


def _sum_rows(table: IdleTable, cause: int, rows: list[int]) -> IdleRow:
    """Sum up the small rows of a cause; the longest segment and median are those of the first of them."""
    first = rows[0]
    return IdleRow(
        cause=CAUSE_NAMES[cause],
        subject=None,
        short_subject=None,
        event=None,
        begin_ns=int(table.begin[first]),
        end_ns=int(table.end[first]),
        time_ns=int(table.time[rows].sum()),
        gaps=table.count_gaps(rows),
        median_ns=float(table.median[first]),
        emptied_by=None,
        emptied_ns=int(table.emptied_time[rows].sum()),
        gain_ns=None,
        others=len(rows),
    )


def _gains_per_step(gains: Mapping[int, int], steps: int) -> dict[int, float]:
    return {key: saved / max(steps, 1) for key, saved in gains.items()}


def _build_cause_totals(table: IdleTable, gains: Mapping[int, float]) -> list[IdleCauseTotal]:
    """Return the totals of the causes, largest first; `gains`: by cause, ns per step."""
    rows_of_cause: dict[int, list[int]] = {}
    for row, cause in enumerate(table.cause.tolist()):
        rows_of_cause.setdefault(cause, []).append(row)
    gaps = table.count_gaps_by_cause().tolist()
    totals = [
        IdleCauseTotal(CAUSE_NAMES[cause], int(table.time[rows].sum()), gaps[cause], gains.get(cause))
        for cause, rows in rows_of_cause.items()
    ]
    return sorted(totals, key=lambda total: -total.time_ns)


def _build_streams(trace: Trace) -> list[IdleStream]:
    items = device_items(trace)
    first = items.bounds[:-1]
    pairs = zip(items.device[first].tolist(), items.stream[first].tolist(), strict=True)
    return [IdleStream(device, stream) for device, stream in pairs]


def _communicates(trace: Trace) -> bool:
    """Return whether the rank communicates, so that it may wait for others."""
    return bool(is_communication_kernel(trace).any()) or len(host_communication_calls(trace)) > 0


def _explained_share(trace: Trace) -> float | None:
    """Return the share of the device work whose start launches and syncs explain, None without any launch."""
    recorded = schedule(trace)
    return recorded.explained_share if (recorded.items.call >= 0).any() else None


def _reasons(trace: Trace) -> dict[str, str | Text]:
    reasons: dict[str, str | Text] = {
        "gain_ns": replay_unavailable_reason(trace)
        or "estimated only for the largest rows in which the host is late, and for their causes",
        "waiting_ns": words.WAITS_UNKNOWN,
    }
    if (copies := missing_copies_reason(trace)) is not None:
        reasons["idle_ns"] = f"at most: {copies}"
    if not has_host_events(trace):
        reasons["causes"] = f"gaps can't be attributed to host code: {missing_host_reason(trace)}"
    elif len(rows_of_kind(trace, Kind.RUNTIME, Kind.DRIVER)) == 0:
        reasons["causes"] = "no runtime calls were recorded, so it's unknown which thread launched what, and when"
    return reasons


_ONE_RANK = TraceView(
    "idle",
    "Idle time",
    IdleParams,
    IdlePayload,
    build,
    cached="on_request",
    filters=(IdleParams("emptied_by"), IdleParams("operator"), IdleParams("module"), IdleParams("frame")),
    rows="causes",
)


def _build_views_of_job() -> tuple[View, ...]:
    from torch_tb_profiler.views._shared.job.exposed import MAX_RANKS_READ
    from torch_tb_profiler.views._shared.job.members import RANK_SUMMARIES
    from torch_tb_profiler.views.idle.ranks import build_with_ranks

    return (
        RankView(
            "idle/ranks",
            "Idle time compared with other ranks",
            IdleParams,
            IdlePayload,
            build_with_ranks,
            _ONE_RANK,
            RANK_SUMMARIES,
            MAX_RANKS_READ,
            rows="causes",
            answers="Idle time of one rank, with the ranks that its exposed communication waits for.",
        ),
    )


TAB = Tab(
    "Where the time goes",
    _ONE_RANK,
    idle_reason,
    (
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
            answers="Idle time as a flame graph of what the host was doing.",
        ),
        *LAUNCH_VIEWS,
    ),
    of_job=_build_views_of_job,
)
