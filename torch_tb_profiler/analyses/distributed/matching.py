"""Which operations of different ranks are one collective.

Within a process group (its name *and* ranks) by the recorded sequence number; messages by sender, receiver and
turn; all else by turn: the n-th operation of the group, counted over the whole recording where the ranks agree
throughout, else from the beginning of each step. Where it is not known which of several groups an operation is in,
the n-th in the step of its name and size. What was launched before the recording is counted backwards
from its end. Ranks that disagree on name, size or dtype are reported and not compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from torch_tb_profiler.analyses.distributed.job import Job, JobTable
from torch_tb_profiler.analyses.shared.grouping import group as group_by
from torch_tb_profiler.model.communication.collectives import Timing
from torch_tb_profiler.model.communication.groups import UNKNOWN
from torch_tb_profiler.model.communication.names import ALL_TO_ALL, DEVICE_BACKENDS, MESSAGES
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Int8, Int32, Int64, name_mask

MatchedBy = Literal["sequence_number", "peers", "order"]
METHODS: tuple[MatchedBy, ...] = ("sequence_number", "peers", "order")

_UNSPECIFIC = ("unknown", "send_recv", "coalesced")
"""Names that say nothing, so that they contradict none."""

_MAY_DIFFER = frozenset((*ALL_TO_ALL, "gather", "scatter", "barrier"))
"""Collectives in which ranks may move different amounts."""


class Difference(msgspec.Struct, frozen=True):
    """Ranks that disagree on one collective; `values`: what they say -> positions of the workers."""

    instance: int
    what: Literal["name", "size", "dtype", "missing"]
    values: dict[str, list[int]]


class Matching(msgspec.Struct, frozen=True):
    """Collectives across ranks.

    instance  int64[k]  the collective of each operation of the job's table: 0..count-1, in order of first start
    method    int8[count]  place in METHODS of how it was matched
    sizes     int64[count]  how many operations it joins
    compared  bool[k]  the operation has a time, as has at least one of another rank that recorded the same
    lonely    bool[k]  a message of which nothing records between whom it passes, so that it is compared with none
    complete  bool[count]  all ranks of the group are compared (two, if it is not known how many they are)
    """

    instance: Int64
    method: Int8
    sizes: Int64
    compared: Bool
    complete: Bool
    differences: tuple[Difference, ...]
    lonely: Bool

    def __len__(self) -> int:
        return len(self.sizes)


def match(job: Job) -> Matching:
    """Join the operations of all ranks."""
    table = job.table
    method, keys, doubtful, lonely = _keys(job)
    order = np.lexsort(keys)
    ordered = keys[:, order]
    new = np.append(True, (np.diff(ordered, axis=1) != 0).any(axis=0)) if len(table) else np.empty(0, np.bool_)
    dense = np.empty(len(table), np.int64)
    dense[order] = np.cumsum(new) - 1
    count = int(new.sum())
    first = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(first, dense, np.where(table.start == ABSENT, table.issue, table.start))
    place = np.empty(count, np.int64)
    place[np.argsort(first, kind="stable")] = np.arange(count)
    instance = place[dense]
    sizes = np.bincount(instance, minlength=count)
    differences = tuple(_differences(job, instance, count, method, ~doubtful))
    told = timed(job)
    counts = np.bincount(instance[told], minlength=count)
    alike = np.ones(count, np.bool_)
    alike[instance[doubtful]] = False
    alike[[each.instance for each in differences if each.what != "missing"]] = False
    compared = told & (alike & (counts > 1))[instance]
    by, expected = np.zeros(count, np.int8), np.zeros(count, np.int64)
    by[instance] = method
    expected[instance] = np.where(method == METHODS.index("peers"), 2, _group_sizes(job)[table.group])
    return Matching(
        instance, by, sizes, compared, alike & (counts >= np.maximum(expected, 2)), differences, lonely
    )


def _group_sizes(job: Job) -> Int64:
    """Ranks of each group; 0 if unknown."""
    return np.array([group.size or 0 for group in job.groups] + [0], np.int64)


def timed(job: Job) -> Bool:
    """bool[k]: operations with a time of their own; the host's call of one that runs on a device tells none."""
    table = job.table
    on_device = [code for code, text in enumerate(job.names) if text in DEVICE_BACKENDS]
    launches = (table.timing == Timing.HOST) & np.isin(table.backend, on_device)
    told: Bool = (table.timing != Timing.NONE) & ~launches
    return told


# ---- keys -----------------------------------------------------------------------------------------------


def _keys(job: Job) -> tuple[Int8, Int64, Bool, Bool]:
    """(int8[k] method, int64[5, k] keys equal for one and the same collective, bool[k] doubtful, bool[k] lonely).

    doubtful: it is not certain that the keys join the right ones; lonely: as in Matching
    """
    table = job.table
    between = job.is_named(*MESSAGES)
    message = between & (table.source != ABSENT) & (table.target != ABSENT)
    numbered = ~message & (table.sequence != ABSENT)
    method = np.where(numbered, 0, np.where(message, 1, 2)).astype(np.int8)
    keys = np.zeros((5, len(table)), np.int64)
    keys[0], keys[1] = table.group, method
    keys[2, numbered] = table.sequence[numbered]
    of_one = np.stack([table.member, table.group, table.sequence])[:, numbered]
    keys[4, numbered] = _turn(np.zeros(of_one.shape[1], np.bool_), *of_one)
    block = _blocks(table)
    # Which group it is in may be unknown to one of the two.
    keys[0, message] = np.where(_is_recorded(job)[table.group[message]], table.group[message], -1)
    keys[2, message] = table.source[message] * 2**31 + table.target[message]
    keys[3, message] = block[message]
    of_one = np.stack([table.member, keys[0], table.collective, keys[2], block])[:, message]
    keys[4, message] = _turn(block[message] < 0, *of_one)
    doubtful = np.zeros(len(table), np.bool_)
    lonely: Bool = between & (method == 2) & (_members(job)[table.group] > 2)
    keys[3, lonely], keys[4, lonely] = -3, np.flatnonzero(lonely)  # to whom it goes is not recorded
    ordered = np.flatnonzero((method == 2) & ~lonely)
    for group in np.unique(table.group[ordered]).tolist():
        mine = ordered[table.group[ordered] == group]
        keys[3, mine], keys[4, mine], doubtful[mine] = _by_order(job, mine, block[mine])
    return method, keys, doubtful, lonely


def _is_recorded(job: Job) -> Bool:
    """bool[groups]: groups that the operations themselves name."""
    return np.array([not group.assumed and group.ranks is not None for group in job.groups] + [False])


def _members(job: Job) -> Int64:
    """int64[groups]: how many workers communicate in each."""
    pairs = np.unique(np.stack([job.table.group, job.table.member]), axis=1)
    return np.bincount(pairs[0], minlength=len(job.groups))


def _turn(backwards: Bool, *keys: npt.NDArray[Any]) -> Int64:
    """int64[k]: the ordinal of each among those with equal keys: 0, 1, ...; counted backwards ..., -2, -1."""
    count = len(backwards)
    order = np.lexsort(keys)  # stable
    new = np.zeros(count, np.bool_)
    new[:1] = True
    for key in keys:
        new[1:] |= np.diff(key[order]) != 0
    begin = np.flatnonzero(new)
    length = np.diff(np.append(begin, count))
    turn = np.empty(count, np.int64)
    turn[order] = np.arange(count) - np.repeat(begin, length)
    size = np.empty(count, np.int64)
    size[order] = np.repeat(length, length)
    return np.where(backwards, turn - size, turn)


def _blocks(table: JobTable) -> Int64:
    """int64[k]: where counting begins anew: 2 s in step s, 2 s + 1 after it, -1 before the first."""
    block = np.where(table.step >= 0, 2 * table.step.astype(np.int64), -1)
    same = np.diff(table.member, prepend=-1) == 0
    # An operation between steps comes after the step of the one before it.
    for i in np.flatnonzero((table.step < 0) & same).tolist():
        block[i] = block[i - 1] | 1 if block[i - 1] >= 0 else -1
    return block


def _by_order(job: Job, rows: Int64, block: Int64) -> tuple[Int64, Int64, Bool]:
    """(block, turn, doubtful) of a group's operations that nothing but their order tells apart."""
    table = job.table
    group = job.groups[int(table.group[rows[0]])]
    member = table.member[rows]
    if group.ranks is None and group.size is not None and len(np.unique(member)) > group.size:
        # Several groups share name and size; who is with whom is not recorded.
        return np.full(len(rows), -2), np.arange(len(rows)), np.ones(len(rows), np.bool_)
    early = _before_recording(table, rows)
    turn = _turn(early, member, early)
    signature = _signatures(job, rows)
    if _agree(member[~early], turn[~early], signature[~early]):
        return np.where(early, -1, -2), turn, np.zeros(len(rows), np.bool_)
    blocks = np.where(early, -1, block)
    if group == UNKNOWN:
        return blocks, *_by_signature(member, blocks, signature)
    turn = _turn(blocks < 0, member, blocks)
    return blocks, *_settle(member, blocks, turn, signature, _last_blocks(job, member))


def _by_signature(member: Int32, blocks: Int64, signature: Int64) -> tuple[Int64, Bool]:
    """(turn, doubtful) of operations of several groups in one: of each block the n-th of those that could be one,
    if the ranks that have some have equally many."""
    turn = _turn(blocks < 0, member, blocks, signature)
    alike = group_by(blocks, signature)
    own = group_by(alike.which.astype(np.int64), member.astype(np.int64))
    fewest, most = np.full(len(alike), np.iinfo(np.int64).max), np.zeros(len(alike), np.int64)
    np.minimum.at(fewest, alike.which[own.first], own.counts)
    np.maximum.at(most, alike.which[own.first], own.counts)
    return alike.which * 2**32 + turn, (fewest < most)[alike.which]


def _before_recording(table: JobTable, rows: Int64) -> Bool:
    """bool[k]: kernels without a launch that run before the first one that has one."""
    issued = table.issue[rows] != ABSENT
    first = np.full(int(table.member[rows].max(initial=0)) + 1, np.iinfo(np.int64).min)
    known = np.flatnonzero(issued & (table.start[rows] != ABSENT))[::-1]
    first[table.member[rows][known]] = table.start[rows][known]
    early: Bool = ~issued & (table.start[rows] < first[table.member[rows]])
    return early


def _signatures(job: Job, rows: Int64) -> Int64:
    """int64[k]: equal for operations that could be one: collective and, where all ranks move as much, its size."""
    table, kinds = job.table, _Kinds(job)
    family = kinds.family[table.collective[rows]]
    # What goes in is known even where the size of the group is not.
    moved = np.where(table.bytes_in[rows] != ABSENT, table.bytes_in[rows], table.message[rows])
    sizes = np.where(kinds.sized[table.collective[rows]], moved, 0)
    _, which = np.unique(np.stack([family, sizes]), axis=1, return_inverse=True)
    found: Int64 = which.reshape(-1).astype(np.int64)
    return found


class _Kinds:
    """By code of the job's names: `family` int64, equal for collectives that are one; `unspecific` bool, the name
    tells nothing; `sized` bool, all ranks move as much."""

    def __init__(self, job: Job) -> None:
        families = [
            "all_to_all" if name in ALL_TO_ALL else "message" if name in MESSAGES else name for name in job.names
        ]
        self.family = np.array([families.index(family) for family in families] + [0], np.int64)
        self.unspecific = name_mask(families, _UNSPECIFIC.__contains__)
        self.sized = name_mask(families, lambda family: family not in _UNSPECIFIC and family not in _MAY_DIFFER)


def _agree(member: Int32, turn: Int64, signature: Int64) -> bool:
    """All ranks have equally many operations, and those of one turn could be one."""
    counts = np.bincount(member)
    if len(set(counts[counts > 0].tolist())) > 1:
        return False
    order = np.argsort(turn, kind="stable")
    same_turn = np.diff(turn[order]) == 0
    return bool((np.diff(signature[order])[same_turn] == 0).all())


def _last_blocks(job: Job, member: Int32) -> set[int]:
    """The blocks in which the recording of one of these ranks ends."""
    found = set()
    codes = {name: code for code, name in enumerate(job.steps)}
    for position in np.unique(member).tolist():
        steps = job.sources[position].summary.steps
        if steps:
            found |= {2 * codes[steps[-1].name], 2 * codes[steps[-1].name] + 1}
    return found


def _settle(member: Int32, blocks: Int64, turn: Int64, signature: Int64, last: set[int]) -> tuple[Int64, Bool]:
    """(turn, doubtful): where ranks disagree within a block.

    If all have the same operations in another order (threads that race), equal ones are joined. A recording may
    end within its last block, so that the others have more there. Else it is not known which is missing.
    """
    doubtful = np.zeros(len(member), np.bool_)
    for block in np.unique(blocks).tolist():
        mine = np.flatnonzero(blocks == block)
        if _agree(member[mine], turn[mine], signature[mine]):
            continue
        sequences = [np.sort(signature[mine[member[mine] == each]]) for each in np.unique(member[mine])]
        if all(np.array_equal(each, sequences[0]) for each in sequences):
            order = np.lexsort((turn[mine], signature[mine], member[mine]))
            turn[mine[order]] = np.concatenate([np.arange(len(each)) for each in sequences])
        elif block >= 0 and block not in last and len({len(each) for each in sequences}) > 1:
            doubtful[mine] = True
    return turn, doubtful


# ---- differences ----------------------------------------------------------------------------------------


def _differences(job: Job, instance: Int64, count: int, method: Int8, told: Bool) -> Iterator[Difference]:
    table, kinds = job.table, _Kinds(job)
    code = table.collective
    names = [*job.names, ""]
    unequal = _Unequal(table, instance, count)
    yield from unequal.find(
        "name", kinds.family[code], told & ~kinds.unspecific[code], lambda row: names[code[row]]
    )
    sized = told & kinds.sized[code] & (table.message != ABSENT)
    yield from unequal.find("size", table.message, sized, lambda row: f"{table.message[row]} bytes")
    types = [name.lower() for name in names]
    spelled = np.array([types.index(name) for name in types], np.int64)[table.dtype]
    yield from unequal.find("dtype", spelled, told & (table.dtype != NO_CODE), lambda row: names[table.dtype[row]])
    yield from _missing(table, instance, method)


class _Unequal(msgspec.Struct, frozen=True):
    """Collectives of which some ranks say another value than others."""

    table: JobTable
    instance: Int64
    count: int

    def find(
        self, what: Literal["name", "size", "dtype"], values: Int64, known: Bool, spell: Callable[[int], str]
    ) -> Iterator[Difference]:
        """Those whose known `values` differ."""
        rows = np.flatnonzero(known)
        least, most = np.full(self.count, np.iinfo(np.int64).max), np.full(self.count, np.iinfo(np.int64).min)
        np.minimum.at(least, self.instance[rows], values[rows])
        np.maximum.at(most, self.instance[rows], values[rows])
        for which in np.flatnonzero(least < most).tolist():
            found: dict[str, list[int]] = {}
            for row in rows[self.instance[rows] == which].tolist():
                found.setdefault(spell(row), []).append(int(self.table.member[row]))
            yield Difference(which, what, found)


def _missing(table: JobTable, instance: Int64, method: Int8) -> Iterator[Difference]:
    """Numbered collectives that a rank lacks although it recorded earlier and later ones of the group."""
    for group in np.unique(table.group[method == 0]).tolist():
        rows = np.flatnonzero((table.group == group) & (method == 0))
        numbers, which = np.unique(table.sequence[rows], return_inverse=True)
        example = np.empty(len(numbers), np.int64)
        example[which.reshape(-1)] = instance[rows]
        order = np.lexsort((which.reshape(-1), table.member[rows]))
        member, turn = table.member[rows][order], which.reshape(-1)[order]
        gaps = np.flatnonzero((np.diff(member) == 0) & (np.diff(turn) > 1))
        lacking: dict[int, list[int]] = {}
        for i in gaps.tolist():
            for lost in range(int(turn[i]) + 1, int(turn[i + 1])):
                lacking.setdefault(int(example[lost]), []).append(int(member[i]))
        for lost, members in sorted(lacking.items()):
            yield Difference(lost, "missing", {"not recorded": members})
