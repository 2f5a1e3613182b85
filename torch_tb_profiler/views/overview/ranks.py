"""The overview of a rank beside the other ranks of its job: what it waits for, and who is late."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.analyses.distributed.steps import exposed_communication
from torch_tb_profiler.analyses.overview.finding import LEAST_GAIN, Advice, Finding, Gain
from torch_tb_profiler.model.health import is_truncated
from torch_tb_profiler.view import Members, NoParams
from torch_tb_profiler.views._shared.job.exposed import (
    MAX_RANKS_READ,
    CommunicationParts,
    communication_parts,
    unread_ranks_sentence,
)
from torch_tb_profiler.views._shared.job.members import compare_members, count_unread, judge_members
from torch_tb_profiler.views._shared.job.wording import verdict_headline
from torch_tb_profiler.views.overview import rank_words, words
from torch_tb_profiler.views.overview.advice import recommendation
from torch_tb_profiler.views.overview.payload import Average, Overview, Recommendation
from torch_tb_profiler.views.overview.recorded import busy_type


def build(alone: Overview, worker: str, members: Members[RankSummary], params: NoParams) -> Overview:
    """What the rank's own file says, corrected by what the files of all ranks say together.

    In its own file, waiting for a late rank looks like slow communication. While other ranks are read, and where
    they cannot tell who is late, the answer is that of the file alone; `beside` says why.
    """
    if len(members) > MAX_RANKS_READ and count_unread(members):
        return replace(alone, beside=unread_ranks_sentence(len(members), count_unread(members)))
    if count_unread(members) or is_truncated(alone.health) or alone.average is None:
        return alone
    comparison, verdict = compare_members(members), judge_members(members).verdict
    position = comparison.positions.get(worker)
    if verdict.kind == "unknown" or position is None:
        return replace(alone, beside=verdict_headline(members, verdict))
    average, whole = alone.average, words.whole_of(alone.average, alone.steps_recorded)
    exposed = exposed_communication(comparison, position)
    waiting = communication_parts(average.categories.communication or 0.0, exposed)
    by_kernels = comparison.sources[position].summary.by_kernels
    recommendations = list(_own(alone.recommendations, average, waiting, whole, by_kernels))
    if verdict.suspect is not None:
        recommendations.append(rank_words.straggler(members, verdict, position, average))
    recommendations.sort(key=lambda each: -(each.gain_ns or 0))
    share = rank_words.share(average, waiting, whole)
    return replace(
        alone,
        headline=words.headline(alone.spent, recommendations, share),
        gains=alone.gains if {each.basis for each in recommendations} & {"what_if", "share"} else (),
        recommendations=recommendations,
        no_advice=()
        if recommendations
        else alone.no_advice or words.no_advice(average, None, busy_type(alone.configuration), whole),
        beside=rank_words.parts(members, verdict, waiting, by_kernels),
        waiting=waiting,
    )


def _own(
    recommendations: list[Recommendation],
    average: Average,
    waiting: CommunicationParts,
    whole: str,
    by_kernels: bool,
) -> Iterator[Recommendation]:
    """What the file advises, without its guess that a rank is late; less communication gains no waiting."""
    for each in recommendations:
        if each.id == "communication" and each.gain_ns is not None:
            gain = min(each.gain_ns, waiting.transfer_ns + waiting.uncompared_ns)
            if gain >= LEAST_GAIN * average.duration_ns:
                finding = Finding(each.id, case=each.case, on_device=by_kernels)
                advice = Advice(finding, Gain(gain, gain, "ranks"), gain / average.duration_ns)
                yield recommendation(advice, whole, each.evidence)
        elif each.id != "late_rank":
            yield each
