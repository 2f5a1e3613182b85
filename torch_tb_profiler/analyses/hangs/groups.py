"""The process groups of a job, joined from what each rank's dump says about them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from torch_tb_profiler.model.flight_recorder import RecorderDump

DEFAULT_GROUP = "default_pg"


@dataclass(frozen=True, eq=False)
class JobGroup:
    """A process group; compared by identity.

    ranks  global ranks, in the order of their ranks within the group
    known  the dumps name the members; if not, `ranks` are those that were seen in it
    """

    name: str
    description: str
    ranks: tuple[int, ...]
    known: bool

    @cached_property
    def positions(self) -> dict[int, int]:
        """Return global rank -> its rank within the group."""
        return {rank: position for position, rank in enumerate(self.ranks)}


class JobGroups:
    """The groups of a job by rank and name: the same name may mean different groups on different ranks."""

    def __init__(self, dumps: Mapping[int, RecorderDump], known_ranks: Iterable[int]) -> None:
        self._group_of: dict[tuple[int, str], JobGroup] = {}
        members: dict[str, dict[tuple[int, ...], str]] = defaultdict(dict)
        seen: dict[str, list[int]] = defaultdict(list)
        for rank, dump in dumps.items():
            for group in dump.members.values():
                if group.ranks:
                    members[group.name].setdefault(group.ranks, group.description)
                else:
                    seen[group.name].append(rank)
        groups = {
            name: [JobGroup(name, description, ranks, True) for ranks, description in variants.items()]
            for name, variants in members.items()
        }
        everyone = range(max(known_ranks, default=-1) + 1)
        by_ranks = {(name, group.ranks): group for name, listed in groups.items() for group in listed}
        guessed: dict[str, JobGroup] = {}
        for rank, dump in dumps.items():
            for group in dump.members.values():
                found = by_ranks.get((group.name, group.ranks))
                if found is None:
                    holders = [each for each in groups.get(group.name, ()) if rank in each.ranks]
                    found = holders[0] if holders else guessed.get(group.name)
                if found is None:
                    is_default = group.description == DEFAULT_GROUP
                    ranks = tuple(everyone) if is_default else tuple(sorted(seen[group.name]))
                    found = guessed[group.name] = JobGroup(group.name, group.description, ranks, False)
                self._group_of[rank, group.name] = found
        self.all = [*(group for listed in groups.values() for group in listed), *guessed.values()]
        self.ranks = sorted({*known_ranks, *(rank for group in self.all for rank in group.ranks)})

    def find(self, rank: int, name: str) -> JobGroup:
        """Return the group that a rank means by a name."""
        return self._group_of[rank, name]
