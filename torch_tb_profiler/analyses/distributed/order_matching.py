"""Operations matched across ranks by their order alone: the n-th of the group on each rank.

If the ranks agree throughout, operations are counted over the entire recording, otherwise from the start of each
step. Operations launched before the recording are counted backwards from the last of them. If it is unknown which
of several groups an operation belongs to, it is the n-th of its name and size within the step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from torch_tb_profiler.analyses.distributed.job import DistributedJob, JobTable
from torch_tb_profiler.analyses.shared.grouping import dense_codes
from torch_tb_profiler.analyses.shared.grouping import group as group_by
from torch_tb_profiler.base.compiled import column_functions
from torch_tb_profiler.model.communication.events import ALL_TO_ALL, POINT_TO_POINT
from torch_tb_profiler.model.communication.groups import UNKNOWN_GROUP
from torch_tb_profiler.model.trace import ABSENT, Bool, Int32, Int64, name_mask

_UNSPECIFIC_NAMES = ("unknown", "send_recv", "coalesced")
"""Names that do not say which collective ran, so they are compatible with every other name."""

_UNEVEN_COLLECTIVES = frozenset((*ALL_TO_ALL, "gather", "scatter", "barrier"))
"""Collectives in which ranks may move different amounts."""

_BEFORE_RECORDING, _ENTIRE_RECORDING = -1, -2
"""Numbers of the blocks that are no step."""


class CollectiveTraits:
    """Properties of collectives by code of the job's names; the last cell is for NO_CODE.

    family      int64  equal for names of one collective
    unspecific  bool   the name does not say which collective ran
    sized       bool   all ranks move the same amount
    """

    def __init__(self, job: DistributedJob) -> None:
        families = [
            "all_to_all" if name in ALL_TO_ALL else "message" if name in POINT_TO_POINT else name
            for name in job.names
        ]
        self.family = np.array([families.index(family) for family in families] + [0], np.int64)
        self.unspecific = name_mask(families, _UNSPECIFIC_NAMES.__contains__)
        self.sized = name_mask(
            families, lambda name: name not in _UNSPECIFIC_NAMES and name not in _UNEVEN_COLLECTIVES
        )


def ordinals(backwards: Bool, *keys: npt.NDArray[Any]) -> Int64:
    """Return int64[k], the position of each element among those with equal keys.

    Positions are 0, 1, ...; for elements with `backwards` set they are ..., -2, -1.
    """
    which, count = dense_codes(*keys)
    if count == len(which):
        return np.where(backwards, -1, 0)
    if functions := column_functions(len(which)):
        ordinal = functions.ordinals(which, count)
    else:
        size = np.bincount(which, minlength=count)
        begin = np.cumsum(size) - size
        order = np.argsort(which, kind="stable")
        ordinal = np.empty(len(which), np.int64)
        ordinal[order] = np.arange(len(which)) - begin[which[order]]
    if not backwards.any():
        return ordinal
    return np.where(backwards, ordinal - np.bincount(which, minlength=count)[which], ordinal)


def match_by_order(job: DistributedJob, rows: Int64, block: Int64) -> tuple[Int64, Int64, Bool]:
    """Return (block, ordinal, uncertain) of a group's operations that only their order distinguishes."""
    table = job.table
    group = job.groups[int(table.group[rows[0]])]
    member = table.member[rows]
    if group.ranks is None and group.size is not None and len(np.unique(member)) > group.size:
        # Several groups share name and size, and which ranks form each is not recorded.
        return np.full(len(rows), _ENTIRE_RECORDING), np.arange(len(rows)), np.ones(len(rows), np.bool_)
    early = _launched_before_recording(table, rows)
    ordinal = ordinals(early, member, early)
    signature = _compute_signatures(job, rows)
    if _ranks_agree(member[~early], ordinal[~early], signature[~early]):
        return np.where(early, _BEFORE_RECORDING, _ENTIRE_RECORDING), ordinal, np.zeros(len(rows), np.bool_)
    blocks = np.where(early, _BEFORE_RECORDING, block)
    if group == UNKNOWN_GROUP:
        return blocks, *_match_by_signature(member, blocks, signature)
    ordinal = ordinals(blocks < 0, member, blocks)
    return blocks, *_match_by_block(member, blocks, ordinal, signature, _find_last_blocks(job, member))


def _match_by_signature(member: Int32, blocks: Int64, signature: Int64) -> tuple[Int64, Bool]:
    """Return (ordinal, uncertain) of operations that may belong to several groups.

    The ordinal counts equal signatures within a block. It is uncertain unless all ranks that have some of a
    signature have equally many.
    """
    ordinal = ordinals(blocks < 0, member, blocks, signature)
    similar = group_by(blocks, signature)
    by_rank = group_by(similar.which.astype(np.int64), member.astype(np.int64))
    fewest, most = np.full(len(similar), np.iinfo(np.int64).max), np.zeros(len(similar), np.int64)
    np.minimum.at(fewest, similar.which[by_rank.first], by_rank.counts)
    np.maximum.at(most, similar.which[by_rank.first], by_rank.counts)
    return similar.which * 2**32 + ordinal, (fewest < most)[similar.which]


def _match_by_block(
    member: Int32, blocks: Int64, ordinal: Int64, signature: Int64, last: set[int]
) -> tuple[Int64, Bool]:
    """Return (ordinal, uncertain), block by block.

    If all ranks have the same operations in different order (threads race), equal ones are matched. A recording
    may end within its last block, so other ranks may have more operations there. Otherwise it is unknown which
    operation is missing.
    """
    uncertain = np.zeros(len(member), np.bool_)
    for block in np.unique(blocks).tolist():
        rows = np.flatnonzero(blocks == block)
        if _ranks_agree(member[rows], ordinal[rows], signature[rows]):
            continue
        sequences = [np.sort(signature[rows[member[rows] == rank]]) for rank in np.unique(member[rows])]
        if all(np.array_equal(sequence, sequences[0]) for sequence in sequences):
            order = np.lexsort((ordinal[rows], signature[rows], member[rows]))
            ordinal[rows[order]] = np.concatenate([np.arange(len(sequence)) for sequence in sequences])
        elif block >= 0 and block not in last and len({len(sequence) for sequence in sequences}) > 1:
            uncertain[rows] = True
    return ordinal, uncertain


def _launched_before_recording(table: JobTable, rows: Int64) -> Bool:
    """Return bool[k], True for kernels without a launch that run before the rank's first kernel with one."""
    issued = table.issue[rows] != ABSENT
    first = np.full(int(table.member[rows].max(initial=0)) + 1, np.iinfo(np.int64).min)
    known = np.flatnonzero(issued & (table.start[rows] != ABSENT))[::-1]
    first[table.member[rows][known]] = table.start[rows][known]
    early: Bool = ~issued & (table.start[rows] < first[table.member[rows]])
    return early


def _compute_signatures(job: DistributedJob, rows: Int64) -> Int64:
    """Return int64[k], equal for operations that could be one collective.

    They have one family and, where all ranks move the same amount, one size.
    """
    table, traits = job.table, CollectiveTraits(job)
    family = traits.family[table.collective[rows]]
    # The input size is known even where the size of the group is not.
    moved = np.where(table.bytes_in[rows] != ABSENT, table.bytes_in[rows], table.message[rows])
    sizes = np.where(traits.sized[table.collective[rows]], moved, 0)
    _, which = np.unique(np.stack([family, sizes]), axis=1, return_inverse=True)
    return which.reshape(-1).astype(np.int64)


def _ranks_agree(member: Int32, ordinal: Int64, signature: Int64) -> bool:
    """Return whether all ranks have equally many operations, and those of one ordinal share a signature."""
    counts = np.bincount(member)
    if len(set(counts[counts > 0].tolist())) > 1:
        return False
    order = np.argsort(ordinal, kind="stable")
    same_ordinal = np.diff(ordinal[order]) == 0
    return bool((np.diff(signature[order])[same_ordinal] == 0).all())


def _find_last_blocks(job: DistributedJob, member: Int32) -> set[int]:
    """Return the blocks in which the recording of one of the ranks ends."""
    blocks = set()
    codes = {name: code for code, name in enumerate(job.steps)}
    for position in np.unique(member).tolist():
        names = job.sources[position].summary.steps.names
        if names:
            blocks |= {2 * codes[names[-1]], 2 * codes[names[-1]] + 1}
    return blocks
