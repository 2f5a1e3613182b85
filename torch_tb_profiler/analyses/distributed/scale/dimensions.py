"""The ways in which a job is divided: process groups that are alike, one for each part of the job.

Eight ranks with tensor parallelism of two and data parallelism of four communicate in

    tp  0 1 | 2 3 | 4 5 | 6 7          four groups of two
    dp  0 2 4 6 | 1 3 5 7              two groups of four

Rank 5 is in place 1 of its group of `tp` and in place 2 of its group of `dp`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.comparison import Comparison
from torch_tb_profiler.analyses.distributed.groups import GroupUse
from torch_tb_profiler.model.communication.groups import ProcessGroup
from torch_tb_profiler.model.trace import NO_CODE, Int64

_UNTOLD = ("", "undefined", "default_pg")
"""What PyTorch writes for a group that nobody has described."""


class Dimension(msgspec.Struct, frozen=True):
    """Groups that were made for one purpose, no two of which share a rank.

    label   their description, or name, or "groups of 2, 4 ranks apart"
    groups  their codes in `Job.groups`
    place   int64[ranks]  where each rank stands in its group, NO_CODE if it is in none
    """

    label: str
    groups: list[int]
    place: Int64


def dimensions(comparison: Comparison, uses: Sequence[GroupUse]) -> list[Dimension]:
    """Most groups first, then by label. Groups whose ranks are not recorded are in none.

    What a group was made for is recorded as its description, if at all. Groups of one description that share ranks
    serve several purposes: their names tell these apart, or else their sizes and the spacing of their ranks.
    """
    position = {source.rank: member for member, source in enumerate(comparison.sources)}
    known = [code for code, use in enumerate(uses) if use.ranks is not None]
    results = []
    for label, codes in _families(comparison.job.groups, uses, known, (_described, _named, _spaced)):
        place = np.full(len(comparison.sources), NO_CODE, np.int64)
        for code in codes:
            here = [(position[rank], at) for at, rank in enumerate(uses[code].ranks or ()) if rank in position]
            place[[member for member, _ in here]] = [at for _, at in here]
        results.append(Dimension(label, codes, place))
    return sorted(results, key=lambda each: (-len(each.groups), each.label))


_Told = Callable[[ProcessGroup, Sequence[int]], str | None]


def _families(
    groups: Sequence[ProcessGroup], uses: Sequence[GroupUse], codes: Sequence[int], traits: Sequence[_Told]
) -> Iterator[tuple[str, list[int]]]:
    """(label, codes) of groups of which the first of `told` says the same, and that share no rank; the others as
    the next one tells them apart. The last one has the last word."""
    by_label: dict[str | None, list[int]] = {}
    for code in codes:
        by_label.setdefault(traits[0](groups[code], uses[code].ranks or ()), []).append(code)
    for label, own in by_label.items():
        ranks = [rank for code in own for rank in uses[code].ranks or ()]
        if label is not None and (len(set(ranks)) == len(ranks) or len(traits) == 1):
            yield label, own
        else:
            yield from _families(groups, uses, own, traits[1:])


def _described(group: ProcessGroup, _: Sequence[int]) -> str | None:
    return None if (group.description or "").lower() in _UNTOLD else group.description


def _named(group: ProcessGroup, _: Sequence[int]) -> str | None:
    """PyTorch numbers the groups that nobody has named."""
    return None if group.name is None or group.name.isdigit() else group.name


def _spaced(_: ProcessGroup, ranks: Sequence[int]) -> str:
    stride = ranks[1] - ranks[0] if len(ranks) > 1 else 1
    return f"groups of {len(ranks):,}" + (f", {stride:,} ranks apart" if stride > 1 else "")
