"""Critical path: what bounds a step, and what a change would bring."""

from __future__ import annotations

from torch_tb_profiler.analyses.critical_path.candidates import speedup_candidates
from torch_tb_profiler.analyses.schedule.path import (
    PATH_CATEGORIES,
    bottleneck_times,
    category_group,
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
from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.model.calls.missing import missing_kernels_reason
from torch_tb_profiler.model.devices import devices
from torch_tb_profiler.model.health import is_truncated
from torch_tb_profiler.model.kinds import Kind, rows_of_kind
from torch_tb_profiler.model.schedule.schedule import schedule
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import NO_CODE, Trace
from torch_tb_profiler.model.vendors.recording_options import recording_option
from torch_tb_profiler.view import Tab, TraceView
from torch_tb_profiler.views._shared.text import Text, reason_texts
from torch_tb_profiler.views._shared.wording import truncation_sentence
from torch_tb_profiler.views.critical_path import words
from torch_tb_profiler.views.critical_path.parts import PARTS, target_row
from torch_tb_profiler.views.critical_path.payload import (
    CriticalPathParams,
    CriticalPathPayload,
    PathCategory,
    PathSummary,
    StepPath,
    TargetRow,
    WhatIfResult,
)
from torch_tb_profiler.views.critical_path.ranks import RANKS

_MOST_ROWS = 100


def build(trace: Trace, params: CriticalPathParams) -> CriticalPathPayload:
    """The path of the mean complete step, its steps, and the targets in order of their time on it."""
    graph, recorded = schedule(trace), steps(trace).recorded
    path, targets, cut_off = _path(trace), _targets(trace), is_truncated(trace.health)
    return CriticalPathPayload(
        headline=truncation_sentence() if cut_off else _headline(trace, path, targets),
        explanation=() if cut_off else words.explanation(path, targets, graph.explained_share, recorded),
        limits=words.limits(graph.clock_shift_ns),
        path=path,
        steps=_steps(trace),
        steps_recorded=recorded,
        targets=targets,
        percents=list(REDUCTION_PERCENTS),
        what_if=[*_unnamed(targets), *_asked(trace, params)],
        explained=graph.explained_share,
        clock_shift_ns=graph.clock_shift_ns,
        reasons=reason_texts(_reasons(trace)),
    )


def _headline(trace: Trace, path: PathSummary, targets: list[TargetRow]) -> Text:
    recorded = steps(trace).recorded
    of_host = words.host_headline(path, targets, recorded) if schedule(trace).explained_share is None else None
    return of_host or words.headline(path, bottleneck_times(trace), targets, recorded)


def _path(trace: Trace) -> PathSummary:
    times = path_times(trace)
    sums, count = times.sum(axis=0).tolist(), len(times)
    categories = [
        PathCategory(name, words.CATEGORIES[name], category_group(name), total / count, words.evidence(name))
        for name, total in zip(PATH_CATEGORIES, sums, strict=True)
        if total
    ]
    return PathSummary(sum(sums) / count, count, categories)


def _steps(trace: Trace) -> list[StepPath]:
    spans, rows = recorded_spans(trace), []
    names = steps(trace).names
    columns = zip(names, spans.begin[0].tolist(), spans.end[0].tolist(), path_times(trace).tolist(), strict=False)
    for name, begin, end, times in columns:
        groups = dict.fromkeys(("host", "device", "latency"), 0)
        for category, time in zip(PATH_CATEGORIES, times, strict=True):
            groups[category_group(category)] += time
        rows.append(StepPath(name, begin, end - begin, *groups.values()))
    return rows


def _targets(trace: Trace) -> list[TargetRow]:
    shown = speedup_candidates(trace)[:_MOST_ROWS]
    most = max_curves(trace)
    ordered = sorted(shown, key=lambda each: each.target not in UNNAMED_TARGETS)[:most]
    spelled = tuple(each.target for each in ordered)
    known = dict(zip(spelled, what_if_curves(trace, spelled).tolist(), strict=True)) if spelled else {}
    count = recorded_spans(trace).begin.shape[1]
    return [target_row(trace, each, known.get(each.target), count) for each in shown]


def _unnamed(targets: list[TargetRow]) -> list[WhatIfResult]:
    return [
        WhatIfResult(row.target, percent, time)
        for row in targets
        if row.target in UNNAMED_TARGETS and row.step_ns
        for percent, time in zip(REDUCTION_PERCENTS, row.step_ns, strict=True)
    ]


def _asked(trace: Trace, params: CriticalPathParams) -> list[WhatIfResult]:
    if not params.what_if:
        return []
    spelled, _, percent = params.what_if.rpartition(":")
    if not (spelled and percent.isascii() and percent.isdecimal() and int(percent) <= 100):
        raise UsageError(
            f"parameter 'what_if' cannot be {params.what_if!r}", hint="TARGET:PERCENT, as in operator:aten::mul:50"
        )
    return [WhatIfResult(spelled, int(percent), what_if_step_time(trace, spelled, int(percent)))]


def _reasons(trace: Trace) -> dict[str, str]:
    reasons = {}
    if not devices(trace):
        reasons["explained"] = "no device work is recorded: the path is the main thread's"
    unlinked = schedule(trace).items.call == NO_CODE
    if unlinked.any():
        count = f"{int(unlinked.sum()):,} of {len(unlinked):,}"
        reasons["targets"] = (
            f"{count} kernels, copies and memsets have no recorded launch: no change of the host moves them"
        )
    return reasons


def unavailable(trace: Trace) -> str | None:
    """A path needs a host, a complete step and, where devices work, kernels and the calls that launched them."""
    graph = schedule(trace)
    if graph.main_thread == NO_CODE:
        return f"the host is not recorded; {recording_option(trace, 'host')}"
    if recorded_spans(trace).end.size == 0:
        return "there is no complete step"
    if len(graph.items) and (reason := missing_kernels_reason(trace)) is not None:
        return reason
    if len(graph.items) and not (graph.items.call >= 0).any():
        if len(rows_of_kind(trace, Kind.RUNTIME, Kind.DRIVER)):
            return "the recording does not tell which calls launched the device work"
        option = recording_option(trace, "runtime")
        return f"no runtime call is recorded, so what launched the device work is unknown; {option}"
    return None


TAB = Tab(
    "Where the time goes",
    TraceView(
        "critical_path",
        "Critical path",
        CriticalPathParams,
        CriticalPathPayload,
        build,
        cached="on_request",
        rows="targets",
    ),
    unavailable,
    (*PARTS, RANKS),
)
