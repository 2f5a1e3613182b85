"""Advice as the page shows it: its words, what it saves and where that comes from; or why there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from torch_tb_profiler.analyses.overview.finding import (
    MIN_GAIN_SHARE,
    WITHOUT_LIMIT,
    Advice,
    Basis,
    Finding,
    Gain,
)
from torch_tb_profiler.analyses.overview.kernel_rules.matrix_products import TENSOR_CORE_MULTIPLES
from torch_tb_profiler.base.format import Rounding, format_duration, format_ratio
from torch_tb_profiler.base.grammar import agree, plural, pluralize, say_steps
from torch_tb_profiler.model.schedule.schedule import MIN_EXPLAINED_SHARE
from torch_tb_profiler.views._shared.text import Phrase, Text, link, sentences, text
from torch_tb_profiler.views._shared.wording import used_more
from torch_tb_profiler.views.overview.host_rule_words import COST, RuleWords
from torch_tb_profiler.views.overview.payload import Average, Recommendation
from torch_tb_profiler.views.overview.rule_words import RULE_WORDS
from torch_tb_profiler.views.overview.words import BUSY_CATEGORIES, MIN_IDLE_SHARE, is_exposed

EXTRA_GAIN_RATIO = 1.1
"""A gain this many times the measured time needs an explanation."""

LITTLE_COST = f"less than {MIN_GAIN_SHARE:.0%} of the step alone, but may save {MIN_GAIN_SHARE:.0%} or more"
"""What stands for COST where a step gets shorter by more than the time in which nothing else runs."""

BASES: Mapping[Basis, str] = {"what_if": "what-if", "share": "measured share", "ranks": "ranks compared"}


def build_recommendation(
    advice: Advice,
    base: str,
    device: str = "device",
    evidence: str | None = None,
    *,
    alone: bool = False,
    noun: str = "step",
) -> Recommendation:
    """Build what to do about a finding.

    base      what shares refer to, see `grammar.share_base`; device: the noun for the devices, "GPU"
    evidence  the link that shows it, if not what the finding names
    alone     whether the rank communicates, and what it saves is estimated from its file alone
    noun      what a step is, see `steps.step_noun`
    """
    finding = advice.finding
    words = _say_iterations(_find_words(advice), noun)
    evidence = evidence or _evidence_text(finding)
    measured = None if advice.gain is None else advice.gain.measured_ns
    parts: dict[str, str | Phrase | Text] = {
        "time": Phrase(format_duration(measured), evidence if _shows(finding, measured) else None),
        "limit": Phrase(format_duration(measured, "up"), evidence if _shows(finding, measured) else None),
        "gain": format_duration(None if advice.gain is None else advice.gain.ns, "up"),
        "share": Phrase(format_ratio(finding.value), evidence),
        "count": "" if finding.value is None else f"{finding.value:,.0f}",
        **_counted(round(finding.value or 0)),
        "duration": format_duration(finding.value),
        "times": "" if finding.value is None else f"{finding.value:,.3g} times",
        "subject": Phrase(finding.subject, evidence),
        "most": "Most" if finding.majority else "The largest part",
        "place": text(" ({place})", place=finding.place) if finding.place else "",
        "message": finding.place,
        "operator": f", most of it allocated by {finding.operator}" if finding.operator else "",
        "unknown": _unknown_work_text(finding),
        "sizes": _unaligned_sizes_text(finding),
        "base": base,
        "device": device,
        "used": used_more(int(finding.value or 0)),
        "overlap": " without overlapping compute"
        if finding.on_device
        else "; operators on the host may run at the same time",
    }
    is_limit = finding.id not in WITHOUT_LIMIT
    more = text(words.more, device=device) if _exceeds_measured(advice.gain) else ()
    return Recommendation(
        id=finding.id,
        case=finding.case,
        title=text(words.title, subject=finding.subject),
        text=sentences(text(words.text, **parts), more, _origin_sentence(finding, evidence)),
        gain=gain_text(advice.gain, advice.gain_share, is_limit=is_limit, alone=alone),
        gain_ns=None if advice.gain is None else advice.gain.ns,
        gain_share=advice.gain_share,
        gain_is_limit=is_limit,
        basis=None if advice.gain is None else advice.gain.basis,
        rule=words.rule,
        code=words.code,
        exception=_exception_text(words, advice.gain),
        evidence=evidence,
    )


def _counted(count: int) -> dict[str, str]:
    """Return the nouns and verbs of texts that agree with a count."""
    return {
        **{pluralize(noun): plural(count, noun) for noun in ("call", "copy", "kernel", "product", "chain")},
        **{verb: agree(count, f"{verb}s", verb) for verb in ("wait", "run", "convert")},
        "often": "once" if count == 1 else f"{count:,} times",
    }


def _shows(finding: Finding, measured_ns: float | None) -> bool:
    """Return whether the evidence has the time of a step, and not one of many parts of it."""
    if measured_ns is None or finding.window is None:
        return True
    return measured_ns <= finding.window[1] - finding.window[0]


def _find_words(advice: Advice) -> RuleWords:
    """Return the words of the finding's rule, which say so where its cost alone is no reason for the advice."""
    words, gain = RULE_WORDS[advice.finding.id, advice.finding.case], advice.gain
    if gain is None or advice.gain_share is None or gain.measured_ns >= gain.ns:
        return words
    cost = gain.measured_ns / gain.ns * advice.gain_share
    if cost >= MIN_GAIN_SHARE:
        return words
    return msgspec.structs.replace(words, rule=words.rule.replace(COST, LITTLE_COST))


def _say_iterations(words: RuleWords, noun: str) -> RuleWords:
    """Return the words with the noun for a step; the code keeps its own."""
    changed = {
        field: say_steps(getattr(words, field), noun) for field in ("title", "text", "rule", "exception", "more")
    }
    return msgspec.structs.replace(words, **changed)


def _origin_sentence(finding: Finding, evidence: str | None) -> Text:
    """Say where the example comes from if the launch of its kernel doesn't."""
    if not finding.origin:
        return ()
    return text("The example comes from {origin}.", origin=Phrase(finding.origin, evidence))


def gain_text(gain: Gain | None, gain_share: float | None, *, is_limit: bool = True, alone: bool = False) -> str:
    """Return what following the advice saves at most, or at least, and how that was estimated.

    is_limit  whether it saves no more than that
    alone     of one rank of several: if all ranks follow the advice, each also waits less for the others
    """
    if gain is None:
        return "saves memory, not time"
    where = " on this rank alone" if alone else ""
    rounding: Rounding = "up" if is_limit else "down"
    saved = f"{format_duration(gain.ns, rounding)}, {format_ratio(gain_share, rounding)}"
    return f"saves {'up to' if is_limit else 'at least'} {saved}{where} ({BASES[gain.basis]})"


def _exceeds_measured(gain: Gain | None) -> bool:
    return gain is not None and gain.basis == "what_if" and gain.ns > EXTRA_GAIN_RATIO * gain.measured_ns


def _exception_text(words: RuleWords, gain: Gain | None) -> str:
    """Return when the advice doesn't apply; once all ranks are compared, it hides no straggler."""
    if not words.late or (gain is not None and gain.basis == "ranks"):
        return words.exception
    return f"{words.exception.removesuffix('.')}, or a rank is late, which looks the same in one rank's file."


def _unknown_work_text(finding: Finding) -> str:
    """Return that some products have no roofline, so that memory may bound them and nothing is saved."""
    if finding.id != "mixed_precision" or finding.value is None:
        return ""
    part = "these products" if finding.value == 1 else f"{format_ratio(finding.value)} of their time"
    return f" The roofline of {part} is unknown; where memory limits them, Tensor Cores save nothing."


def _unaligned_sizes_text(finding: Finding) -> str:
    """Return which sizes have to be padded for Tensor Cores to run at full speed."""
    if finding.id != "mixed_precision" or not finding.place:
        return ""
    multiple = TENSOR_CORE_MULTIPLES[finding.case]
    return f" They are slower with sizes that aren't multiples of {multiple}, as in {finding.place}: pad those."


def _evidence_text(finding: Finding) -> str:
    if finding.id in ("memory_limit", "memory_peak"):
        return link("memory", device=finding.subject)
    if finding.id in ("memory_growth", "reserved_growth"):
        return link("memory", device=finding.subject, table="growth")
    if finding.id == "late_rank":
        return link("distributed")
    window = None if finding.window is None else f"{finding.window[0]}-{finding.window[1]}"
    return link("trace", event=finding.event, at=window)


def savings_note(
    recommendations: Sequence[Recommendation],
    explained: float | None,
    reason: str | None,
    *,
    alone: bool = False,
    replayed: str = "this trace",
) -> Text:
    """Say where the estimated savings come from and what they leave out.

    reason  why nothing is replayed
    alone   whether the trace is of one rank of several, which waits less if the others follow the advice as well
    replayed  what `explained` is a share of
    """
    bases = {recommendation.basis for recommendation in recommendations} - {None}
    if not bases:
        return ()
    is_limit = all(recommendation.gain_is_limit for recommendation in recommendations)
    bounds = "upper bounds from measured time" if is_limit else "measured time"
    job = text("Savings are for this rank alone: if all ranks change, the job may save more.") if alone else ()
    if reason is not None:
        return sentences(
            text(
                "This trace can't be replayed reliably: {reason}. Savings are {bounds}.",
                reason=reason,
                bounds=bounds,
            ),
            job,
        )
    if bases == {"share"}:
        return sentences(
            text(
                "Savings are {bounds}: what the advice removes isn't part of the recorded schedule.", bounds=bounds
            ),
            job,
        )
    return sentences(
        text(
            "Estimates replay the recorded schedule without the time the advice removes. The replay reproduces "
            "{share} of {replayed} (at least {least} needed). Savings overlap, so they don't add up. {path} lists "
            "what a replay leaves out.",
            share=format_ratio(explained),
            replayed=replayed,
            least=format_ratio(MIN_EXPLAINED_SHARE),
            path=Phrase("Critical path", link("critical_path")),
        ),
        job,
    )


def no_advice_sentence(
    average: Average | None,
    reason: str | None,
    kind: str | None,
    noun: str = "step",
    missing_host: str | None = None,
) -> Text:
    """Say why there is no advice. Where a device is idle or waits, that doesn't mean that nothing can be done.

    kind          of the devices, None where no device work is recorded
    noun          what a step is, see `steps.step_noun`
    missing_host  why nothing is known about the host, which most advice is about
    """
    if reason is not None:
        return text("No advice: {reason}.", reason=reason)
    if average is None:
        return text("No advice: there is no complete {noun}.", noun=noun)
    if average.duration_ns <= 0:
        return text("No advice: no time passes in {noun}s.", noun=noun)
    if missing_host is not None:
        return text("Nothing stands out in the device work alone: {reason}.", reason=missing_host)
    busy = sum(getattr(average.categories, name) or 0.0 for name in BUSY_CATEGORIES) / average.duration_ns
    # What little each rank of several saves may add up, as the copies of all stages of a pipeline do.
    where = " on this rank" if average.categories.communication else ""
    if kind is not None and 0 < busy < 1 - MIN_IDLE_SHARE:
        return text(
            "No known fix{where} would save {share} or more. Look at the gaps on the {timeline}.",
            where=where,
            share=format_ratio(MIN_GAIN_SHARE),
            timeline=Phrase("timeline", link("trace")),
        )
    if kind is not None and is_exposed(average):
        return text(
            "No known fix{where} would save {share} or more. Look at exposed communication in {distributed}.",
            where=where,
            share=format_ratio(MIN_GAIN_SHARE),
            distributed=Phrase("Distributed", link("distributed")),
        )
    if average.outliers:
        return text(
            "Nothing stands out in typical {noun}s: no known fix{where} would save {share} or more of one.",
            noun=noun,
            where=where,
            share=format_ratio(MIN_GAIN_SHARE),
        )
    return text(
        "Nothing stands out: no known fix{where} would save {share} or more.",
        where=where,
        share=format_ratio(MIN_GAIN_SHARE),
    )


def no_iteration_advice_sentence() -> Text:
    """Say that no advice of the Overview applies to an engine, and where there is some."""
    return text(
        "No known fix outside the engine's settings would save {share} or more; {serving} says what to set.",
        share=format_ratio(MIN_GAIN_SHARE),
        serving=Phrase("Serving", link("serving")),
    )
