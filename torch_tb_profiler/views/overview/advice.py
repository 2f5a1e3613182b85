"""Advice in words: what was measured, what to do, what it can gain, and when it does not apply."""

from __future__ import annotations

from collections.abc import Mapping

from torch_tb_profiler.analyses.overview.finding import Advice, Basis, Finding, Gain
from torch_tb_profiler.base.format import format_duration, format_ratio
from torch_tb_profiler.views._shared.text import Phrase, Text, link, sentences, text
from torch_tb_profiler.views.overview.payload import Recommendation
from torch_tb_profiler.views.overview.sentences import SENTENCES, Sentences

_MORE = 1.1
"""A gain so many times what was measured asks for a reason."""

BASES: Mapping[Basis, str] = {"what_if": "what-if", "share": "measured share", "ranks": "all ranks compared"}


def recommendation(advice: Advice, whole: str, evidence: str | None = None) -> Recommendation:
    """What to do about a finding; `whole`: what shares are of, as `words.whole_of` says.

    `evidence`: the link that shows it, if not what the finding names.
    """
    finding = advice.finding
    words = SENTENCES[finding.id, finding.case]
    evidence = evidence or _evidence(finding)
    parts: dict[str, str | Phrase | Text] = {
        "time": Phrase(format_duration(None if advice.gain is None else advice.gain.measured_ns), evidence),
        "share": Phrase(format_ratio(finding.value), evidence),
        "count": "" if finding.value is None else f"{finding.value:,.0f}",
        "duration": format_duration(finding.value),
        "times": "" if finding.value is None else f"{finding.value:,.3g} times",
        "subject": Phrase(finding.subject, evidence),
        "place": text(" ({place})", place=finding.place) if finding.place else "",
        "whole": whole,
        "alone": " while nothing computes" if finding.on_device else "; operators of the host may run meanwhile",
    }
    return Recommendation(
        id=finding.id,
        case=finding.case,
        title=text(words.title, subject=finding.subject),
        text=sentences(text(words.text, **parts), *([text(words.more)] if _gains_more(advice.gain) else [])),
        gain=gain_words(advice.gain, advice.gain_share),
        gain_ns=None if advice.gain is None else advice.gain.ns,
        gain_share=advice.gain_share,
        basis=None if advice.gain is None else advice.gain.basis,
        rule=words.rule,
        code=words.code,
        exception=_exception(words, advice.gain),
        evidence=evidence,
    )


def _gains_more(gain: Gain | None) -> bool:
    return gain is not None and gain.basis == "what_if" and gain.ns > _MORE * gain.measured_ns


def _exception(words: Sentences, gain: Gain | None) -> str:
    """When the advice does not apply; once all ranks are compared, no late rank is hidden in it."""
    if not words.late or (gain is not None and gain.basis == "ranks"):
        return words.exception
    return f"{words.exception.removesuffix('.')}, or a rank is late, which looks the same in the file of one rank."


def gain_words(gain: Gain | None, gain_share: float | None) -> str:
    """Up to how much following an advice gains, and where that comes from."""
    if gain is None:
        return "no time, but room"
    return f"up to {format_ratio(gain_share)}, {format_duration(gain.ns)} ({BASES[gain.basis]})"


def _evidence(finding: Finding) -> str:
    if finding.id == "memory_limit":
        return link("memory", device=finding.subject)
    if finding.id == "late_rank":
        return link("distributed")
    window = None if finding.window is None else f"{finding.window[0]}-{finding.window[1]}"
    return link("trace", event=finding.event, at=window)
