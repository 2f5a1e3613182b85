"""Which ranks are stragglers, what that costs the others, and what these ranks spend extra time on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from torch_tb_profiler.analyses.distributed.causes import SlowerDevices, StragglerCause, find_work_cause
from torch_tb_profiler.analyses.distributed.communication_share import CommunicationShare
from torch_tb_profiler.analyses.distributed.comparison import RankComparison
from torch_tb_profiler.analyses.distributed.heat_map import lateness_by_step
from torch_tb_profiler.analyses.distributed.late_once import has_odd_steps
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.analyses.distributed.stragglers import RankTime, Straggler, StragglerActivity
from torch_tb_profiler.analyses.distributed.verdict import MAX_EXPLAINED_EVENTS, StragglerVerdict
from torch_tb_profiler.base.format import format_duration, format_ratio
from torch_tb_profiler.base.grammar import agree, plural, share_base
from torch_tb_profiler.view import Members
from torch_tb_profiler.views._shared.job.causes import (
    cause_cell,
    cause_sentence,
    held_up_cell,
    slower_devices_cell,
    slower_devices_sentence,
)
from torch_tb_profiler.views._shared.job.members import MAX_EXPLAINED_RANKS, compare_members, count_unread
from torch_tb_profiler.views._shared.job.names import MAX_NAMED_RANKS, has_steps, job_noun, member_names, time_base
from torch_tb_profiler.views._shared.job.verdict import (
    costliest_rank_sentence,
    coverage_sentence,
    late_once_sentences,
    missing_suspects_sentence,
    rank_differences_sentence,
)
from torch_tb_profiler.views._shared.text import Phrase, Text, link, sentences, shorten_frame, text
from torch_tb_profiler.views.distributed.payload.job import (
    LateHost,
    LatenessMap,
    RankTimeRow,
    StragglerActivityRow,
    StragglerRow,
    VerdictPayload,
)

MIN_EXPLAINED_COST_RATIO = 0.01
"""A rank that costs less than this share of what the costliest one costs needs no cause."""


MAX_EXPLAINED_CAUSES = 2
"""Most causes of stragglers that are told apart below the headline."""


def build_verdict(comparison: RankComparison, verdict: StragglerVerdict, headline: Text) -> VerdictPayload:
    """Return which rank stands out and at what cost."""
    named = comparison.sources[verdict.ranks[0].member] if verdict.ranks else None
    suspect = verdict.suspect if verdict.kind == "straggler" else None
    return VerdictPayload(
        kind=verdict.kind,
        worker=named.worker if named else None,
        workers=[comparison.sources[row.member].worker for row in verdict.ranks],
        rank=named.rank if named else None,
        text=headline,
        cost_ns=suspect.cost if suspect else None,
        cause=verdict.cause.kind if verdict.cause else None,
        host=suspect.host if suspect else None,
    )


# ---- the explanation below the headline -----------------------------------------------------------------


def explanation(members: Members[RankSummary], verdict: StragglerVerdict) -> Text:
    """Say what the delay and the communication cost, and why the rank is late; may be empty."""
    comparison = compare_members(members)
    if verdict.kind == "unknown":
        if count_unread(members):
            return _unread_sentence(comparison, verdict)
        coverage = () if verdict.reason == "few" else coverage_sentence(members)
        slower = verdict.slower_devices
        found_late = verdict.reason == "missing" and verdict.costliest is not None
        names_costliest = verdict.reason in ("few", "absent") or found_late
        return sentences(
            costliest_rank_sentence(members, verdict.costliest) if names_costliest else (),
            slower_devices_sentence(comparison, slower) if slower is not None else (),
            coverage,
        )
    is_late, slower = verdict.kind == "straggler", verdict.slower_devices
    return sentences(
        rank_differences_sentence(comparison, verdict) if verdict.kind in ("balanced", "uneven") else (),
        _communication_sentence(comparison, verdict.communication, verdict.ranks) if verdict.communication else (),
        slower_devices_sentence(comparison, slower) if is_late and slower is not None else (),
        *(cause_sentence(comparison, cause, time_base(comparison)) for cause in _select_different_causes(verdict)),
        *(late_once_sentences(comparison, verdict.once[:MAX_EXPLAINED_EVENTS]) if is_late else ()),
        coverage_sentence(members),
        missing_suspects_sentence(members, verdict) if is_late else (),
    )


def _select_different_causes(verdict: StragglerVerdict) -> list[StragglerCause]:
    """Return why the stragglers are late, one rank for each thing that takes the time."""
    by_name = {(cause.kind, cause.name): cause for cause in reversed(verdict.causes)}
    if verdict.slower_devices is not None:  # which says it of these ranks, too
        by_name = {key: cause for key, cause in by_name.items() if cause.kind != "slower_device"}
    return [cause for cause in verdict.causes if cause in by_name.values()][:MAX_EXPLAINED_CAUSES]


def _unread_sentence(comparison: RankComparison, verdict: StragglerVerdict) -> Text:
    if verdict.reason in ("empty", "alone"):
        return text("Waiting can be attributed once two ranks are read.")
    return text(
        "The {count} ranks read so far don't show whether one is a straggler.",
        count=f"{len(comparison.sources):,}",
    )


def _communication_sentence(
    comparison: RankComparison, communication: CommunicationShare, stragglers: Sequence[Straggler]
) -> Text:
    """Say how much of a step the other ranks spend in (exposed) communication, and in which collective."""
    count = len(communication.members)
    if count <= MAX_NAMED_RANKS:
        names = member_names(comparison, communication.members)
    else:
        names = text("The {other}{count} ranks", other="other " if stragglers else "", count=f"{count:,}")
    largest: Text = ()
    if communication.largest is not None:
        evidence = link("distributed", table="collectives", q=communication.largest)
        name = Phrase(communication.largest, evidence)
        template = ", most of it in {name}" if communication.majority else ", the largest part of it in {name}"
        largest = text(" ({name})", name=name) if communication.only else text(template, name=name)
    return text(
        "{names} {spend} {share} of {base} in {what}{largest}.",
        names=names,
        spend=agree(count, "spends", "spend"),
        share=format_ratio(communication.share),
        base=_communication_base(comparison),
        what="exposed communication" if communication.exposed else "communication",
        largest=largest,
    )


def _communication_base(comparison: RankComparison) -> str:
    """Return what the share of communication refers to: "a typical step", "the step", or "the recording"."""
    if not has_steps(comparison):
        return "the recording"
    single = all(len(source.summary.steps.complete_names()) == 1 for source in comparison.sources)
    return share_base(1 if single else 2, True, has_odd_steps(comparison.job), job_noun(comparison))


# ---- the rows -------------------------------------------------------------------------------------------


def build_stragglers(
    comparison: RankComparison,
    rows: Sequence[Straggler],
    verdict: StragglerVerdict,
    before: Sequence[StragglerActivity],
) -> list[StragglerRow]:
    """Return every rank, highest cost first; empty if nothing was compared."""
    notable = MIN_EXPLAINED_COST_RATIO * max([row.cost for row in rows], default=0.0)
    costly = {row.member for row in rows if row.cost >= notable}
    causes = {row.member: find_work_cause(comparison, row) for row in before if row.member in costly}
    causes |= {cause.member: cause for cause in verdict.causes}
    # The median of the ranks is no measure where several devices are slower.
    found = verdict.slower_devices
    slower = {} if found is None else dict.fromkeys(found.members, found)
    return [_build_straggler(comparison, row, causes.get(row.member), slower.get(row.member)) for row in rows]


def _build_straggler(
    comparison: RankComparison, row: Straggler, cause: StragglerCause | None, slower: SlowerDevices | None
) -> StragglerRow:
    blocker = None if row.held_up_by is None else comparison.sources[row.held_up_by]
    source = comparison.sources[row.member]
    why: Text = ()
    if blocker is not None:
        why = held_up_cell(blocker)
    elif cause is not None and cause.kind == "slower_device" and slower is not None:
        why = slower_devices_cell(comparison, slower)
    elif cause is not None:
        why = cause_cell(cause)
    return StragglerRow(
        worker=source.worker,
        rank=source.rank,
        host=source.host,
        collectives=row.collectives,
        last=row.last,
        last_ratio=row.last / row.collectives if row.collectives else None,
        cost_ns=row.cost,
        cost_is_limit=row.cost_is_limit,
        delay_ns=row.delay,
        delay_per_step_ns=row.delay_per_step,
        waiting_ns=row.waiting,
        waiting_per_step_ns=row.waiting_per_step,
        cause="held_up" if blocker else cause.kind if cause else None,
        why=why,
        held_up_by=blocker.worker if blocker else None,
    )


def build_late_hosts(
    comparison: RankComparison, rows: Sequence[Straggler], listed: int, verdict: StragglerVerdict
) -> list[LateHost]:
    """Return the hosts of the first `listed` rows, in their order."""
    ranks = Counter(source.host for source in comparison.sources if source.host is not None)
    if len(ranks) < 2:
        return []
    suspect = verdict.suspect if verdict.kind == "straggler" else None
    hosts = dict.fromkeys(comparison.sources[row.member].host for row in rows[:listed])
    max_costs: dict[str | None, float] = {}
    for row in rows:
        host = comparison.sources[row.member].host
        max_costs[host] = max(max_costs.get(host, 0.0), row.cost)
    late_hosts = []
    for host in hosts:
        if host is not None and ranks[host] > 1:
            together = suspect is not None and suspect.host == host
            cost = suspect.cost if together and suspect is not None else max_costs[host]
            late_hosts.append(LateHost(host, ranks[host], cost, together))
    return late_hosts


def build_lateness_map(comparison: RankComparison) -> LatenessMap | None:
    """Return how late each rank arrives in each step; None if no arrivals can be compared."""
    lateness = lateness_by_step(comparison)
    if lateness is None:
        return None
    return LatenessMap([source.worker for source in comparison.sources], lateness.steps, lateness.rows)


def build_activity(comparison: RankComparison, rows: Sequence[StragglerActivity]) -> list[StragglerActivityRow]:
    """Return what the costliest ranks spent extra time on."""
    return [
        StragglerActivityRow(
            worker=comparison.sources[row.member].worker,
            rank=comparison.sources[row.member].rank,
            summary=_activity_sentence(row, job_noun(comparison)),
            collectives=row.collectives,
            steps=row.steps,
            latest=row.latest,
            window_ns=row.busy,
            median_window_ns=row.median_busy,
            categories=_rank_times(row.categories, {}),
            host=_rank_times(row.host, {}),
            frames=[
                RankTimeRow(frame.name, shorten_frame(frame.name), frame.time, frame.median, frame.most)
                for frame in row.frames
            ],
            kernels=_rank_times(row.kernels, row.short_names),
        )
        for row in rows[:MAX_EXPLAINED_RANKS]
    ]


def _rank_times(rows: Iterable[RankTime], short_names: Mapping[str, str]) -> list[RankTimeRow]:
    return [
        RankTimeRow(row.name, short_names.get(row.name, row.name), row.time, row.median, row.most) for row in rows
    ]


def _activity_sentence(row: StragglerActivity, noun: str) -> Text:
    latest = link("distributed", table="collectives", collective=row.latest)
    return text(
        "It spends {time} getting to {collectives} in {steps}; the median rank spends {median}.",
        time=format_duration(row.busy),
        collectives=Phrase(plural(row.collectives, "collective"), latest),
        steps=plural(row.steps, noun),
        median=format_duration(row.median_busy),
    )
