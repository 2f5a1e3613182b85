"""Operations joined by their order alone: the n-th of the group on each rank.

They are counted over the whole recording where the ranks agree throughout, else from the beginning of each step.
What was launched before the recording is counted backwards from its end. Where it is unknown which of several
groups an operation is in, it is the n-th of its name and size within the step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from torch_tb_profiler.analyses.distributed.job import Job, JobTable
from torch_tb_profiler.analyses.distributed.matching.kinds import Kinds
from torch_tb_profiler.analyses.shared.grouping import codes
from torch_tb_profiler.analyses.shared.grouping import group as group_by
from torch_tb_profiler.model.communication.groups import UNKNOWN
from torch_tb_profiler.model.trace import ABSENT, Bool, Int32, Int64

_EARLY, _WHOLE = -1, -2
"""Blocks: before the recording, and the whole recording as one."""


def ordinals(backwards: Bool, *keys: npt.NDArray[Any]) -> Int64:
    """int64[k]: the position of each among those with equal keys: 0, 1, ...; where backwards ..., -2, -1."""
    which, count = codes(*keys)
    if count == len(which):
        return np.where(backwards, -1, 0)
    size = np.bincount(which, minlength=count)
    begin = np.cumsum(size) - size
    order = np.argsort(which, kind="stable")
    ordinal = np.empty(len(which), np.int64)
    ordinal[order] = np.arange(len(which)) - begin[which[order]]
    return np.where(backwards, ordinal - size[which], ordinal)


def match_by_order(job: Job, rows: Int64, block: Int64) -> tuple[Int64, Int64, Bool]:
    """(block, ordinal, doubtful) of a group's operations that nothing but their order distinguishes."""
    table = job.table
    group = job.groups[int(table.group[rows[0]])]
    member = table.member[rows]
    if group.ranks is None and group.size is not None and len(np.unique(member)) > group.size:
        # Several groups share name and size; which ranks form each is not recorded.
        return np.full(len(rows), _WHOLE), np.arange(len(rows)), np.ones(len(rows), np.bool_)
    early = _before_recording(table, rows)
    ordinal = ordinals(early, member, early)
    signature = _signatures(job, rows)
    if _agree(member[~early], ordinal[~early], signature[~early]):
        return np.where(early, _EARLY, _WHOLE), ordinal, np.zeros(len(rows), np.bool_)
    blocks = np.where(early, _EARLY, block)
    if group == UNKNOWN:
        return blocks, *_by_signature(member, blocks, signature)
    ordinal = ordinals(blocks < 0, member, blocks)
    return blocks, *_by_block(member, blocks, ordinal, signature, _last_blocks(job, member))


def _by_signature(member: Int32, blocks: Int64, signature: Int64) -> tuple[Int64, Bool]:
    """(ordinal, doubtful) of operations of several groups in one: the n-th with equal signature of each block. In
    doubt unless all ranks that have some have equally many."""
    ordinal = ordinals(blocks < 0, member, blocks, signature)
    alike = group_by(blocks, signature)
    own = group_by(alike.which.astype(np.int64), member.astype(np.int64))
    fewest, most = np.full(len(alike), np.iinfo(np.int64).max), np.zeros(len(alike), np.int64)
    np.minimum.at(fewest, alike.which[own.first], own.counts)
    np.maximum.at(most, alike.which[own.first], own.counts)
    return alike.which * 2**32 + ordinal, (fewest < most)[alike.which]


def _before_recording(table: JobTable, rows: Int64) -> Bool:
    """bool[k]: kernels without a launch that run before the first one that has one."""
    issued = table.issue[rows] != ABSENT
    first = np.full(int(table.member[rows].max(initial=0)) + 1, np.iinfo(np.int64).min)
    known = np.flatnonzero(issued & (table.start[rows] != ABSENT))[::-1]
    first[table.member[rows][known]] = table.start[rows][known]
    early: Bool = ~issued & (table.start[rows] < first[table.member[rows]])
    return early


def _signatures(job: Job, rows: Int64) -> Int64:
    """int64[k]: equal for operations that could be one collective: by family and, where all ranks move the same
    amount, by size."""
    table, kinds = job.table, Kinds(job)
    family = kinds.family[table.collective[rows]]
    # What goes in is known even where the size of the group is not.
    moved = np.where(table.bytes_in[rows] != ABSENT, table.bytes_in[rows], table.message[rows])
    sizes = np.where(kinds.sized[table.collective[rows]], moved, 0)
    _, which = np.unique(np.stack([family, sizes]), axis=1, return_inverse=True)
    return which.reshape(-1).astype(np.int64)


def _agree(member: Int32, ordinal: Int64, signature: Int64) -> bool:
    """All ranks have equally many operations, and those of one ordinal could be one."""
    counts = np.bincount(member)
    if len(set(counts[counts > 0].tolist())) > 1:
        return False
    order = np.argsort(ordinal, kind="stable")
    same_ordinal = np.diff(ordinal[order]) == 0
    return bool((np.diff(signature[order])[same_ordinal] == 0).all())


def _last_blocks(job: Job, member: Int32) -> set[int]:
    """The blocks in which the recording of one of these ranks ends."""
    blocks = set()
    codes = {name: code for code, name in enumerate(job.steps)}
    for position in np.unique(member).tolist():
        names = job.sources[position].summary.steps.names
        if names:
            blocks |= {2 * codes[names[-1]], 2 * codes[names[-1]] + 1}
    return blocks


def _by_block(
    member: Int32, blocks: Int64, ordinal: Int64, signature: Int64, last: set[int]
) -> tuple[Int64, Bool]:
    """(ordinal, doubtful), block by block.

    If all ranks have the same operations in another order (threads race), equal ones are joined. A recording may
    end within its last block, so that other ranks have more there. Otherwise it is unknown which one is missing.
    """
    doubtful = np.zeros(len(member), np.bool_)
    for block in np.unique(blocks).tolist():
        rows = np.flatnonzero(blocks == block)
        if _agree(member[rows], ordinal[rows], signature[rows]):
            continue
        sequences = [np.sort(signature[rows[member[rows] == each]]) for each in np.unique(member[rows])]
        if all(np.array_equal(each, sequences[0]) for each in sequences):
            order = np.lexsort((ordinal[rows], signature[rows], member[rows]))
            ordinal[rows[order]] = np.concatenate([np.arange(len(each)) for each in sequences])
        elif block >= 0 and block not in last and len({len(each) for each in sequences}) > 1:
            doubtful[rows] = True
    return ordinal, doubtful
