"""Which collectives take longer than they need to, although all their ranks that are here have arrived.

Either a link of their ranks is slower: other ranks transfer as much in less time. Or ranks whose traces are
missing arrive late: then those that are here all wait, and the shortest of their times is no transfer.
"""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.analyses.distributed.job import Job
from torch_tb_profiler.analyses.distributed.matching.matching import Matching
from torch_tb_profiler.analyses.distributed.waiting import Split
from torch_tb_profiler.analyses.shared.grouping import group
from torch_tb_profiler.base.median import median
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Int64


def example_rows(matching: Matching, split: Split) -> Int64:
    """int64[c]: an operation of each collective that was compared, NO_CODE for the others."""
    rows = np.full(len(matching), NO_CODE, np.int64)
    compared = np.flatnonzero(split.compared)
    rows[matching.instance[compared]] = compared
    return rows


def slower_transfers(job: Job, matching: Matching, split: Split) -> Int64:
    """int64[c] ns by which the transfer is longer than the median of the same collectives of other ranks.

    The same: name, bytes, and number of ranks. Collectives of one group, or messages between the same ranks, are
    not compared with each other. 0 where no others are the same, or a rank is missing.
    """
    table, examples = job.table, example_rows(matching, split)
    known = np.flatnonzero((examples >= 0) & matching.complete)
    rows = examples[known]
    excess = np.zeros(len(matching), np.int64)
    message = np.sort(np.stack([table.source[rows], table.target[rows]]), axis=0)
    channel = group(table.group[rows], *message).which
    alike = group(table.collective[rows], table.message[rows], matching.sizes[known])
    for number in np.flatnonzero(np.bincount(alike.which) > 1).tolist():
        own = np.flatnonzero(alike.which == number)
        channels, which = np.unique(channel[own], return_inverse=True)
        if len(channels) < 2:
            continue
        transfer = split.transfer[rows[own]]
        typical = np.array([median(transfer[which == each]) for each in range(len(channels))])
        others = np.array([median(np.delete(typical, each)) for each in range(len(channels))])
        excess[known[own]] = np.maximum(transfer - others[which].astype(np.int64), 0)
    return excess


def waits_for_absent(job: Job, matching: Matching, split: Split) -> Int64:
    """int64[c] ns that all ranks here waited for ones that are missing, at least.

    A collective of the group that moved as much, or more, and took less time shows how long it needs.
    """
    table, examples = job.table, example_rows(matching, split)
    rows = examples[examples >= 0]
    waits = np.zeros(len(matching), np.int64)
    kinds = group(table.group[rows], table.collective[rows])
    for number in range(len(kinds)):
        own = rows[kinds.which == number]
        sizes = table.message[own]
        order = np.argsort(-sizes, kind="stable")
        own, sizes = own[order], sizes[order]
        if (sizes == ABSENT).any():
            continue
        shortest = np.minimum.accumulate(split.transfer[own])
        # Of those with equal size the last one knows the shortest of them all.
        last = np.searchsorted(-sizes, -sizes, "right") - 1
        waits[matching.instance[own]] = split.transfer[own] - shortest[last]
    waits[matching.complete] = 0
    return waits
