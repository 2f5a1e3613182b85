"""Critical path: what limits a step, what each change would save, and what the path runs through."""

from __future__ import annotations

from torch_tb_profiler.analyses.critical_path.candidates import (
    SpeedupCandidate,
    attainable_step_ns,
    find_candidate,
    speedup_candidates,
)
from torch_tb_profiler.analyses.critical_path.slices import path_groups
from torch_tb_profiler.analyses.schedule.path import (
    PATH_CATEGORIES,
    bottleneck_times,
    category_group,
    path_segments,
    path_times,
)
from torch_tb_profiler.analyses.schedule.step_spans import recorded_spans
from torch_tb_profiler.analyses.schedule.what_if import (
    REDUCTION_PERCENTS,
    UNNAMED_TARGETS,
    max_curves,
    what_if_curves,
    what_if_step_time,
)
from torch_tb_profiler.analyses.shared.breakdown import representatives
from torch_tb_profiler.analyses.shared.typical_steps import odd_step_names
from torch_tb_profiler.base.errors import NotFoundError, UsageError
from torch_tb_profiler.base.memo import stored
from torch_tb_profiler.model.calls.missing import missing_kernels_reason
from torch_tb_profiler.model.devices import device_kind, devices
from torch_tb_profiler.model.health import is_truncated
from torch_tb_profiler.model.kernels.short_names import short_kernel_names
from torch_tb_profiler.model.schedule.schedule import schedule
from torch_tb_profiler.model.schedule.stream_waits import has_unknown_consumers
from torch_tb_profiler.model.schedule.unrecorded_waits import has_unlinked_communication, has_unrecorded_waits
from torch_tb_profiler.model.steps import step_noun, steps
from torch_tb_profiler.model.trace import NO_CODE, Trace
from torch_tb_profiler.view import RankView, Tab, TraceView, View
from torch_tb_profiler.views._shared.availability import critical_path_reason
from torch_tb_profiler.views._shared.odd_steps import odd_steps_sentence
from torch_tb_profiler.views._shared.text import Text, reason_texts, sentences
from torch_tb_profiler.views._shared.wording import truncation_sentence
from torch_tb_profiler.views.critical_path import titles, words
from torch_tb_profiler.views.critical_path.payload import (
    CriticalPathParams,
    CriticalPathPayload,
    PathCategory,
    PathGroupRow,
    PathGroupsParams,
    PathGroupsPayload,
    PathSegmentsParams,
    PathSegmentsPayload,
    PathSummary,
    StepPath,
    TargetParams,
    TargetRow,
    WhatIfResult,
)

MAX_TARGETS = 100
"""Most targets that are sent."""

MAX_GROUPS = 200
"""Most places that are sent; the others are summed up in one row."""


def build(trace: Trace, params: CriticalPathParams) -> CriticalPathPayload:
    """Build the path of the mean complete step, its steps, and the targets by their time on it."""
    graph, recorded = schedule(trace), steps(trace).recorded
    path, targets, cut_off = _build_path_summary(trace), _build_targets(trace), is_truncated(trace.health)
    odd = odd_steps_sentence(trace)
    return CriticalPathPayload(
        headline=truncation_sentence() if cut_off else _headline(trace, path, targets),
        explanation=()
        if cut_off
        else sentences(
            words.explanation(
                path,
                targets,
                graph.explained_share,
                recorded,
                noun=step_noun(trace),
                missing_kernels=missing_kernels_reason(trace),
            ),
            odd,
        ),
        limits=words.limits(
            graph.clock_shift_ns,
            communicates=any(words.is_communication(row) for row in targets),
            waits_unrecorded=has_unrecorded_waits(trace),
            unlinked=has_unlinked_communication(trace),
        ),
        path=path,
        steps=_build_step_paths(trace),
        steps_recorded=recorded,
        step_noun=step_noun(trace),
        odd_steps=odd,
        targets=targets,
        percents=list(REDUCTION_PERCENTS),
        what_if=[*_build_unnamed_results(targets), *_build_requested_result(trace, params)],
        explained=graph.explained_share,
        clock_shift_ns=graph.clock_shift_ns,
        reasons=reason_texts(_reasons(trace)),
        device_type=device_kind(trace),
    )


def build_what_if(trace: Trace, params: TargetParams) -> TargetRow:
    """Build the row of one target.

    Raise UsageError if the target can't be parsed, NotFoundError if the steps have nothing of it.
    """
    candidate = find_candidate(trace, params.target)
    count = _count_typical(trace)
    return _build_target_row(trace, candidate, what_if_curves(trace, (params.target,))[0].tolist(), count)


def build_segments(trace: Trace, params: PathSegmentsParams) -> PathSegmentsPayload:
    """Build a page of the segments of the path; raise NotFoundError if no complete step has the name."""
    segments, number = path_segments(trace), _find_step_number(trace, params.step)
    chosen = slice(0, len(segments.row))
    if number is not None:
        chosen = slice(int((segments.step < number).sum()), int((segments.step <= number).sum()))
    begin, end = segments.begin[chosen], segments.end[chosen]
    return PathSegmentsPayload(
        category=[PATH_CATEGORIES[each] for each in segments.category[chosen][params.rows].tolist()],
        event=[None if row == NO_CODE else row for row in segments.row[chosen][params.rows].tolist()],
        begin_ns=begin[params.rows].tolist(),
        duration_ns=(end - begin)[params.rows].tolist(),
        step=segments.step[chosen][params.rows].tolist(),
        total=len(begin),
        clock_shift_ns=schedule(trace).clock_shift_ns,
    )


def build_groups(trace: Trace, params: PathGroupsParams) -> PathGroupsPayload:
    """Build the path by place; raise NotFoundError if no complete step has the name."""
    number = _find_step_number(trace, params.step)
    groups = path_groups(trace, params.by, number)
    count = _count_typical(trace) if number is None else 1
    rows = [
        PathGroupRow(
            name=name,
            title=titles.NO_PLACE_TITLES[params.by] if name is None else name,
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
        rows=[*rows[:MAX_GROUPS], *_sum_groups(rows[MAX_GROUPS:])],
        reasons=reason_texts({} if groups.name != (None,) else {"rows": titles.missing_places(trace, params.by)}),
    )


def _headline(trace: Trace, path: PathSummary, targets: list[TargetRow]) -> Text:
    recorded, noun, explained = steps(trace).recorded, step_noun(trace), schedule(trace).explained_share
    missing = missing_kernels_reason(trace)
    of_host = words.host_headline(path, targets, recorded, noun) if explained is None and missing is None else None
    return of_host or words.headline(
        path,
        bottleneck_times(trace),
        targets,
        recorded,
        device_kind(trace),
        explained=explained,
        noun=noun,
        missing_kernels=missing,
        unlinked=has_unlinked_communication(trace),
    )


def _build_path_summary(trace: Trace) -> PathSummary:
    times = path_times(trace)[recorded_spans(trace).typical]
    sums, count = times.sum(axis=0).tolist(), len(times)
    categories = [
        PathCategory(
            category,
            titles.CATEGORY_TITLES[category],
            category_group(category),
            total / count,
            titles.category_link(category),
        )
        for category, total in zip(PATH_CATEGORIES, sums, strict=True)
        if total
    ]
    bounded = has_unknown_consumers(trace)
    return PathSummary(
        sum(sums) / count, count, categories, list(odd_step_names(trace)), bounded, attainable_step_ns(trace)
    )


def _count_typical(trace: Trace) -> int:
    return int(recorded_spans(trace).typical.sum())


def _build_step_paths(trace: Trace) -> list[StepPath]:
    """Return all complete steps, or of very many a selection: of each stretch the longest."""
    spans, rows = recorded_spans(trace), list[StepPath]()
    names = steps(trace).names
    columns = zip(names, spans.begin[0].tolist(), spans.end[0].tolist(), path_times(trace).tolist(), strict=False)
    for name, begin, end, times in columns:
        groups = dict.fromkeys(("host", "device", "latency"), 0)
        for category, time in zip(PATH_CATEGORIES, times, strict=True):
            groups[category_group(category)] += time
        rows.append(StepPath(name, begin, end - begin, *groups.values()))
    durations = [row.duration_ns for row in rows]
    return [rows[i] for i in representatives(durations, spans.typical[: len(rows)])]


@stored
def _build_targets(trace: Trace) -> list[TargetRow]:
    """Return the targets with most time on the path, with curves for as many as are affordable.

    They take most of the time of an answer, and are the same whatever `what_if` asks for.
    """
    candidates = speedup_candidates(trace)[:MAX_TARGETS]
    ordered = sorted(candidates, key=lambda each: each.target not in UNNAMED_TARGETS)[: max_curves(trace)]
    targets = tuple(each.target for each in ordered)
    curves = dict(zip(targets, what_if_curves(trace, targets).tolist(), strict=True)) if targets else {}
    count = _count_typical(trace)
    return [_build_target_row(trace, each, curves.get(each.target), count) for each in candidates]


def _build_target_row(trace: Trace, candidate: SpeedupCandidate, curve: list[int] | None, steps: int) -> TargetRow:
    """Return a row of the table, per mean step of `steps`."""
    kind, _, name = candidate.target.partition(":")
    return TargetRow(
        target=candidate.target,
        kind=kind,
        title=titles.target_title(kind, name, short_kernel_names(trace)),
        path_ns=candidate.path_ns / steps,
        calls=candidate.calls / steps,
        slack_ns=candidate.slack_ns,
        event=None if candidate.event == NO_CODE else candidate.event,
        step_ns=curve,
    )


def _build_unnamed_results(targets: list[TargetRow]) -> list[WhatIfResult]:
    return [
        WhatIfResult(row.target, percent, time)
        for row in targets
        if row.target in UNNAMED_TARGETS and row.step_ns
        for percent, time in zip(REDUCTION_PERCENTS, row.step_ns, strict=True)
    ]


def _build_requested_result(trace: Trace, params: CriticalPathParams) -> list[WhatIfResult]:
    """Return the result that `what_if` requests, if it does; raise UsageError if it can't be parsed."""
    if not params.what_if:
        return []
    target, _, percent = params.what_if.rpartition(":")
    if not (target and percent.isascii() and percent.isdecimal() and int(percent) <= 100):
        raise UsageError(
            f"parameter 'what_if' cannot be {params.what_if!r}", hint="TARGET:PERCENT, as in operator:aten::mul:50"
        )
    return [WhatIfResult(target, int(percent), what_if_step_time(trace, target, int(percent)))]


def _sum_groups(rows: list[PathGroupRow]) -> list[PathGroupRow]:
    """Sum up the small rows in one."""
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


def _find_step_number(trace: Trace, name: str) -> int | None:
    """Return the number of a complete step, or None for ""; raise NotFoundError if there is none of the name."""
    complete = steps(trace).names[: recorded_spans(trace).begin.shape[1]]
    if not name:
        return None
    if name not in complete:
        raise NotFoundError(f"there is no complete {step_noun(trace)} {name!r}")
    return complete.index(name)


def _reasons(trace: Trace) -> dict[str, str]:
    reasons = {}
    if not devices(trace):
        reasons["explained"] = "no device work is recorded, so the path is the main thread"
    unlinked = schedule(trace).items.call == NO_CODE
    if unlinked.any():
        count = f"{int(unlinked.sum()):,} of {len(unlinked):,}"
        reasons["targets"] = (
            f"{count} kernels, copies and memsets have no recorded launch, so changes on the host don't move them"
        )
    return reasons


_ONE_RANK = TraceView(
    "critical_path",
    "Critical path",
    CriticalPathParams,
    CriticalPathPayload,
    build,
    cached="on_request",
    rows="targets",
)


def _build_views_of_job() -> tuple[View, ...]:
    from torch_tb_profiler.views._shared.job.exposed import MAX_RANKS_READ
    from torch_tb_profiler.views._shared.job.members import RANK_SUMMARIES
    from torch_tb_profiler.views.critical_path.beside import build_beside_ranks
    from torch_tb_profiler.views.critical_path.ranks import JOB_PATH

    return (
        JOB_PATH,
        RankView(
            "critical_path/beside",
            "Critical path beside other ranks",
            CriticalPathParams,
            CriticalPathPayload,
            build_beside_ranks,
            _ONE_RANK,
            RANK_SUMMARIES,
            MAX_RANKS_READ,
            rows="targets",
            answers="What limits a step of one rank, with its communication split into transfer and waiting.",
        ),
    )


TAB = Tab(
    "Where the time goes",
    _ONE_RANK,
    critical_path_reason,
    (
        TraceView("critical_path/what_if", "What if", TargetParams, TargetRow, build_what_if),
        TraceView(
            "critical_path/groups",
            "Path by place",
            PathGroupsParams,
            PathGroupsPayload,
            build_groups,
            first=lambda trace: (
                PathGroupsParams("line"),
                PathGroupsParams("module"),
                PathGroupsParams("operator"),
            ),
        ),
        TraceView(
            "critical_path/pieces", "Segments of the path", PathSegmentsParams, PathSegmentsPayload, build_segments
        ),
    ),
    of_job=_build_views_of_job,
)
