"""How the sentences of the view name ranks, numbers, and steps."""

from __future__ import annotations

from collections.abc import Sequence

from torch_tb_profiler.analyses.distributed.comparison import RankComparison
from torch_tb_profiler.analyses.distributed.job import RankSource
from torch_tb_profiler.model.communication.groups import spell_ranks
from torch_tb_profiler.views._shared.names import worker_name
from torch_tb_profiler.views._shared.text import Phrase, Text, join_phrases, link, text

MOST_NAMES = 5
"""More ranks than these are not named one by one."""

MOST_TEXT = 200
"""Characters of a list of ranks."""

RANKS_TABLE = link("distributed", table="ranks")


def rank_names(sources: Sequence[RankSource], capital: bool = True) -> Text:
    """Ranks 0, 1 and 3, each of which opens its timeline; the workers where a rank is unknown."""
    numbered = all(source.rank is not None for source in sources)
    if len(sources) == 1:
        name = worker_name(sources[0].rank, sources[0].worker)
        spoken = numbered or name != sources[0].worker
        return (Phrase(name[:1].upper() + name[1:] if capital and spoken else name, _timeline(sources[0])),)
    word = "rank" if numbered else "worker" if any(each.worker.isdecimal() for each in sources) else ""
    prefix = f"{word[:1].upper() + word[1:] if capital else word}s " if word else ""
    if len(sources) > MOST_NAMES:
        ranks = [source.rank for source in sources if source.rank is not None]
        return (Phrase(f"{prefix}{short_ranks(ranks)}" if numbered else f"{len(sources):,} workers", RANKS_TABLE),)
    names = [Phrase(str(each.rank) if numbered else each.worker, _timeline(each)) for each in sources]
    return text("{prefix}{names}", prefix=prefix, names=join_phrases(names))


def short_ranks(ranks: Sequence[int]) -> str:
    """All of them where they can be said in short, else the first and how many there are."""
    spelled = spell_ranks(ranks)
    if len(spelled) <= MOST_TEXT:
        return spelled
    first = sorted(ranks)[:MOST_NAMES]
    return f"{','.join(map(str, first))} and {len(ranks) - len(first):,} more"


def _timeline(source: RankSource) -> str:
    return link("trace", worker=source.worker)


def names_of(comparison: RankComparison, members: Sequence[int], capital: bool = True) -> Text:
    """Of these positions, in order."""
    return rank_names([comparison.sources[member] for member in sorted(members)], capital)


def per_step(comparison: RankComparison) -> str:
    """What times refer to."""
    recorded = all(source.summary.recorded_steps for source in comparison.sources)
    return "per step" if recorded else "in the recording"
