"""Collectives on which the ranks disagree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.job import Job, JobTable
from torch_tb_profiler.analyses.distributed.matching.kinds import Kinds
from torch_tb_profiler.analyses.shared.grouping import codes, split_by, stable_order
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Int8, Int64


class Difference(msgspec.Struct, frozen=True):
    """Ranks that disagree on one collective; `values`: what they recorded -> positions of the workers."""

    instance: int
    what: Literal["name", "size", "dtype", "missing"]
    values: dict[str, list[int]]


def differences(job: Job, instance: Int64, count: int, method: Int8, certain: Bool) -> Iterator[Difference]:
    """By name, size and dtype among the operations that are certain to be one collective, and missing ones."""
    table, kinds = job.table, Kinds(job)
    code = table.collective
    names = [*job.names, ""]
    comparison = _Comparison(table, instance, count)
    specific = certain & ~kinds.unspecific[code]
    yield from comparison.differences("name", kinds.family[code], specific, lambda row: names[code[row]])
    sized = certain & kinds.sized[code] & (table.message != ABSENT)
    yield from comparison.differences("size", table.message, sized, lambda row: f"{table.message[row]} bytes")
    lower = [name.lower() for name in names]
    dtype = np.array([lower.index(name) for name in lower], np.int64)[table.dtype]
    typed = certain & (table.dtype != NO_CODE)
    yield from comparison.differences("dtype", dtype, typed, lambda row: names[table.dtype[row]])
    yield from _missing(table, instance, method)


class _Comparison(msgspec.Struct, frozen=True):
    """The values that operations of one collective have."""

    table: JobTable
    instance: Int64
    count: int

    def differences(
        self, what: Literal["name", "size", "dtype"], values: Int64, known: Bool, spell: Callable[[int], str]
    ) -> Iterator[Difference]:
        """The collectives whose known `values` differ."""
        rows = np.flatnonzero(known)
        least, most = np.full(self.count, np.iinfo(np.int64).max), np.full(self.count, np.iinfo(np.int64).min)
        np.minimum.at(least, self.instance[rows], values[rows])
        np.maximum.at(most, self.instance[rows], values[rows])
        differing = np.flatnonzero(least < most)
        rows = rows[np.isin(self.instance[rows], differing)]
        rows_of = split_by(np.searchsorted(differing, self.instance[rows]), len(differing))
        for collective, own in zip(differing.tolist(), rows_of, strict=True):
            members: dict[str, list[int]] = {}
            for row in rows[own].tolist():
                members.setdefault(spell(row), []).append(int(self.table.member[row]))
            yield Difference(collective, what, members)


def _missing(table: JobTable, instance: Int64, method: Int8) -> Iterator[Difference]:
    """Numbered collectives that a rank lacks although it recorded earlier and later ones of the group."""
    numbered = np.flatnonzero(method == 0)
    groups, members = table.group[numbered], table.member[numbered]
    which, count = codes(groups, table.sequence[numbered])  # the numbers of a group follow each other
    example = np.empty(count, np.int64)
    example[which] = instance[numbered]
    order = stable_order(groups)  # within a group by rank and start, as in the table: nearly always by number
    groups, members, which = groups[order], members[order], which[order]
    same = (np.diff(groups) == 0) & (np.diff(members) == 0)
    if (np.diff(which)[same] < 0).any():
        which = which[np.lexsort((which, members, groups))]
    gaps = np.flatnonzero(same & (np.diff(which) > 1))
    lacking: dict[tuple[int, int], list[int]] = {}
    for i in gaps.tolist():
        for missing in range(int(which[i]) + 1, int(which[i + 1])):
            lacking.setdefault((int(groups[i]), int(example[missing])), []).append(int(members[i]))
    for (_, missing), without in sorted(lacking.items()):
        yield Difference(missing, "missing", {"not recorded": without})
