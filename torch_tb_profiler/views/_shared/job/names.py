"""Names of ranks and steps in sentences; each name opens its timeline."""

from __future__ import annotations

from collections.abc import Sequence

from torch_tb_profiler.analyses.distributed.comparison import RankComparison
from torch_tb_profiler.analyses.distributed.job import RankSource
from torch_tb_profiler.base.grammar import capitalize, per_step
from torch_tb_profiler.model.communication.groups import format_ranks
from torch_tb_profiler.views._shared.text import (
    Phrase,
    Text,
    join_phrases,
    link,
    text,
    worker_name,
)

MAX_NAMED_RANKS = 5
"""Most ranks that a sentence names one by one."""

MAX_RANKS_LENGTH = 200
"""Most characters of a list of ranks."""

RANKS_TABLE = link("distributed", table="ranks")


def rank_names(sources: Sequence[RankSource], capital: bool = True) -> Text:
    """Return "Ranks 0, 1 and 3", each opening its timeline; names of workers where a rank is unknown."""
    numbered = all(source.rank is not None for source in sources)
    if len(sources) == 1:
        name = worker_name(sources[0].rank, sources[0].worker)
        has_noun = numbered or name != sources[0].worker
        return (Phrase(capitalize(name) if capital and has_noun else name, _timeline(sources[0])),)
    noun = "rank" if numbered else "worker" if any(source.worker.isdecimal() for source in sources) else ""
    prefix = f"{capitalize(noun) if capital else noun}s " if noun else ""
    if len(sources) > MAX_NAMED_RANKS:
        ranks = [source.rank for source in sources if source.rank is not None]
        name = f"{prefix}{shorten_ranks(ranks)}" if numbered else f"{len(sources):,} workers"
        return (Phrase(name, RANKS_TABLE),)
    names = [Phrase(str(source.rank) if numbered else source.worker, _timeline(source)) for source in sources]
    return text("{prefix}{names}", prefix=prefix, names=join_phrases(names))


def shorten_ranks(ranks: Sequence[int]) -> str:
    """List all ranks if that is short ("0-7,12"), else the first few and how many more there are."""
    spelled = format_ranks(ranks)
    if len(spelled) <= MAX_RANKS_LENGTH:
        return spelled
    first = sorted(ranks)[:MAX_NAMED_RANKS]
    return f"{','.join(map(str, first))} and {len(ranks) - len(first):,} more"


def _timeline(source: RankSource) -> str:
    return link("trace", worker=source.worker)


def member_names(comparison: RankComparison, members: Sequence[int], capital: bool = True) -> Text:
    """Return the names of members, given by position, in order."""
    return rank_names([comparison.sources[member] for member in sorted(members)], capital)


def time_base(comparison: RankComparison) -> str:
    """Return what times of a job refer to: "per step", or "in the recording" if a rank records no steps."""
    return per_step(has_steps(comparison), job_noun(comparison))


def has_steps(comparison: RankComparison) -> bool:
    """Return whether every rank records steps, so that times are per step."""
    return all(source.summary.recorded_steps for source in comparison.sources)


def job_noun(comparison: RankComparison) -> str:
    """Return what a step of all ranks is in a sentence: "iteration" if each is an engine's, else "step"."""
    nouns = {source.summary.step_noun for source in comparison.sources}
    return nouns.pop() if len(nouns) == 1 else "step"
