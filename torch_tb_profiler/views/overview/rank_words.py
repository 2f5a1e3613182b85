"""What the other ranks' files say of a rank's step, in words."""

from __future__ import annotations

from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.analyses.distributed.verdict import MIN_COST_SHARE, StragglerVerdict
from torch_tb_profiler.analyses.overview.finding import LEAST_GAIN, Gain
from torch_tb_profiler.base.format import format_ratio
from torch_tb_profiler.view import Members
from torch_tb_profiler.views._shared.job.exposed import CommunicationParts, communication_sentence
from torch_tb_profiler.views._shared.job.members import compare_members
from torch_tb_profiler.views._shared.job.wording import cause_sentence, rank_names, time_base, verdict_headline
from torch_tb_profiler.views._shared.text import Phrase, Text, link, plain, sentences, text
from torch_tb_profiler.views.overview.advice import gain_words
from torch_tb_profiler.views.overview.payload import Average, Recommendation

_EVIDENCE = link("distributed")


def share(average: Average, waiting: CommunicationParts, whole: str) -> Text:
    """How much of a step is waiting for other ranks, where that is worth a person's time."""
    if waiting.waiting_ns < LEAST_GAIN * average.duration_ns:
        return ()
    part = Phrase(f"{format_ratio(waiting.waiting_ns / average.duration_ns)} of {whole}", _EVIDENCE)
    return text("{part} is waiting for other ranks.", part=part)


def parts(
    members: Members[RankSummary], verdict: StragglerVerdict, waiting: CommunicationParts, by_kernels: bool
) -> Text:
    """What communication is spent on, `by_kernels` that which nothing hides, and whether a rank stands out."""
    if waiting.transfer_ns + waiting.waiting_ns + waiting.uncompared_ns <= 0:
        return verdict_headline(members, verdict)
    return sentences(communication_sentence(waiting, overlaps=not by_kernels), verdict_headline(members, verdict))


def straggler(
    members: Members[RankSummary], verdict: StragglerVerdict, position: int, average: Average
) -> Recommendation:
    """To find out why the ranks that keep the others waiting are late; `position`: the rank that is looked at."""
    comparison, late = compare_members(members), [row.member for row in verdict.ranks]
    cause = cause_sentence(comparison, verdict.cause, time_base(comparison)) if verdict.cause else ()
    cost = verdict.suspect.cost if verdict.suspect is not None else 0.0
    gain_share = cost / average.duration_ns if average.duration_ns else 0.0
    others = rank_names([comparison.sources[member] for member in sorted(late)], capital=False)
    names = "this rank" if late == [position] else plain(others)
    title = "Find out why {names} is late" if len(late) == 1 else "Find out why {names} are late"
    return Recommendation(
        id="straggler",
        case="",
        title=text(title, names=names),
        text=sentences(verdict_headline(members, verdict), cause),
        gain=gain_words(Gain(cost, cost, "ranks"), gain_share),
        gain_ns=cost,
        gain_share=gain_share,
        basis="ranks",
        rule=f"the files of all ranks, compared in Distributed, show who is late, which costs at least "
        f"{MIN_COST_SHARE:.0%} of a step",
        code="",
        exception="the work cannot be divided more evenly between the ranks.",
        evidence=_EVIDENCE,
    )
