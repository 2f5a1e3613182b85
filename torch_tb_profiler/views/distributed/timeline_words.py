"""What a timeline of several ranks shows, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from torch_tb_profiler.analyses.distributed.job import RankSource
from torch_tb_profiler.base.grammar import plural
from torch_tb_profiler.views._shared.job.wording import rank_names
from torch_tb_profiler.views._shared.text import Text, sentences, text


def headline(aligned: Sequence[RankSource], late: Sequence[RankSource], only_two: bool) -> Text:
    """Which ranks are on the clock of the job, and which of them, on top, keep the others waiting.

    only_two: the job has no more ranks than these
    """
    if not aligned:
        return text("The clocks of these ranks cannot be aligned.")
    rest = [source for source in aligned if source not in late]
    if not late or not rest:
        return text("{ranks} on the clock of the job.", ranks=rank_names(aligned))
    one = len(late) == 1
    return text(
        "{late} {keep} {others} waiting; below {it}, {rest} on the clock of the job.",
        late=rank_names(late),
        keep="keeps" if one else "keep",
        others="the other" if only_two else "the others",
        it="it" if one else "them",
        rest=rank_names(rest, capital=False),
    )


def details(total: int, shown: int, left: Sequence[str]) -> Text:
    """How many collectives join the ranks, how to read them, and which workers are `left` out."""
    joined = text(
        "{collectives} in sight{longest}, joined from rank to rank: on the left when each rank arrives, "
        "on the right when all go on.",
        collectives=plural(total, "collective"),
        longest=f", the longest {shown:,} of them" if shown < total else "",
    )
    reason = "Left out, as their clocks cannot be aligned: {workers}."
    return sentences(joined, text(reason, workers=", ".join(left)) if left else ())
