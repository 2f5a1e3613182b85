"""The Overview of a rank beside the other ranks of its job: what it waits for, and who is a straggler."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.analyses.distributed.steps import exposed_communication, mean_counted_step_ns
from torch_tb_profiler.analyses.distributed.suspects import MIN_COST_SHARE
from torch_tb_profiler.analyses.distributed.verdict import StragglerVerdict
from torch_tb_profiler.analyses.overview.finding import MIN_GAIN_SHARE, Advice, Finding, Gain, advice_priority
from torch_tb_profiler.analyses.overview.idle import LONG_STRETCH_NS
from torch_tb_profiler.base.format import format_ratio
from torch_tb_profiler.base.grammar import agree, share_base, with_article
from torch_tb_profiler.model.health import HealthNote, is_truncated
from torch_tb_profiler.view import Members, NoParams
from torch_tb_profiler.views._shared.job.causes import (
    cause_sentence,
    even_split_sentence,
    slower_devices_sentence,
)
from torch_tb_profiler.views._shared.job.exposed import (
    MAX_RANKS_READ,
    CommunicationParts,
    communication_parts,
    communication_sentence,
    is_compared,
    unread_ranks_sentence,
)
from torch_tb_profiler.views._shared.job.members import (
    compare_members,
    count_unread,
    judge_members,
    members_coverage,
)
from torch_tb_profiler.views._shared.job.names import rank_names, time_base
from torch_tb_profiler.views._shared.job.odd_steps import split_odd_steps
from torch_tb_profiler.views._shared.job.verdict import (
    coverage_sentence,
    rank_differences_sentence,
    verdict_headline,
)
from torch_tb_profiler.views._shared.text import (
    Phrase,
    Text,
    device_noun,
    first_sentence,
    link,
    plain,
    sentences,
    text,
)
from torch_tb_profiler.views.overview.advice import build_recommendation, gain_text, no_advice_sentence
from torch_tb_profiler.views.overview.payload import Average, Overview, Recommendation
from torch_tb_profiler.views.overview.recorded import recorded_device_type
from torch_tb_profiler.views.overview.words import headline

_EVIDENCE = link("distributed")

MAX_REPEATED_RATIO = 1.5
"""Advice that saves more than this ratio of what a late rank costs is about more than why it is late."""


def build_beside_ranks(alone: Overview, worker: str, members: Members[RankSummary], params: NoParams) -> Overview:
    """Correct what the rank's own file says by what the files of all ranks say together.

    In its own file, waiting for a straggler looks like slow communication. While other ranks are read, and where
    they can't tell who is late, the answer is that of the file alone; `beside` says why.
    """
    unread = count_unread(members)
    if len(members) > MAX_RANKS_READ and unread:
        return replace(alone, beside=unread_ranks_sentence(len(members), unread))
    if unread:
        return alone
    alone = replace(alone, health=[*alone.health, *_build_missing_ranks_note(members)])
    if is_truncated(alone.health) or alone.average is None:
        return alone
    comparison, verdict = compare_members(members), judge_members(members).verdict
    position = comparison.positions.get(worker)
    if not verdict.splits_waiting or position is None:
        return replace(alone, beside=sentences(verdict_headline(members, verdict), coverage_sentence(members)))
    average = alone.average
    alone = replace(
        alone,
        explanation=split_odd_steps(alone.explanation, comparison, position),
        left_out=split_odd_steps(alone.left_out, comparison, position),
    )
    base = share_base(average.steps, alone.steps_recorded, bool(average.outliers), alone.step_noun)
    exposed = exposed_communication(comparison, position)
    waiting = communication_parts(average.categories.communication or 0.0, exposed)
    by_kernels = comparison.sources[position].summary.by_kernels
    kind = recorded_device_type(alone.configuration)
    recommendations = list(
        _correct_advice(
            alone.recommendations, average, waiting, base, device_noun(kind), by_kernels, alone.step_noun
        )
    )
    if verdict.kind == "straggler":
        repeated = [each for each in recommendations if _repeats_cause(each, verdict, position)]
        recommendations = [each for each in recommendations if each not in repeated]
        recommendations.append(
            _build_straggler_advice(members, verdict, position, average, repeated, alone.step_noun)
        )
    elif verdict.imbalance is not None and (verdict.in_turn is not None or verdict.uneven is not None):
        recommendations.append(
            _build_imbalance_advice(members, verdict, verdict.imbalance, average, alone.step_noun)
        )
    recommendations.sort(key=lambda advice: -advice_priority(advice.id, advice.gain_ns))
    return replace(
        alone,
        headline=headline_beside_ranks(alone, recommendations, _waiting_clause(average, waiting, base)),
        gains=alone.gains if {advice.basis for advice in recommendations} & {"what_if", "share"} else (),
        recommendations=recommendations,
        no_advice=()
        if recommendations
        else sentences(
            _nothing_but_waiting_sentence(
                average, waiting, base, waits_for_missing=verdict.reason in ("absent", "missing")
            )
            or alone.no_advice
            or no_advice_sentence(average, None, kind, alone.step_noun),
            _late_at_times_sentence(verdict, position, alone.step_noun),
        ),
        beside=_waiting_and_stragglers_sentence(members, verdict, waiting, by_kernels),
        waiting=waiting,
    )


def headline_beside_ranks(alone: Overview, recommendations: list[Recommendation], waiting: Text) -> Text:
    """Return the headline beside the other ranks; of an inference engine it keeps its rate.

    An engine's headline begins with its rate, that of other traces with how a step is spent.
    """
    opening = first_sentence(alone.headline)
    if plain(opening) == plain(first_sentence(alone.spent)):
        return headline(alone.spent, recommendations, waiting)
    about_job = any(advice.basis == "ranks" for advice in recommendations)
    return headline(opening, recommendations, waiting) if waiting or about_job else alone.headline


def _correct_advice(
    recommendations: list[Recommendation],
    average: Average,
    waiting: CommunicationParts,
    base: str,
    device: str,
    by_kernels: bool,
    noun: str,
) -> Iterator[Recommendation]:
    """Yield the advice of the file without its guess that a rank is late; less communication saves no waiting."""
    for advice in recommendations:
        if advice.id == "communication" and advice.gain_ns is not None:
            gain = min(advice.gain_ns, waiting.transfer_ns + waiting.uncompared_ns)
            if gain >= MIN_GAIN_SHARE * average.duration_ns:
                finding = Finding(advice.id, case=advice.case, on_device=by_kernels)
                corrected = Advice(finding, Gain(gain, gain, "ranks"), gain / average.duration_ns)
                yield build_recommendation(corrected, base, device, advice.evidence, noun=noun)
        elif advice.id != "late_rank":
            yield advice


def _waiting_clause(average: Average, waiting: CommunicationParts, base: str) -> Text:
    """Return how much of a step is spent waiting for other ranks, if it is worth a person's time."""
    if waiting.waiting_ns < MIN_GAIN_SHARE * average.duration_ns:
        return ()
    ratio = waiting.waiting_ns / average.duration_ns
    least = format_ratio(ratio) if is_compared(waiting) else f"At least {format_ratio(ratio, 'down')}"
    share = Phrase(f"{least} of {base}", _EVIDENCE)
    return text("{share} is waiting for other ranks", share=share)


def _nothing_but_waiting_sentence(
    average: Average, waiting: CommunicationParts, base: str, *, waits_for_missing: bool
) -> Text:
    """Say that no advice applies to this rank because it waits for others; empty if it hardly does.

    waits_for_missing  as far as is known, for ranks whose files are missing
    """
    clause = _waiting_clause(average, waiting, base)
    if not clause and not waits_for_missing:
        return ()
    share = format_ratio(MIN_GAIN_SHARE)
    return sentences(
        text("No known fix on this rank would save {share} or more.", share=share),
        text("{waiting}.", waiting=clause) if clause else (),
    )


def _late_at_times_sentence(verdict: StragglerVerdict, position: int, noun: str) -> Text:
    """Lead to Distributed where other ranks are late in a few steps, so that no advice is about them."""
    others = {each.member for each in verdict.once} - {position}
    if not others:
        return ()
    return text(
        "{who} late in some {noun}s: look at {distributed}.",
        who=agree(len(others), "Another rank is", "Other ranks are"),
        noun=noun,
        distributed=Phrase("Distributed", _EVIDENCE),
    )


def _waiting_and_stragglers_sentence(
    members: Members[RankSummary], verdict: StragglerVerdict, waiting: CommunicationParts, by_kernels: bool
) -> Text:
    """Say what communication (exposed, if `by_kernels`) is spent on, and whether a rank is a straggler."""
    if waiting.transfer_ns + waiting.waiting_ns + waiting.uncompared_ns <= 0:
        return sentences(verdict_headline(members, verdict), coverage_sentence(members))
    what = "exposed communication" if by_kernels else "communication"
    return sentences(
        communication_sentence(waiting, what=what),
        verdict_headline(members, verdict),
        coverage_sentence(members),
    )


def _build_missing_ranks_note(members: Members[RankSummary]) -> Iterator[HealthNote]:
    """Yield a note on the health of the job's files if ranks are missing."""
    coverage, sentence = members_coverage(members), plain(coverage_sentence(members))
    if sentence:
        count = coverage.expected - coverage.compared
        yield HealthNote("missing_ranks", "warning", sentence.removesuffix("."), count)


def _repeats_cause(advice: Recommendation, verdict: StragglerVerdict, position: int) -> bool:
    """Return whether a late rank's own file advises about the very time by which it is late."""
    cause, cost = verdict.cause_of(position), 0.0 if verdict.suspect is None else verdict.suspect.cost
    if cause is None:
        return False
    if advice.gain_ns is None or advice.gain_ns > MAX_REPEATED_RATIO * cost:
        return False
    if advice.id == "data_loading":
        return cause.kind == "data_loading"
    if cause.kind != "host":
        return False
    if advice.id == "launch_bound":
        return cause.excess <= LONG_STRETCH_NS
    function = cause.name.rpartition(": ")[2]
    names = [name for name in (function, cause.operator) if name]
    return advice.id in ("host_code", "short_code") and any(name in plain(advice.text) for name in names)


def _build_straggler_advice(
    members: Members[RankSummary],
    verdict: StragglerVerdict,
    position: int,
    average: Average,
    repeated: Sequence[Recommendation],
    noun: str,
) -> Recommendation:
    """Build the advice to find out why the stragglers are late, with the cause of this one if it is among them.

    position  the rank that is looked at
    repeated  what its own file advises about the same time
    noun      what a step is, see `steps.step_noun`; also of the advice below
    """
    comparison, late = compare_members(members), [row.member for row in verdict.ranks]
    known = verdict.cause_of(position) or verdict.cause
    cause: Text = ()
    if known is not None and known.kind == "slower_device" and verdict.slower_devices is not None:
        cause = slower_devices_sentence(comparison, verdict.slower_devices)
    elif known is not None:
        cause = cause_sentence(comparison, known, time_base(comparison))
    cost = verdict.suspect.cost if verdict.suspect is not None else 0.0
    names = plain(rank_names([comparison.sources[member] for member in sorted(late)], capital=False))
    split: Text = ()
    if verdict.even_split is not None:  # some rank has to do the work
        cost, split = verdict.even_split, even_split_sentence(comparison, verdict.even_split)
    step_ns = max(average.duration_ns, mean_counted_step_ns(comparison, position))
    cost = min(cost, step_ns)
    remedies = [text("{title}.", title=each.title) for each in repeated]
    advice = _build_job_advice(
        "straggler",
        text(
            "Find out why {names} {are} late",
            names="this rank" if late == [position] else names,
            are=agree(len(late), "is", "are"),
        ),
        sentences(verdict_headline(members, verdict), cause, split, *remedies),
        cost,
        step_ns,
        "a straggler",
        "the work can't be divided more evenly between the ranks.",
        noun,
    )
    return replace(advice, code="\n".join(each.code for each in repeated if each.code))


def _build_imbalance_advice(
    members: Members[RankSummary], verdict: StragglerVerdict, cost: float, average: Average, noun: str
) -> Recommendation:
    """Build the advice where ranks are late in turn, or have more or less work; `cost` in ns per step."""
    comparison = compare_members(members)
    message = sentences(verdict_headline(members, verdict), rank_differences_sentence(comparison, verdict))
    if verdict.in_turn is not None:
        # Without it, no step is shorter by more than the rank was late; the replay saves less, as it compares the
        # ranks with each other.
        cost = max(cost, verdict.in_turn.per_step)
        title, found = text("Find out why ranks take turns being late"), "ranks that take turns being late"
        exception = "what they do then must happen on each rank at its own time."
    else:
        title, found = text("Divide the work evenly between the ranks"), "kernels of other sizes on a rank"
        exception = "the inputs of a rank can't be made larger or smaller."
    return _build_job_advice("imbalance", title, message, cost, average.duration_ns, found, exception, noun)


def _build_job_advice(
    id: str, title: Text, message: Text, cost: float, step_ns: float, found: str, exception: str, noun: str
) -> Recommendation:
    """Build advice on what the files of all ranks show.

    found  in which case; cost: ns per step, which takes `step_ns`; noun: what a step is, see `steps.step_noun`
    """
    gain_share = cost / step_ns if step_ns else 0.0
    return Recommendation(
        id=id,
        case="",
        title=title,
        text=message,
        gain=gain_text(Gain(cost, cost, "ranks"), gain_share),
        gain_ns=cost,
        gain_share=gain_share,
        gain_is_limit=True,
        basis="ranks",
        rule=f"the files of all ranks, compared in Distributed, show {found}, which costs at least "
        f"{MIN_COST_SHARE:.0%} of {with_article(noun)}",
        code="",
        exception=exception,
        evidence=_EVIDENCE,
    )
