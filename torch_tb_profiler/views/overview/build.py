"""Overview: how an average step is spent, on what device, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from torch_tb_profiler.analyses.kernels.table import largest_kernel
from torch_tb_profiler.analyses.overview.advice import advice, measured_advice
from torch_tb_profiler.analyses.overview.host_operators import main_operator
from torch_tb_profiler.analyses.overview.idle import device_late, idle
from torch_tb_profiler.analyses.overview.job import no_advice
from torch_tb_profiler.analyses.overview.unrecorded import unrecorded
from torch_tb_profiler.analyses.roofline.speeds import missing_work_reason
from torch_tb_profiler.analyses.roofline.tokens import count_tokens
from torch_tb_profiler.analyses.schedule.path import bottleneck_times
from torch_tb_profiler.analyses.schedule.what_if import replay_unavailable_reason
from torch_tb_profiler.analyses.shared.breakdown import breakdown
from torch_tb_profiler.analyses.shared.utilization import utilizations
from torch_tb_profiler.analyses.tracks.sources import name_of
from torch_tb_profiler.base.intervals import total
from torch_tb_profiler.model.communication.events import host_communication_calls
from torch_tb_profiler.model.devices import devices
from torch_tb_profiler.model.health import is_truncated
from torch_tb_profiler.model.kernels.short_names import short_kernel_names
from torch_tb_profiler.model.schedule.schedule import schedule
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import NoParams, RankView, Tab, TraceView
from torch_tb_profiler.views._shared.job.exposed import MAX_RANKS_READ
from torch_tb_profiler.views._shared.job.members import RANK_SUMMARIES
from torch_tb_profiler.views._shared.text import Phrase, Text, link, reason_texts, sentences
from torch_tb_profiler.views._shared.wording import truncation_sentence
from torch_tb_profiler.views.overview import words
from torch_tb_profiler.views.overview.advice import recommendation
from torch_tb_profiler.views.overview.hardware import hardware_use
from torch_tb_profiler.views.overview.leaks import leak
from torch_tb_profiler.views.overview.payload import Average, Configuration, HardwareUse, Overview
from torch_tb_profiler.views.overview.ranks import build as beside
from torch_tb_profiler.views.overview.recorded import (
    average_of,
    busy_type,
    configuration,
    device,
    doubts,
    step_list,
    unknown,
)
from torch_tb_profiler.views.overview.words import throughput_sentence


def build(trace: Trace, params: NoParams) -> Overview:
    """The overview of one trace."""
    first = _measured(trace)
    reasons, whole = dict(first.reasons), _whole(trace)
    used = hardware_use(trace)
    hardware = None if isinstance(used, str) else used
    if isinstance(used, str):
        reasons["hardware"] = (Phrase(used),)
    recommendations = [recommendation(each, whole) for each in advice(trace)]
    replayed = not is_truncated(trace.health) and replay_unavailable_reason(trace) is None
    bounds = bottleneck_times(trace) if replayed else None
    spent = _spent(trace, first.average, first.configuration, hardware, bounds)
    return replace(
        first,
        preview=False,
        headline=words.headline(spent, recommendations),
        explanation=sentences(first.explanation, leak(trace)),
        spent=spent,
        hardware=hardware,
        gains=words.gains(recommendations, schedule(trace).explained_share, replay_unavailable_reason(trace)),
        recommendations=recommendations,
        no_advice=()
        if recommendations
        else words.no_advice(first.average, no_advice(trace), busy_type(first.configuration), whole),
        reasons=reasons,
    )


def build_preview(trace: Trace, params: NoParams) -> Overview:
    """The overview before the schedule is replayed and the work of the operators is modeled, which takes about as
    long as all the rest; the whole of it where there is nothing to replay."""
    return build(trace, params) if is_truncated(trace.health) or not devices(trace) else _measured(trace)


def _measured(trace: Trace) -> Overview:
    """What the file says by itself."""
    times = breakdown(trace)
    listed, average, reasons = step_list(times), average_of(times), unknown(trace, times)
    configured = configuration(trace)
    silent, reason = missing_work_reason(trace), no_advice(trace)
    if silent is not None:
        reasons["hardware"] = silent
    spent = _spent(trace, average, configured)
    return Overview(
        preview=True,
        headline=spent,
        spent=spent,
        explanation=sentences(
            words.reachable(
                words.explanation(listed, average, reasons, is_truncated(trace.health)),
                configured.recorded.get("host", False),
            ),
            throughput_sentence(count_tokens(trace)),
        ),
        trace_start_ns=trace.trace_start_ns,
        base_ns=trace.base_ns,
        steps=listed,
        average=average,
        steps_recorded=times.steps.recorded,
        devices=[device(entry) for entry in utilizations(trace)],
        hardware=None,
        configuration=configured,
        gains=(),
        recommendations=[recommendation(each, _whole(trace)) for each in measured_advice(trace)],
        no_advice=() if reason is None else words.no_advice(average, reason, busy_type(configured), _whole(trace)),
        beside=(),
        waiting=None,
        reasons=reason_texts(reasons),
        health=[*trace.health, *doubts(trace, times)],
    )


def _whole(trace: Trace) -> str:
    return words.whole_of(average_of(breakdown(trace)), steps(trace).recorded)


def _spent(
    trace: Trace,
    average: Average | None,
    configured: Configuration,
    hardware: HardwareUse | None = None,
    bounds: Mapping[str, float] | None = None,
) -> Text:
    """`bounds`: ns of the path by what bounds the step; None where that is not known."""
    if is_truncated(trace.health):
        return truncation_sentence()
    waiting = total(idle(trace))
    submitted = total(device_late(trace)) / waiting if waiting else 0.0
    spent = words.spent(
        average,
        busy_type(configured),
        _whole(trace),
        _within(trace, configured),
        hardware,
        submitted,
        _largest(trace),
    )
    spent = words.reachable(spent, configured.recorded.get("host", False))
    return sentences(spent, words.bound(bounds, _whole(trace), _exposed(trace, average)))


def _within(trace: Trace, configured: Configuration) -> dict[str, Phrase]:
    """In what most of a category's time passes. Where a device waits, the advice says more of the operators."""
    operator = main_operator(trace) if busy_type(configured) is None else None
    found = {"other": unrecorded(trace), "cpu_exec": operator}
    return {key: Phrase(each.name, link("trace", event=each.event)) for key, each in found.items() if each}


def _largest(trace: Trace) -> Text:
    kernel = largest_kernel(trace)
    name = "" if kernel is None else name_of(trace, kernel.row)
    if kernel is None or not name:
        return ()
    return words.largest(short_kernel_names(trace).get(name, name), kernel.row, kernel.share)


def _exposed(trace: Trace, average: Average | None) -> float:
    """Share of the average step in communication of the device that nothing hides; 0 where the host communicates:
    on the path, that is time of the host."""
    if average is None or average.duration_ns <= 0 or len(host_communication_calls(trace)):
        return 0.0
    return (average.categories.communication or 0.0) / average.duration_ns


def _unavailable(trace: Trace) -> str | None:
    if len(steps(trace).names) == 0:
        return "the trace has no event with a time and a duration, so there is nothing to break down"
    return None


_ALONE = TraceView(
    "overview",
    "Overview",
    NoParams,
    Overview,
    build,
    cached="on_request",
    rows="steps",
    answers="How the time of a step is spent, what bounds it, and what to do first.",
)

TAB = Tab(
    "",
    _ALONE,
    _unavailable,
    (
        TraceView(
            "overview/preview",
            "First page of the overview",
            NoParams,
            Overview,
            build_preview,
            cached="on_load",
            rows="steps",
            is_all=lambda overview: not overview.preview,
            answers="The overview without what takes long: no schedule replayed, no work of operators modeled.",
        ),
        RankView(
            "overview/ranks",
            "Overview beside other ranks",
            NoParams,
            Overview,
            beside,
            _ALONE,
            RANK_SUMMARIES,
            MAX_RANKS_READ,
            rows="steps",
            answers="The overview of a rank beside the others of its job: what it waits for, and who is late.",
        ),
    ),
)
