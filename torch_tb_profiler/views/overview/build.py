"""Overview: how an average step is spent, on what device, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from torch_tb_profiler.analyses.overview.advice import advice, measured_advice
from torch_tb_profiler.analyses.overview.dominant_frames import main_operator, unrecorded_function
from torch_tb_profiler.analyses.overview.finding import no_advice_reason
from torch_tb_profiler.analyses.overview.idle import idle_times, submitted_idle_times
from torch_tb_profiler.analyses.roofline.speeds import missing_work_reason
from torch_tb_profiler.analyses.roofline.table import WorkFilter
from torch_tb_profiler.analyses.roofline.tokens import count_tokens
from torch_tb_profiler.analyses.roofline.utilization import utilization
from torch_tb_profiler.analyses.schedule.path import bottleneck_times, unexplained_sync_ns
from torch_tb_profiler.analyses.schedule.what_if import replay_unavailable_reason
from torch_tb_profiler.analyses.shared.breakdown import breakdown, missing_host_reason
from torch_tb_profiler.analyses.shared.utilization import utilizations
from torch_tb_profiler.base.grammar import share_base
from torch_tb_profiler.base.intervals import total
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.communication.events import host_communication_calls, is_communication_kernel
from torch_tb_profiler.model.devices import devices
from torch_tb_profiler.model.health import is_truncated
from torch_tb_profiler.model.kernels.short_names import short_kernel_names
from torch_tb_profiler.model.schedule.schedule import schedule
from torch_tb_profiler.model.schedule.unrecorded_waits import has_unlinked_communication, has_unrecorded_waits
from torch_tb_profiler.model.serving.iterations import serving_iterations
from torch_tb_profiler.model.steps import has_host_events, step_noun, steps
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.model.work.roofline import device_peaks
from torch_tb_profiler.view import NoParams, RankView, Tab, TraceView, View
from torch_tb_profiler.views._shared.odd_steps import odd_steps_sentence, outside_steps_sentence
from torch_tb_profiler.views._shared.text import (
    Phrase,
    Text,
    device_noun,
    first_sentence,
    link,
    reason_texts,
    sentences,
    shorten_frame,
    shorten_name,
)
from torch_tb_profiler.views._shared.wording import truncation_sentence
from torch_tb_profiler.views.overview import words
from torch_tb_profiler.views.overview.advice import (
    build_recommendation,
    no_advice_sentence,
    no_iteration_advice_sentence,
    savings_note,
)
from torch_tb_profiler.views.overview.payload import Average, HardwareUse, Overview, Recommendation
from torch_tb_profiler.views.overview.recorded import (
    build_average,
    build_configuration,
    build_device,
    build_steps,
    health_notes,
    missing_reasons,
    recorded_device_type,
    select_steps,
)

_TRUNCATED = "the file is truncated, and the missing part may hold the device work"
_NO_PRODUCT = "no matmul or convolution with known FLOPs and a known peak was recorded"
_NO_PEAK = "the peak of a recomputed type is unknown"


def build(trace: Trace, params: NoParams) -> Overview:
    """Build the overview of one trace."""
    first = _build_measured(trace)
    reasons, base = dict(first.reasons), _share_base(trace)
    used = hardware_use(trace)
    hardware = None if isinstance(used, str) else used
    if isinstance(used, str):
        reasons["hardware"] = (Phrase(used),)
    kind = recorded_device_type(first.configuration)
    alone = _communicates(trace)
    recommendations = [
        build_recommendation(each, base, device_noun(kind), alone=alone, noun=first.step_noun)
        for each in advice(trace)
    ]
    reason = replay_unavailable_reason(trace)
    times = bottleneck_times(trace) if reason is None and not is_truncated(trace.health) else None
    path = words.critical_path_sentence(
        times,
        base,
        _exposed_share(trace, first.average),
        0 if times is None else unexplained_sync_ns(trace),
        waits_unrecorded=has_unrecorded_waits(trace) or (times is not None and has_unlinked_communication(trace)),
    )
    spent = sentences(
        _step_sentence(trace, first.average, kind, hardware),
        *_evidence_sentences(trace, first.average, kind),
        path,
    )
    return replace(
        first,
        preview=False,
        headline=_headline(trace, spent, recommendations),
        explanation=sentences(
            first.explanation, path, words.failure_sentence(trace), words.leak_sentence(trace, first.step_noun)
        ),
        spent=spent,
        hardware=hardware,
        gains=savings_note(
            recommendations,
            schedule(trace).explained_share,
            reason,
            alone=alone,
            replayed=f"complete {first.step_noun}s" if steps(trace).recorded else "this trace",
        ),
        recommendations=recommendations,
        no_advice=() if recommendations else _no_advice_sentence(trace, first.average, kind),
        reasons=reasons,
    )


def _headline(trace: Trace, spent: Text, recommendations: Sequence[Recommendation]) -> Text:
    """Return how a step is spent and what to do first; of an inference engine its rate and what holds it back."""
    if is_truncated(trace.health):
        return spent
    return _engine_headline(trace) or words.headline(spent, recommendations)


def _engine_headline(trace: Trace) -> Text:
    """Return the rate of an inference engine and what holds it back; empty if either is unknown."""
    if serving_iterations(trace) is None:
        return ()
    from torch_tb_profiler.views._shared.serving import serving_facts, serving_headline  # few traces get here

    facts = serving_facts(trace)
    return () if facts is None or facts.verdict.bottleneck is None else serving_headline(facts)


def _no_advice_sentence(trace: Trace, average: Average | None, kind: str | None) -> Text:
    """Say why there is no advice, or that only the engine's settings help."""
    from torch_tb_profiler.analyses.serving.advice import serving_advice  # few traces get here

    reason = no_advice_reason(trace)
    if reason is None and serving_advice(trace):
        return no_iteration_advice_sentence()
    missing_host = None if has_host_events(trace) else missing_host_reason(trace)
    return no_advice_sentence(average, reason, kind, step_noun(trace), missing_host)


def build_preview(trace: Trace, params: NoParams) -> Overview:
    """Build the overview without a replay of the schedule and without FLOPs, which take about as long as the rest.

    Where there is nothing to replay, this is the entire overview.
    """
    return build(trace, params) if is_truncated(trace.health) or not devices(trace) else _build_measured(trace)


@derived
def _build_measured(trace: Trace) -> Overview:
    """Build what the file says without a replay; the first page and the whole Overview begin with it."""
    times = breakdown(trace)
    step_list, average, reasons = build_steps(times), build_average(trace), missing_reasons(trace, times)
    configuration = build_configuration(trace)
    kind, base = recorded_device_type(configuration), _share_base(trace)
    no_hardware, reason = missing_work_reason(trace), no_advice_reason(trace)
    if no_hardware is not None:
        reasons["hardware"] = no_hardware
    evidence = _evidence_sentences(trace, average, kind)
    spent = sentences(_step_sentence(trace, average, kind), *evidence)
    left_out = sentences(odd_steps_sentence(trace), outside_steps_sentence(trace))
    explanation = words.steps_explanation(
        step_list, average, reasons, is_truncated(trace.health), step_noun(trace)
    )
    return Overview(
        preview=True,
        headline=_headline(trace, spent, ()),
        spent=spent,
        explanation=sentences(
            *_iteration_sentences(trace, spent),
            *evidence,
            words.redirect_operator_links(explanation, configuration.recorded.get("host", False)),
            left_out,
            words.throughput_sentence(count_tokens(trace)),
        ),
        trace_start_ns=trace.trace_start_ns,
        base_ns=trace.base_ns,
        steps=select_steps(step_list, times, average),
        step_count=len(step_list),
        average=average,
        steps_recorded=times.steps.recorded,
        devices=[build_device(entry) for entry in utilizations(trace)],
        hardware=None,
        configuration=configuration,
        gains=(),
        recommendations=[
            build_recommendation(each, base, device_noun(kind), alone=_communicates(trace), noun=step_noun(trace))
            for each in measured_advice(trace)
        ],
        no_advice=() if reason is None else no_advice_sentence(average, reason, kind, step_noun(trace)),
        beside=(),
        waiting=None,
        reasons=reason_texts(reasons),
        health=[*trace.health, *health_notes(trace, times)],
        step_noun=step_noun(trace),
        left_out=left_out,
    )


def _iteration_sentences(trace: Trace, spent: Text) -> list[Text]:
    """Say that a step is an iteration, how it is spent, and where more is said, for an inference engine."""
    if not _engine_headline(trace):
        return []
    return [words.iterations_sentence(), first_sentence(spent)]


def _share_base(trace: Trace) -> str:
    average = build_average(trace)
    return share_base(
        0 if average is None else average.steps,
        steps(trace).recorded,
        average is not None and bool(average.outliers),
        step_noun(trace),
    )


def _step_sentence(
    trace: Trace, average: Average | None, kind: str | None, hardware: HardwareUse | None = None
) -> Text:
    """Say how a step is spent; `kind` of the devices whose work is recorded."""
    if is_truncated(trace.health):
        return truncation_sentence()
    operator = main_operator(trace) if kind is None else None
    function = unrecorded_function(trace) if kind is None else None
    within = {}
    if operator is not None:
        within["cpu_exec"] = Phrase(shorten_name(operator.name), link("trace", event=operator.event))
    if function is not None:
        within["other"] = Phrase(shorten_frame(function.name), link("trace", event=function.event))
    sentence = words.step_sentence(
        average,
        kind,
        [device.id for device in devices(trace)],
        _share_base(trace),
        within,
        hardware,
        _submitted_share(trace),
    )
    return words.redirect_operator_links(sentence, build_configuration(trace).recorded.get("host", False))


def _submitted_share(trace: Trace) -> float:
    """Return the share of the idle time in which the next work is already submitted."""
    idle = total(idle_times(trace))
    return total(submitted_idle_times(trace)) / idle if idle else 0.0


def _evidence_sentences(trace: Trace, average: Average | None, kind: str | None) -> list[Text]:
    """Return what backs the sentence about the step: the largest kernel, or the function the host is in."""
    if average is None or kind is None or average.duration_ns <= 0 or is_truncated(trace.health):
        return []
    if words.is_exposed(average):
        return []
    cause = words.idle_cause(average)
    if cause is None:
        return _largest_kernel_sentences(trace, average)
    function = unrecorded_function(trace) if cause == "other" else None
    if function is None or _submitted_share(trace) > words.SUBMITTED_SHARE:
        return []
    return [words.unrecorded_sentence(Phrase(shorten_frame(function.name), link("trace", event=function.event)))]


def _largest_kernel_sentences(trace: Trace, average: Average) -> list[Text]:
    """Name the kernel with the most time; if another one has it in the typical steps, that one."""
    from torch_tb_profiler.analyses.kernels.table import (
        largest_kernel,
        largest_typical_kernel,
    )  # few traces get here
    from torch_tb_profiler.analyses.tracks.sources import name_of

    kernel, typical = largest_kernel(trace), largest_typical_kernel(trace) if average.outliers else None
    if kernel is None or not name_of(trace, kernel.row):
        return []
    noun, name = "", name_of(trace, kernel.row)
    if typical is not None and name_of(trace, typical.row) not in ("", name):
        kernel, name, noun = typical, name_of(trace, typical.row), step_noun(trace)
    return [
        words.largest_kernel_sentence(short_kernel_names(trace).get(name, name), kernel.row, kernel.share, noun)
    ]


def _communicates(trace: Trace) -> bool:
    """Return whether the trace is of one rank of several, as it communicates."""
    return bool(is_communication_kernel(trace).any()) or len(host_communication_calls(trace)) > 0


def _exposed_share(trace: Trace, average: Average | None) -> float:
    """Return the share of an average step in exposed communication of the device.

    It is 0 where the host communicates: on the critical path, that is host time.
    """
    if average is None or average.duration_ns <= 0 or len(host_communication_calls(trace)):
        return 0.0
    return (average.categories.communication or 0.0) / average.duration_ns


def hardware_use(trace: Trace) -> HardwareUse | str:
    """Return how much of their peak the devices use over the steps, or why that is unknown."""
    reason = _TRUNCATED if is_truncated(trace.health) else missing_work_reason(trace)
    if reason is not None:
        return reason
    used = utilization(trace, WorkFilter(), "")
    peaks = device_peaks(trace, "").values()
    names = list(dict.fromkeys(peak.name for peak in peaks if peak.name is not None))
    reasons = {}
    if used.mfu is None:
        reasons["mfu"] = next((peak.reason for peak in peaks if peak.reason), None) or _NO_PRODUCT
    if used.hfu is None:
        reasons["hfu"] = reasons.get("mfu", _NO_PEAK)
    return HardwareUse(
        mfu=used.mfu,
        hfu=used.hfu,
        coverage=used.coverage or 0.0,
        complete=used.modeled_ns == used.device_ns,
        peaks=" and ".join(names) or None,
        sources=list(dict.fromkeys(peak.source for peak in peaks if peak.source is not None)),
        reasons=reason_texts(reasons),
    )


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
    answers="How the time of a step is spent, what limits it, and what to do first.",
)


def _build_views_of_job() -> tuple[View, ...]:
    from torch_tb_profiler.views._shared.job.exposed import MAX_RANKS_READ
    from torch_tb_profiler.views._shared.job.members import RANK_SUMMARIES
    from torch_tb_profiler.views.overview.ranks import build_beside_ranks

    return (
        RankView(
            "overview/ranks",
            "Overview beside other ranks",
            NoParams,
            Overview,
            build_beside_ranks,
            _ALONE,
            RANK_SUMMARIES,
            MAX_RANKS_READ,
            rows="steps",
            answers="The overview of a rank beside the others of its job: what it waits for, and who is late.",
        ),
    )


TAB = Tab(
    "",
    _ALONE,
    _unavailable,
    (
        TraceView(
            "overview/preview",
            "Overview preview",
            NoParams,
            Overview,
            build_preview,
            cached="on_load",
            rows="steps",
            is_all=lambda overview: not overview.preview,
            answers="The quick part of the overview: no schedule is replayed and no FLOPs are counted.",
        ),
    ),
    of_job=_build_views_of_job,
)
