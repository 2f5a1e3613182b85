"""The communication of all ranks of a job as one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from torch_tb_profiler.analyses.distributed.reduction.packed import join
from torch_tb_profiler.analyses.distributed.reduction.rank_details import RankDetails
from torch_tb_profiler.analyses.distributed.reduction.rank_summary import RankSummary
from torch_tb_profiler.analyses.shared.grouping import codes, split_by
from torch_tb_profiler.model.communication.groups import UNKNOWN, ProcessGroup, unspell_ranks
from torch_tb_profiler.model.trace import NO_CODE, Bool, Float64, Int8, Int32, Int64


class Source(msgspec.Struct, frozen=True):
    """A worker whose trace is reduced; `rank` and `host` as in the file or in its name, None if in neither.

    details  opens what it did before each operation: of few ranks, as it is several times what all else is
    """

    worker: str
    rank: int | None
    host: str | None
    summary: RankSummary
    details: Callable[[], RankDetails]


class JobTable(msgspec.Struct, frozen=True):
    """The operations of all ranks, columns of length k, ordered by rank, then time (see `reduction.operations`).

    member  int32  position of the worker in Job.sources; row: int32, the operation's position in its summary
    group, collective, backend, dtype, step  int32  codes that hold for all ranks
    """

    member: Int32
    row: Int32
    group: Int32
    collective: Int32
    backend: Int32
    dtype: Int32
    step: Int32
    timing: Int8
    sequence: Int64
    source: Int64
    target: Int64
    issue: Int64
    start: Int64
    end: Int64
    latency: Int64
    exposed: Int64
    stall: Int64
    bytes_in: Int64
    bytes_out: Int64
    message: Int64
    bus: Float64
    window: Int64

    def __len__(self) -> int:
        return len(self.member)


class Job(msgspec.Struct, frozen=True):
    """All ranks that are compared.

    groups  as the ranks describe them: a name and its ranks make one
    names   texts of `collective`, `backend` and `dtype`; steps: texts of `step`
    members  positions of the workers that communicate in each group, ascending
    """

    sources: tuple[Source, ...]
    table: JobTable
    groups: tuple[ProcessGroup, ...]
    names: tuple[str, ...]
    steps: tuple[str, ...]
    members: tuple[list[int], ...]

    def is_named(self, *names: str) -> Bool:
        """bool[k]: operations of these collectives."""
        codes = [code for code, text in enumerate(self.names) if text in names]
        return np.isin(self.table.collective, codes)

    def source_of(self, row: int) -> Source:
        """The worker that recorded an operation."""
        return self.sources[int(self.table.member[row])]

    def backend_of(self, row: int) -> str | None:
        """`nccl`; None if unknown."""
        return self._text(self.names, self.table.backend[row])

    def collective_of(self, row: int) -> str:
        """`all_reduce`."""
        return self.names[int(self.table.collective[row])]

    def name_of(self, row: int) -> str:
        """`nccl:all_reduce`."""
        backend = self.backend_of(row)
        return self.collective_of(row) if backend is None else f"{backend}:{self.collective_of(row)}"

    def dtype_of(self, row: int) -> str | None:
        """The type of the elements, None if unknown."""
        return self._text(self.names, self.table.dtype[row])

    def step_of(self, row: int) -> str | None:
        """The step in which an operation was issued, None outside of the steps."""
        return self._text(self.steps, self.table.step[row])

    @staticmethod
    def _text(texts: Sequence[str], code: np.int32) -> str | None:
        return texts[int(code)] if code != NO_CODE else None


class _Codes:
    """Numbers for values, in order of first appearance."""

    def __init__(self) -> None:
        self.values: dict[object, int] = {}
        self._parts: list[list[int]] = []
        self._seen: dict[tuple[object, ...], list[int]] = {}

    def add(self, values: tuple[object, ...]) -> None:
        """The values of one more source: most sources have the same."""
        numbers = self._seen.get(values)
        if numbers is None:
            numbers = [self.values.setdefault(value, len(self.values)) for value in values]
            self._seen[values] = numbers
        self._parts.append(numbers)

    def translate(self, member: Int32, codes: npt.NDArray[np.int32]) -> Int32:
        """int32[k]: the numbers of the sources' own codes; NO_CODE stays what it is."""
        sizes = np.array([len(part) for part in self._parts], np.int64)
        numbers = np.array([*chain.from_iterable(self._parts), NO_CODE], np.int32)
        begin = np.cumsum(sizes) - sizes
        return numbers[np.where(codes == NO_CODE, len(numbers) - 1, begin[member] + codes)]


class Windows:
    """What ranks did before operations of a job; the details of a rank are opened once, and let go with this."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._opened: dict[int, RankDetails] = {}

    def details(self, member: int) -> RankDetails:
        """Of the worker at a position of the job's sources."""
        if member not in self._opened:
            self._opened[member] = self._job.sources[member].details()
        return self._opened[member]

    def before(self, row: int) -> np.void:
        """A cell of `RankDetails.table` by the operation's row of the job's table."""
        table = self._job.table
        cell: np.void = self.details(int(table.member[row])).table()[table.row[row]]
        return cell


def gather(sources: Sequence[Source]) -> Job:
    """One table of the operations of these ranks."""
    groups, names, steps = _Codes(), _Codes(), _Codes()
    descriptions: dict[object, ProcessGroup] = {}
    ambiguous = any(UNKNOWN in source.summary.groups for source in sources)
    joined = join([source.summary.operations for source in sources])
    kind_member = np.repeat(np.arange(len(sources), dtype=np.int32), np.diff(joined.begins))
    for source, count in zip(sources, _used_names(joined.kinds, kind_member, len(sources)), strict=True):
        summary = source.summary
        # If one rank cannot say which of several groups it used, another's only group may not be that one either.
        known = [UNKNOWN if ambiguous and group.assumed else group for group in summary.groups]
        for group in known:
            identity = _identity(group)
            descriptions[identity] = _merged(descriptions.get(identity), group)
        groups.add(tuple(map(_identity, known)))
        steps.add(summary.steps.names)
        names.add(summary.names[:count])
    kinds = dict(joined.kinds)
    for name, own in (("group", groups), *((name, names) for name in _NAMED)):
        kinds[name] = own.translate(kind_member, kinds[name])
    counts = [len(source.summary.operations) for source in sources]
    member = np.repeat(np.arange(len(sources), dtype=np.int32), counts)
    begins = np.cumsum([0, *counts], dtype=np.int32)[:-1]
    columns = {**{name: values[joined.kind] for name, values in kinds.items()}, **joined.columns}
    columns["step"] = steps.translate(member, joined.columns["step"])
    return Job(
        sources=tuple(sources),
        table=JobTable(member, np.arange(len(member), dtype=np.int32) - np.repeat(begins, counts), **columns),
        groups=tuple(descriptions[key] for key in groups.values),
        names=tuple(str(text) for text in names.values),
        steps=tuple(str(text) for text in steps.values),
        members=_members(columns["group"], member, len(groups.values)),
    )


def _members(group: Int32, member: Int32, groups: int) -> tuple[list[int], ...]:
    """Of each group, from the operations."""
    which, count = codes(group, member)
    first = np.empty(count, np.int64)
    first[which] = np.arange(len(which))
    return tuple(member[first[rows]].tolist() for rows in split_by(group[first], groups))


_NAMED = ("collective", "backend", "dtype")
"""Columns whose codes are those of `RankSummary.names`: its first ones."""


def _used_names(kinds: Mapping[str, npt.NDArray[Any]], member: Int32, count: int) -> list[int]:
    """How many of each rank's names stand for collectives, back ends and types, which are the first of them."""
    last = np.full(count, NO_CODE, np.int32)
    for name in _NAMED:
        np.maximum.at(last, member, kinds[name])
    used: list[int] = (last + 1).tolist()
    return used


def _identity(group: ProcessGroup) -> tuple[object, ...]:
    """What makes two descriptions one group: name and ranks, or name and size where the ranks are unknown."""
    return group.name, group.ranks, group.size if group.ranks is None else None


def _merged(known: ProcessGroup | None, group: ProcessGroup) -> ProcessGroup:
    if known is None:
        return group
    return replace(
        known,
        description=known.description or group.description,
        size=known.size or group.size,
        assumed=known.assumed and group.assumed,
    )


def group_ranks(group: ProcessGroup) -> list[int] | None:
    """The ranks of a group, None if unknown."""
    return None if group.ranks is None else unspell_ranks(group.ranks)
