"""What holds an inference engine back, as the Serving tab and the Overview say it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from torch_tb_profiler.analyses.serving.idle import ServingTimes, average_iteration, serving_times
from torch_tb_profiler.analyses.serving.stalls import PREFILL_BLOCKS, Stall, serving_stalls
from torch_tb_profiler.analyses.serving.summary import (
    PhaseSummary,
    ServingRates,
    phase_summaries,
    serving_rates,
)
from torch_tb_profiler.analyses.serving.verdict import MIN_LOST_SHARE, LostOnce, ServingVerdict, serving_verdict
from torch_tb_profiler.analyses.shared.typical_steps import DEVICE_CATEGORIES, average_step
from torch_tb_profiler.base.format import format_duration, format_number, format_ratio
from torch_tb_profiler.base.grammar import agree, capitalize, plural
from torch_tb_profiler.model.devices import device_kind, devices
from torch_tb_profiler.model.serving.iterations import ServingIterations, serving_iterations
from torch_tb_profiler.model.trace import NO_CODE, Trace
from torch_tb_profiler.views._shared.text import Phrase, Text, device_noun, join_phrases, link, sentences, text

CAUSE_TEXTS = {
    "scheduler": "while the scheduler prepares the next batch",
    "launch": "while the host prepares inputs and launches kernels",
    "sampling_sync": "while the host samples and handles tokens",
    "network": "while it waits for another process",
    "idle": "because no request waits",
    "host_unrecorded": "while the host runs code that wasn't recorded",
    "kernel_gaps": "between neighboring kernels",
}
"""Cause of idle time -> when the device is idle."""

_CAUSES: dict[str, str] = {
    "host_scheduler": "scheduler",
    "sampling_on_host": "sampling_sync",
    "launch": "launch",
    "network": "network",
}
"""Bottleneck -> the cause of idle time."""

MAX_NAMED_ITERATIONS = 3
"""Most iterations that a sentence names one by one."""


class ServingFacts(NamedTuple):
    """What the sentences are about.

    device   "GPU", or "CPU" where no device work is recorded
    mean_ns  of an average iteration, without those of `verdict.once`
    idle     share of it in which the device is idle, or in which the model doesn't run
    """

    found: ServingIterations
    times: ServingTimes
    rates: ServingRates
    phases: tuple[PhaseSummary, ...]
    stalls: tuple[Stall, ...]
    verdict: ServingVerdict
    device: str
    mean_ns: float
    idle: float


def serving_facts(trace: Trace) -> ServingFacts | None:
    """Return what the sentences are about, or None if the trace has no iterations of an engine."""
    found, times, rates = serving_iterations(trace), serving_times(trace), serving_rates(trace)
    verdict = serving_verdict(trace)
    if found is None or times is None or rates is None or verdict is None:
        return None
    device = device_noun(device_kind(trace)) if devices(trace) else "CPU"
    mean, idle = _average_typical_iteration(trace, times, verdict.left_out)
    return ServingFacts(
        found, times, rates, phase_summaries(trace), serving_stalls(trace), verdict, device, mean, idle
    )


def _average_typical_iteration(trace: Trace, times: ServingTimes, left_out: Sequence[int]) -> tuple[float, float]:
    """Return (ns, share of it that is idle) of an average iteration.

    That is the average step of the Overview, unless some iterations are left out.
    """
    average, measured = average_step(trace), average_iteration(times, left_out)
    if average is None or average.duration <= 0 or left_out:
        return measured.duration, measured.idle
    share = measured.idle
    if times.on_device:
        share = 1 - sum(average.categories[name] for name in DEVICE_CATEGORIES) / average.duration
    return average.duration, share


def serving_headline(facts: ServingFacts) -> Text:
    """Return the rate, what holds the engine back, and what stalls few iterations only."""
    return sentences(_rate_and_bottleneck(facts), *(_once_sentence(facts, each) for each in facts.verdict.once))


def _once_sentence(facts: ServingFacts, once: LostOnce) -> Text:
    cause = "host_unrecorded" if once.likely else _CAUSES[once.bottleneck]
    label = int(facts.found.event[once.rows[0]])
    template = (
        "In {iterations}, the {device} is idle for {time} {when}{likely}."
        if facts.times.on_device
        else "In {iterations}, {time} pass outside the model, {when}{likely}."
    )
    return text(
        template,
        iterations=_iterations_text(once.iterations),
        device=facts.device,
        time=Phrase(format_duration(once.lost_ns), link("trace", event=None if label == NO_CODE else str(label))),
        when=CAUSE_TEXTS[cause],
        likely=", likely the scheduler" if once.likely else "",
    )


def _iterations_text(numbers: Sequence[int]) -> Text:
    """Return "iteration 20", "iterations 20 and 40", or how many there are."""
    if len(numbers) > MAX_NAMED_ITERATIONS:
        return text("{count} iterations", count=f"{len(numbers):,}")
    noun = agree(len(numbers), "iteration", "iterations")
    return text("{noun} {names}", noun=noun, names=join_phrases(f"{number:,}" for number in numbers))


def _rate_and_bottleneck(facts: ServingFacts) -> Text:
    verdict, idle = facts.verdict, facts.idle
    rate = _rate(facts)
    numbers = sorted({number for each in verdict.once for number in each.iterations})
    apart: Text = text("apart from {iterations}, ", iterations=_iterations_text(numbers)) if numbers else ()
    match verdict.bottleneck:
        case None:
            return text("{rate}. {reason}.", rate=rate, reason=capitalize(verdict.reason or ""))
        case "host_scheduler" | "sampling_on_host" | "launch" | "network":
            when = CAUSE_TEXTS["host_unrecorded" if verdict.likely else _CAUSES[verdict.bottleneck]]
            if not facts.times.on_device:
                return text(
                    "{rate}; {apart}{idle} of an average iteration passes outside the model, mostly "
                    "{when}{likely}.",
                    rate=rate,
                    apart=apart,
                    idle=Phrase(format_ratio(idle), link("idle")),
                    when=when,
                    likely=", likely the scheduler" if verdict.likely else "",
                )
            return text(
                "{rate}; {apart}the {device} is idle for {idle} of an average iteration, mostly {when}{likely}.",
                rate=rate,
                apart=apart,
                device=facts.device,
                idle=Phrase(format_ratio(idle), link("idle")),
                when=when,
                likely=", likely the scheduler" if verdict.likely else "",
            )
        case "prefill_blocks_decode":
            blocks = [stall for stall in facts.stalls if stall.cause == PREFILL_BLOCKS]
            return sentences(
                text("{rate}.", rate=rate),
                text(
                    "{count} {hold} up decoding requests by {mean} each.",
                    count=plural(len(blocks), "prefill"),
                    hold=agree(len(blocks), "holds", "hold"),
                    mean=format_duration(sum(stall.extra_ns for stall in blocks) / len(blocks)),
                ),
            )
        case "kv_cache_full":
            return sentences(
                text("{rate}.", rate=rate),
                text(
                    "The KV cache is too small for the running requests: {count} {recompute} preempted ones.",
                    count=plural(verdict.recomputed, "iteration"),
                    recompute=agree(verdict.recomputed, "recomputes", "recompute"),
                ),
            )
        case "no_requests":
            return sentences(
                text(
                    "The engine has no requests for {share} of the window{likely}.",
                    share=format_ratio(verdict.lost_share),
                    likely=", as far as the trace shows" if verdict.likely else "",
                ),
                text("{rate}.", rate=rate),
            )
    return text(
        "{rate}; {apart}the {device} is busy for {busy} of an average iteration, {pace}.",
        rate=rate,
        apart=apart,
        device=facts.device,
        busy=format_ratio(1 - idle),
        pace=_what_sets_the_pace(facts, idle),
    )


def _what_sets_the_pace(facts: ServingFacts, idle: float) -> str:
    """Say what sets the pace of an engine whose host is no bottleneck; `idle`: share of an average iteration."""
    if average_iteration(facts.times, facts.verdict.left_out).pauses >= MIN_LOST_SHARE:
        return "so kernels and the short pauses between them set the pace"
    if idle > 0.5:  # no kernel sets the pace of a device that is idle most of the time
        return "and several causes share its idle time"
    return "so kernels set the pace" if facts.times.on_device else "so the model sets the pace"


def _rate(facts: ServingFacts) -> Text:
    rates = facts.rates
    if rates.output:
        share = Phrase(f"{format_number(rates.output)} tokens/s", link("trace"))
        return text("The engine generates {rate}", rate=share)
    phase = facts.phases[0]
    return text(
        "{count} {take} {time}{median}",
        count=capitalize(plural(phase.iterations, f"{phase.phase or 'unknown'} iteration")),
        take=agree(phase.iterations, "takes", "take"),
        time=format_duration(phase.median_ns),
        median=" (median)" if phase.iterations > 1 else "",
    )
