"""The communication operations of all ranks of a job as one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from torch_tb_profiler.analyses.distributed.operations import (
    Column,
    SharedColumn,
    concatenate_operations,
    map_kinds,
)
from torch_tb_profiler.analyses.distributed.rank_details import RankDetails
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.analyses.shared.grouping import dense_codes, positions_by_value
from torch_tb_profiler.base.memo import MemoizedStruct
from torch_tb_profiler.model.communication.groups import UNKNOWN_GROUP, ProcessGroup, parse_ranks
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int32, Int64


class RankSource(msgspec.Struct, frozen=True):
    """A worker and the summary of its trace.

    rank, host  as in the file or in its name, None if in neither
    details  reads what the rank did before each operation; it is large, so it is read for few ranks
    """

    worker: str
    rank: int | None
    host: str | None
    summary: RankSummary
    details: Callable[[], RankDetails]


class JobTable(msgspec.Struct, frozen=True):
    """The operations of all ranks as columns of length k, ordered by rank, then by time (see OPERATION).

    member  int32  index of the worker in DistributedJob.sources
    row     int32  index of the operation in the rank's summary
    group, collective, backend, dtype, step  int32  codes common to all ranks

    Only what nearly every question needs is kept as an array. A `Column` is put together when it is indexed: with
    `[:]` or with the rows that are asked about.
    """

    member: Int32
    row: Int32
    group: Column
    collective: Column
    backend: Column
    dtype: Column
    step: Int32
    timing: Column
    sequence: Column
    source: Column
    target: Column
    issue: Column
    start: Int64
    end: Int64
    latency: Int64
    exposed: Column
    stall: Column
    bytes_in: Column
    bytes_out: Column
    message: Column
    bus: Column
    window: Column
    computed: Column
    held: Column

    def __len__(self) -> int:
        return len(self.member)


class DistributedJob(MemoizedStruct, frozen=True):
    """The ranks that are compared, and the table of their operations.

    groups   process groups as the ranks describe them; equal name and equal ranks make one group
    names    texts of the codes in `collective`, `backend`, and `dtype`
    steps    texts of the codes in `step`
    members  for each group the ascending indices of the workers that communicate in it
    """

    sources: tuple[RankSource, ...]
    table: JobTable
    groups: tuple[ProcessGroup, ...]
    names: tuple[str, ...]
    steps: tuple[str, ...]
    members: tuple[list[int], ...]

    def is_named(self, *names: str) -> Bool:
        """Return bool[k], True for operations of the collectives in `names`."""
        codes = [code for code, text in enumerate(self.names) if text in names]
        return map_kinds(lambda collective: np.isin(collective, codes), self.table.collective)

    def source_of(self, row: int) -> RankSource:
        """Return the worker that recorded the operation in `row`."""
        return self.sources[int(self.table.member[row])]

    def backend_of(self, row: int) -> str | None:
        """Return the back end of an operation (`nccl`), None if unknown."""
        return self._text(self.names, self.table.backend[row])

    def collective_of(self, row: int) -> str:
        """Return the collective of an operation (`all_reduce`)."""
        return self.names[int(self.table.collective[row])]

    def name_of(self, row: int) -> str:
        """Return back end and collective of an operation (`nccl:all_reduce`)."""
        backend = self.backend_of(row)
        return self.collective_of(row) if backend is None else f"{backend}:{self.collective_of(row)}"

    def dtype_of(self, row: int) -> str | None:
        """Return the element type of an operation, None if unknown."""
        return self._text(self.names, self.table.dtype[row])

    def step_of(self, row: int) -> str | None:
        """Return the step in which an operation was issued, None outside of the steps."""
        return self._text(self.steps, self.table.step[row])

    @staticmethod
    def _text(texts: Sequence[str], code: np.int32) -> str | None:
        return texts[int(code)] if code != NO_CODE else None


class RankDetailsCache:
    """The details of a job's ranks, each read once and released together with this object."""

    def __init__(self, job: DistributedJob) -> None:
        self._job = job
        self._details: dict[int, RankDetails] = {}

    def of_rank(self, member: int) -> RankDetails:
        """Return the details of the worker at index `member` of the job's sources."""
        if member not in self._details:
            self._details[member] = self._job.sources[member].details()
        return self._details[member]

    def of_operation(self, row: int) -> np.void:
        """Return the cell of `RankDetails.table` that belongs to a row of the job's table."""
        table = self._job.table
        cell: np.void = self.of_rank(int(table.member[row])).table()[table.row[row]]
        return cell


_NAME_COLUMNS = ("collective", "backend", "dtype")
"""Columns whose codes refer to the first names of `RankSummary.names`."""


def build_job(sources: Sequence[RankSource]) -> DistributedJob:
    """Build one table of the operations of all `sources`."""
    groups, names, steps = _SharedCodes(), _SharedCodes(), _SharedCodes()
    descriptions: dict[object, ProcessGroup] = {}
    ambiguous = any(UNKNOWN_GROUP in source.summary.groups for source in sources)
    operations = concatenate_operations([source.summary.operations for source in sources])
    kind_member = np.repeat(np.arange(len(sources), dtype=np.int32), np.diff(operations.kind_starts))
    name_counts = _count_operation_names(operations.kinds, kind_member, len(sources))
    for source, count in zip(sources, name_counts, strict=True):
        summary = source.summary
        # If one rank can't say which of several groups it used, another's only group may not be that one either.
        known = [UNKNOWN_GROUP if ambiguous and group.assumed else group for group in summary.groups]
        for group in known:
            identity = _group_identity(group)
            descriptions[identity] = _merge_groups(descriptions.get(identity), group)
        groups.add(tuple(map(_group_identity, known)))
        steps.add(summary.steps.names)
        names.add(summary.names[:count])
    kinds = dict(operations.kinds)
    for name, shared in (("group", groups), *((name, names) for name in _NAME_COLUMNS)):
        kinds[name] = shared.translate(kind_member, kinds[name])
    counts = [len(source.summary.operations) for source in sources]
    member = np.repeat(np.arange(len(sources), dtype=np.int32), counts)
    begins = np.cumsum([0, *counts], dtype=np.int32)[:-1]
    columns: dict[str, Any] = {
        **{name: SharedColumn(values, operations.kind) for name, values in kinds.items()},
        **operations.columns,
        "step": steps.translate(member, operations.columns["step"][:]),
    }
    return DistributedJob(
        sources=tuple(sources),
        table=JobTable(member, np.arange(len(member), dtype=np.int32) - np.repeat(begins, counts), **columns),
        groups=tuple(descriptions[key] for key in groups.values),
        names=tuple(str(text) for text in names.values),
        steps=tuple(str(text) for text in steps.values),
        members=_group_members(kinds["group"], kind_member, len(groups.values)),
    )


class _SharedCodes:
    """Codes common to all ranks, in order of first appearance of the values."""

    def __init__(self) -> None:
        self.values: dict[object, int] = {}
        self._rank_codes: list[list[int]] = []
        self._known: dict[tuple[object, ...], list[int]] = {}

    def add(self, values: tuple[object, ...]) -> None:
        """Add the values of the next rank; most ranks have the same."""
        numbers = self._known.get(values)
        if numbers is None:
            numbers = [self.values.setdefault(value, len(self.values)) for value in values]
            self._known[values] = numbers
        self._rank_codes.append(numbers)

    def translate(self, member: Int32, codes: npt.NDArray[np.int32]) -> Int32:
        """Return int32[k], the common codes for each rank's own `codes`; NO_CODE stays NO_CODE."""
        if len(self._known) == 1:
            return np.array([*self._rank_codes[0], NO_CODE], np.int32)[codes]
        sizes = np.array([len(part) for part in self._rank_codes], np.int64)
        numbers = np.array([*chain.from_iterable(self._rank_codes), NO_CODE], np.int32)
        begin = np.cumsum(sizes) - sizes
        return numbers[np.where(codes == NO_CODE, len(numbers) - 1, begin[member] + codes)]


def _count_operation_names(kinds: Mapping[str, npt.NDArray[Any]], member: Int32, count: int) -> list[int]:
    """Return how many of each rank's names, always the first ones, its operations use."""
    last = np.full(count, NO_CODE, np.int32)
    for name in _NAME_COLUMNS:
        np.maximum.at(last, member, kinds[name])
    used: list[int] = (last + 1).tolist()
    return used


def _group_identity(group: ProcessGroup) -> tuple[object, ...]:
    """Return what makes two descriptions one group: name and ranks, or name and size if the ranks are unknown."""
    return group.name, group.ranks, group.size if group.ranks is None else None


def _merge_groups(known: ProcessGroup | None, group: ProcessGroup) -> ProcessGroup:
    if known is None:
        return group
    return replace(
        known,
        description=known.description or group.description,
        size=known.size or group.size,
        assumed=known.assumed and group.assumed,
    )


def _group_members(group: Int32, member: Int32, groups: int) -> tuple[list[int], ...]:
    which, count = dense_codes(group, member)
    first = np.empty(count, np.int64)
    first[which] = np.arange(len(which))
    return tuple(member[first[rows]].tolist() for rows in positions_by_value(group[first], groups))


def group_ranks(group: ProcessGroup) -> list[int] | None:
    """Return the ranks of a group, None if unknown."""
    return None if group.ranks is None else parse_ranks(group.ranks)
