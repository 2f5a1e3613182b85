"""What is in use on a device at an instant of a memory snapshot, by category, site and compile context."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from torch_tb_profiler.analyses.memory.snapshot_categories import CATEGORIES, UNKNOWN, categorize
from torch_tb_profiler.analyses.memory.snapshot_history import AllocatorHistory, blocks_in_use, live_allocations
from torch_tb_profiler.model.snapshots import ALLOC, RecordedSnapshot
from torch_tb_profiler.model.trace import ABSENT, Int8, Int32, Int64


@dataclass(frozen=True)
class LiveMemory:
    """Allocations in use at an instant; columns of length n.

    stack      code into the stacks
    size       requested bytes
    category   code into CATEGORIES
    context    code of the compile context's text, 0 if none
    older      bytes of allocations that are older than the history and freed in it, so that nothing else is known
    """

    stack: Int32
    size: Int64
    category: Int8
    context: Int32
    older: int

    @property
    def total(self) -> int:
        return int(self.size.sum()) + self.older

    def by_category(self) -> dict[str, int]:
        """Return the bytes of each category that occurs, most first; they add up to `total`."""
        sizes = np.zeros(len(CATEGORIES), np.int64)
        np.add.at(sizes, self.category, self.size)
        sizes[UNKNOWN] += self.older
        order = np.argsort(-sizes, kind="stable")
        return {CATEGORIES[code]: int(sizes[code]) for code in order.tolist() if sizes[code]}

    def by_site(self) -> list[tuple[int, int, int]]:
        """Return (stack, bytes, blocks) of each site, most bytes first."""
        stacks, which = np.unique(self.stack, return_inverse=True)
        sizes = np.zeros(len(stacks), np.int64)
        np.add.at(sizes, which, self.size)
        counts = np.bincount(which, minlength=len(stacks))
        order = np.argsort(-sizes, kind="stable")
        columns = (stacks[order], sizes[order], counts[order])
        return list(zip(*(column.tolist() for column in columns), strict=True))

    def by_context(self, snapshot: RecordedSnapshot) -> dict[str, int]:
        """Return the bytes of each compile context, most first."""
        contexts, which = np.unique(self.context, return_inverse=True)
        sizes = np.zeros(len(contexts), np.int64)
        np.add.at(sizes, which, self.size)
        order = np.argsort(-sizes, kind="stable")
        return {snapshot.texts[int(contexts[i])]: int(sizes[i]) for i in order.tolist()}


def recorded_live_memory(snapshot: RecordedSnapshot, history: AllocatorHistory, entry: int) -> LiveMemory:
    """Return what is in use after an entry, of the allocations in the history."""
    recorded = snapshot.history
    rows = history.rows.start + live_allocations(history, recorded.action[history.rows], entry)
    stack, label = recorded.stack[rows], recorded.label[rows]
    context = snapshot.labels.context[label] if len(label) else np.empty(0, np.int32)
    return LiveMemory(stack, recorded.size[rows], categorize(snapshot, stack, label), context, 0)


def live_memory(snapshot: RecordedSnapshot, device: int, history: AllocatorHistory, entry: int) -> LiveMemory:
    """Return what is in use after an entry, including what is older than the history."""
    recorded = recorded_live_memory(snapshot, history, entry)
    blocks = snapshot.blocks
    allocated = snapshot.history.address[history.rows][snapshot.history.action[history.rows] == ALLOC]
    old = np.flatnonzero(blocks_in_use(snapshot, device) & ~np.isin(blocks.address, allocated))
    sizes = np.where(blocks.requested[old] == ABSENT, blocks.size[old], blocks.requested[old])
    stacks = blocks.stack[old]
    total = int(history.in_use[entry])
    return LiveMemory(
        np.concatenate([recorded.stack, stacks]),
        np.concatenate([recorded.size, sizes]),
        np.concatenate([recorded.category, categorize(snapshot, stacks, None)]),
        np.concatenate([recorded.context, np.zeros(len(old), np.int32)]),
        max(total - int(recorded.size.sum()) - int(sizes.sum()), 0),
    )
