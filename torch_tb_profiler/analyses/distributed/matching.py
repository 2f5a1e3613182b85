"""The operations of all ranks matched to collectives, and which of them can be compared.

Within a process group (its name *and* its ranks), operations are matched by the recorded sequence number, messages
by sender, receiver, and ordinal, and everything else by order (see `order_matching`). If ranks disagree on name,
size, or dtype, the collective is reported as a mismatch and not compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.job import DistributedJob, JobTable
from torch_tb_profiler.analyses.distributed.operations import map_kinds, select
from torch_tb_profiler.analyses.distributed.order_matching import CollectiveTraits, match_by_order, ordinals
from torch_tb_profiler.analyses.shared.grouping import dense_codes, positions_by_value, stable_order
from torch_tb_profiler.base.arrays import highest_by_number, lowest_by_number
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.communication.collectives import TimingSource
from torch_tb_profiler.model.communication.events import DEVICE_BACKENDS, POINT_TO_POINT
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Int8, Int32, Int64

MatchedBy = Literal["sequence_number", "peers", "order"]
MATCH_METHODS: tuple[MatchedBy, ...] = ("sequence_number", "peers", "order")


class CollectiveMismatch(msgspec.Struct, frozen=True):
    """Ranks that disagree on one collective; `values` maps what they recorded to the indices of the workers."""

    instance: int
    what: Literal["name", "size", "dtype", "missing"]
    values: dict[str, list[int]]


class Matching(msgspec.Struct, frozen=True):
    """The collectives of a job across ranks.

    instance  int64[k]  the collective of each operation of the job's table: 0..count-1, in order of first start
    method    int8[count]  index into MATCH_METHODS
    sizes     int64[count]  number of operations of each collective
    compared  bool[k]  the operation and at least one of another rank that recorded the same have a time
    complete  bool[count]  all ranks of the group are compared (at least two, if the size of the group is unknown)
    unaddressed  bool[k]  a message whose sender and receiver are not recorded, so that it is not compared
    """

    instance: Int64
    method: Int8
    sizes: Int64
    compared: Bool
    complete: Bool
    mismatches: tuple[CollectiveMismatch, ...]
    unaddressed: Bool

    def __len__(self) -> int:
        return len(self.sizes)

    def first_row(self, collective: int) -> int:
        """Return the first row of a collective in the job's table."""
        return int(np.flatnonzero(self.instance == collective)[0])


@derived
def match_collectives(job: DistributedJob) -> Matching:
    """Match the operations of all ranks to collectives."""
    keys = _build_matching_keys(job)
    instance, count = _number_instances(job, keys.values)
    mismatches = tuple(_find_mismatches(job, instance, count, keys.method, ~keys.uncertain))
    timed = has_own_time(job)
    counts = np.bincount(select(instance, timed), minlength=count)
    comparable = np.ones(count, np.bool_)
    comparable[instance[keys.uncertain]] = False
    comparable[[mismatch.instance for mismatch in mismatches if mismatch.what != "missing"]] = False
    compared = timed & (comparable & (counts > 1))[instance]
    method, expected = np.zeros(count, np.int8), np.zeros(count, np.int64)
    method[instance] = keys.method
    group_sizes = np.array([group.size or 0 for group in job.groups] + [0], np.int64)
    expected[instance] = np.where(keys.method == MATCH_METHODS.index("peers"), 2, group_sizes[job.table.group[:]])
    return Matching(
        instance=instance,
        method=method,
        sizes=np.bincount(instance, minlength=count),
        compared=compared,
        complete=comparable & (counts >= np.maximum(expected, 2)),
        mismatches=mismatches,
        unaddressed=keys.unaddressed,
    )


def _number_instances(job: DistributedJob, keys: tuple[Int32 | Int64, ...]) -> tuple[Int64, int]:
    """Return (int64[k] number of the collective with these keys, count), numbered in order of first start."""
    table = job.table
    dense, count = dense_codes(*keys[::-1])
    known = table.start != ABSENT
    first = lowest_by_number(
        dense, table.start if known.all() else np.where(known, table.start, table.issue[:]), count
    )
    number = np.empty(count, np.int64)
    number[np.argsort(first, kind="stable")] = np.arange(count)
    return number[dense], count


@derived
def has_own_time(job: DistributedJob) -> Bool:
    """Return bool[k], True for operations with a time of their own.

    The host call of an operation that runs on a device has none: it only shows how long the launch took.
    """
    table = job.table
    on_device = [code for code, text in enumerate(job.names) if text in DEVICE_BACKENDS]

    def is_timed(timing: Int8, backend: Int32) -> Bool:
        launches = (timing == TimingSource.HOST) & np.isin(backend, on_device)
        timed: Bool = (timing != TimingSource.NONE) & ~launches
        return timed

    return map_kinds(is_timed, table.timing, table.backend)


@derived
def ranks_without_times(job: DistributedJob) -> list[int]:
    """Return the indices of workers whose operations all lack a time of their own."""
    member, count = job.table.member, len(job.sources)
    times = np.bincount(member[has_own_time(job)], minlength=count)
    positions: list[int] = np.flatnonzero((np.bincount(member, minlength=count) > 0) & (times == 0)).tolist()
    return positions


# ---- keys -----------------------------------------------------------------------------------------------

_UNADDRESSED_BLOCK = -3
"""Block number of messages that are not matched with any other."""


class _MatchingKeys(msgspec.Struct, frozen=True):
    """Keys that are equal for the operations of one collective.

    method       int8[k]  index into MATCH_METHODS
    values       integers[k]  group, method, number or peers, block (where counting restarts), ordinal; if all
                 operations are numbered, group, number, and ordinal
    uncertain    bool[k]  the values may match the wrong operations
    unaddressed  bool[k]  as in Matching
    """

    method: Int8
    values: tuple[Int32 | Int64, ...]
    uncertain: Bool
    unaddressed: Bool


def _build_matching_keys(job: DistributedJob) -> _MatchingKeys:
    table = job.table
    is_message = job.is_named(*POINT_TO_POINT)
    addressed = is_message & map_kinds(
        lambda *ends: (ends[0] != ABSENT) & (ends[1] != ABSENT), table.source, table.target
    )
    sequence = table.sequence[:]
    numbered = ~addressed & (sequence != ABSENT)
    method = np.where(numbered, 0, np.where(addressed, 1, 2)).astype(np.int8)
    if numbered.all():
        repeated = ordinals(np.zeros(len(table), np.bool_), table.member, table.group[:], sequence)
        none = np.zeros(len(table), np.bool_)
        return _MatchingKeys(method, (table.group[:], sequence, repeated), none, none)
    values = np.zeros((5, len(table)), np.int64)
    values[0], values[1] = table.group[:], method
    values[2, numbered] = sequence[numbered]
    keys = [column[numbered] for column in (table.member, table.group, sequence)]
    values[4, numbered] = ordinals(np.zeros(len(keys[0]), np.bool_), *keys)
    block = _number_blocks(table)
    _set_message_keys(job, values, addressed, block)
    member_counts = np.array([len(members) for members in job.members], np.int64)
    unaddressed: Bool = is_message & (method == 2) & (member_counts[table.group[:]] > 2)
    values[3, unaddressed], values[4, unaddressed] = _UNADDRESSED_BLOCK, np.flatnonzero(unaddressed)
    uncertain = np.zeros(len(table), np.bool_)
    ordered = np.flatnonzero((method == 2) & ~unaddressed)
    for part in positions_by_value(table.group[ordered], len(job.groups)):
        rows = ordered[part]
        if len(rows) == 0:
            continue
        values[3, rows], values[4, rows], uncertain[rows] = match_by_order(job, rows, block[rows])
    return _MatchingKeys(method, tuple(values), uncertain, unaddressed)


def _set_message_keys(job: DistributedJob, values: Int64, addressed: Bool, block: Int64) -> None:
    """Set the keys of messages with a recorded sender and receiver."""
    table = job.table
    # One of the two ranks may not know which group the message is in.
    is_recorded = np.array(
        [not group.assumed and group.ranks is not None for group in job.groups] + [False], np.bool_
    )
    in_recorded = is_recorded[table.group[addressed]]
    values[0, addressed] = np.where(in_recorded, table.group[addressed], -1)
    values[2, addressed] = table.source[addressed] * 2**31 + table.target[addressed]
    values[3, addressed] = block[addressed]
    repeated = np.stack([table.member, values[0], table.collective[:], values[2], block])[:, addressed]
    values[4, addressed] = ordinals(block[addressed] < 0, *repeated)


def _number_blocks(table: JobTable) -> Int64:
    """Return int64[k], the block that counts operations: 2 s in step s, 2 s + 1 after it, -1 before all."""
    block = np.where(table.step >= 0, 2 * table.step.astype(np.int64), -1)
    same = np.diff(table.member, prepend=-1) == 0
    # An operation between steps comes after the step of the previous operation.
    for i in np.flatnonzero((table.step < 0) & same).tolist():
        block[i] = block[i - 1] | 1 if block[i - 1] >= 0 else -1
    return block


# ---- mismatches -----------------------------------------------------------------------------------------


def _find_mismatches(
    job: DistributedJob, instance: Int64, count: int, method: Int8, certain: Bool
) -> Iterator[CollectiveMismatch]:
    """Find mismatches of name, size, and dtype among operations matched with certainty, and missing operations."""
    table, traits = job.table, CollectiveTraits(job)
    names = [*job.names, ""]
    values = _InstanceValues(table, instance, count)
    specific = certain & map_kinds(lambda code: ~traits.unspecific[code], table.collective)
    family = map_kinds(lambda code: traits.family[code], table.collective)
    yield from values.mismatches("name", family, specific, lambda row: names[table.collective[row]])
    has_size = map_kinds(
        lambda code, message: traits.sized[code] & (message != ABSENT), table.collective, table.message
    )
    yield from values.mismatches(
        "size", table.message[:], certain & has_size, lambda row: f"{table.message[row]} bytes"
    )
    lower = [name.lower() for name in names]
    codes = np.array([lower.index(name) for name in lower], np.int64)
    in_any_case = map_kinds(lambda dtype: codes[dtype], table.dtype)
    typed = certain & map_kinds(lambda dtype: dtype != NO_CODE, table.dtype)
    yield from values.mismatches("dtype", in_any_case, typed, lambda row: names[table.dtype[row]])
    yield from _find_missing(table, instance, method)


class _InstanceValues(msgspec.Struct, frozen=True):
    """The operations of each of `count` collectives, to compare their values."""

    table: JobTable
    instance: Int64
    count: int

    def mismatches(
        self, what: Literal["name", "size", "dtype"], values: Int64, known: Bool, spell: Callable[[int], str]
    ) -> Iterator[CollectiveMismatch]:
        """Find the collectives whose known `values` differ; `spell` returns the text of a row's value."""
        instances, of_rows = self.instance, values
        if not known.all():
            instances, of_rows = instances[known], of_rows[known]
        low = lowest_by_number(instances, of_rows, self.count)
        differing = np.flatnonzero(low < highest_by_number(instances, of_rows, self.count))
        if len(differing) == 0:
            return
        rows = np.flatnonzero(known)
        rows = rows[np.isin(self.instance[rows], differing)]
        rows_of = positions_by_value(np.searchsorted(differing, self.instance[rows]), len(differing))
        for collective, places in zip(differing.tolist(), rows_of, strict=True):
            members: dict[str, list[int]] = {}
            for row in rows[places].tolist():
                members.setdefault(spell(row), []).append(int(self.table.member[row]))
            yield CollectiveMismatch(collective, what, members)


def _find_missing(table: JobTable, instance: Int64, method: Int8) -> Iterator[CollectiveMismatch]:
    """Find numbered collectives that a rank lacks although it recorded earlier and later ones of the group."""
    numbered = np.flatnonzero(method == 0)
    groups, members = select(table.group, numbered), select(table.member, numbered)
    # The numbers of a group are consecutive codes.
    which, count = dense_codes(groups, select(table.sequence, numbered))
    example = np.empty(count, np.int64)
    example[which] = select(instance, numbered)
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
        yield CollectiveMismatch(missing, "missing", {"not recorded": without})
