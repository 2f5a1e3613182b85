"""Keys that are equal for the operations of one collective."""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.job import Job, JobTable
from torch_tb_profiler.analyses.distributed.matching.order import match_by_order, ordinals
from torch_tb_profiler.analyses.shared.grouping import split_by
from torch_tb_profiler.model.communication.names import MESSAGES
from torch_tb_profiler.model.trace import ABSENT, Bool, Int8, Int64

MatchedBy = Literal["sequence_number", "peers", "order"]
METHODS: tuple[MatchedBy, ...] = ("sequence_number", "peers", "order")

_UNADDRESSED = -3
"""In place of a block: the message is joined with none."""


class Keys(msgspec.Struct, frozen=True):
    """method   int8[k]  position in METHODS
    values      int64[5, k]  equal for the operations of one collective
    doubtful    bool[k]  it is not certain that the values join the right operations
    unaddressed bool[k]  as in Matching
    """

    method: Int8
    values: Int64
    doubtful: Bool
    unaddressed: Bool


def keys_of(job: Job) -> Keys:
    """The keys of every operation of the job's table.

    values: group, method, number or peers, block (where counting starts over), ordinal
    """
    table = job.table
    is_message = job.is_named(*MESSAGES)
    addressed = is_message & (table.source != ABSENT) & (table.target != ABSENT)
    numbered = ~addressed & (table.sequence != ABSENT)
    method = np.where(numbered, 0, np.where(addressed, 1, 2)).astype(np.int8)
    values = np.zeros((5, len(table)), np.int64)
    values[0], values[1] = table.group, method
    values[2, numbered] = table.sequence[numbered]
    repeated = [column[numbered] for column in (table.member, table.group, table.sequence)]
    values[4, numbered] = ordinals(np.zeros(len(repeated[0]), np.bool_), *repeated)
    block = _blocks(table)
    _address(job, values, addressed, block)
    unaddressed: Bool = is_message & (method == 2) & (_member_counts(job)[table.group] > 2)
    values[3, unaddressed], values[4, unaddressed] = _UNADDRESSED, np.flatnonzero(unaddressed)
    doubtful = np.zeros(len(table), np.bool_)
    ordered = np.flatnonzero((method == 2) & ~unaddressed)
    for part in split_by(table.group[ordered], len(job.groups)):
        rows = ordered[part]
        if len(rows) == 0:
            continue
        values[3, rows], values[4, rows], doubtful[rows] = match_by_order(job, rows, block[rows])
    return Keys(method, values, doubtful, unaddressed)


def _address(job: Job, values: Int64, addressed: Bool, block: Int64) -> None:
    """Fill in the keys of messages by sender and receiver."""
    table = job.table
    # One of the two may not know which group the message is in.
    in_recorded = _recorded_groups(job)[table.group[addressed]]
    values[0, addressed] = np.where(in_recorded, table.group[addressed], -1)
    values[2, addressed] = table.source[addressed] * 2**31 + table.target[addressed]
    values[3, addressed] = block[addressed]
    repeated = np.stack([table.member, values[0], table.collective, values[2], block])[:, addressed]
    values[4, addressed] = ordinals(block[addressed] < 0, *repeated)


def _recorded_groups(job: Job) -> Bool:
    """bool[groups + 1]: groups that the operations themselves name."""
    return np.array([not group.assumed and group.ranks is not None for group in job.groups] + [False])


def _member_counts(job: Job) -> Int64:
    """int64[groups]: how many workers communicate in each."""
    return np.array([len(members) for members in job.members], np.int64)


def _blocks(table: JobTable) -> Int64:
    """int64[k]: where counting starts over: 2 s in step s, 2 s + 1 after it, -1 before the first."""
    block = np.where(table.step >= 0, 2 * table.step.astype(np.int64), -1)
    same = np.diff(table.member, prepend=-1) == 0
    # An operation between steps comes after the step of the one before it.
    for i in np.flatnonzero((table.step < 0) & same).tolist():
        block[i] = block[i - 1] | 1 if block[i - 1] >= 0 else -1
    return block
