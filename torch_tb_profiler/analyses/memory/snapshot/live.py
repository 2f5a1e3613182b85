"""What is in use on a device at an instant of a memory snapshot, by category, site, module and compile context."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from torch_tb_profiler.analyses.memory.snapshot.categories import (
    CATEGORIES,
    UNKNOWN,
    categorize,
    categorize_blocks,
)
from torch_tb_profiler.analyses.memory.snapshot.history import (
    AllocatorHistory,
    allocator_history,
    blocks_in_use,
    live_allocations,
    requested_sizes,
)
from torch_tb_profiler.analyses.memory.snapshot.modules import NO_MODULE, stack_modules
from torch_tb_profiler.analyses.shared.payload_values import float64_bytes
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.snapshots import ALLOC, RecordedSnapshot
from torch_tb_profiler.model.trace import Int8, Int32, Int64

_CHUNK_ENTRIES = 1 << 17
"""Entries that are summed at a time, to bound the memory."""


@dataclass(frozen=True)
class MemoryInUse:
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

    def by_site(self) -> list[tuple[int, int, int, int]]:
        """Return (stack, bytes, blocks, category of most bytes) of each site, most bytes first."""
        stacks, which = np.unique(self.stack, return_inverse=True)
        which = which.reshape(-1)
        sizes = np.zeros((len(stacks), len(CATEGORIES)), np.int64)
        np.add.at(sizes, (which, self.category), self.size)
        counts = np.bincount(which, minlength=len(stacks))
        totals = sizes.sum(axis=1)
        order = np.argsort(-totals, kind="stable")
        columns = (stacks[order], totals[order], counts[order], sizes[order].argmax(axis=1))
        return list(zip(*(column.tolist() for column in columns), strict=True))

    def by_module(self, snapshot: RecordedSnapshot) -> list[tuple[str, int, int]]:
        """Return (module, bytes, blocks) of each module, most bytes first; they add up to `total` with `older`."""
        modules = stack_modules(snapshot)
        codes, which = np.unique(modules.of_stack[self.stack], return_inverse=True)
        which = which.reshape(-1)
        sizes = np.zeros(len(codes), np.int64)
        np.add.at(sizes, which, self.size)
        counts = np.bincount(which, minlength=len(codes))
        order = np.argsort(-sizes, kind="stable")
        rows = [(modules.names[int(codes[i])], int(sizes[i]), int(counts[i])) for i in order.tolist()]
        return rows if not self.older else _with_older(rows, self.older)

    def by_context(self, snapshot: RecordedSnapshot) -> dict[str, int]:
        """Return the bytes of each compile context, most first."""
        contexts, which = np.unique(self.context, return_inverse=True)
        sizes = np.zeros(len(contexts), np.int64)
        np.add.at(sizes, which.reshape(-1), self.size)
        order = np.argsort(-sizes, kind="stable")
        return {snapshot.texts[int(contexts[i])]: int(sizes[i]) for i in order.tolist()}


def _with_older(rows: list[tuple[str, int, int]], older: int) -> list[tuple[str, int, int]]:
    """Add bytes of unknown origin to those outside of modules."""
    known = {name: (size, blocks) for name, size, blocks in rows}
    size, blocks = known.get(NO_MODULE, (0, 0))
    known[NO_MODULE] = size + older, blocks
    return sorted(((name, *value) for name, value in known.items()), key=lambda row: -row[1])


def recorded_live_memory(snapshot: RecordedSnapshot, history: AllocatorHistory, entry: int) -> MemoryInUse:
    """Return what is in use after an entry, of the allocations in the history."""
    recorded = snapshot.history
    rows = history.rows.start + live_allocations(history, entry)
    stack, label = recorded.stack[rows], recorded.label[rows]
    context = snapshot.labels.context[label] if len(label) else np.empty(0, np.int32)
    return MemoryInUse(stack, recorded.size[rows], categorize(snapshot, stack, label), context, 0)


def memory_in_use(snapshot: RecordedSnapshot, device: int, history: AllocatorHistory, entry: int) -> MemoryInUse:
    """Return what is in use after an entry, including what is older than the history.

    Of a truncated file only the allocations in the history are known.
    """
    recorded = recorded_live_memory(snapshot, history, entry)
    if not history.anchored:
        return recorded
    old = older_blocks(snapshot, device)
    sizes, stacks = requested_sizes(snapshot)[old], snapshot.blocks.stack[old]
    return MemoryInUse(
        np.concatenate([recorded.stack, stacks]),
        np.concatenate([recorded.size, sizes]),
        np.concatenate([recorded.category, categorize_blocks(snapshot, old)]),
        np.concatenate([recorded.context, np.zeros(len(old), np.int32)]),
        max(int(history.in_use[entry]) - int(recorded.size.sum()) - int(sizes.sum()), 0),
    )


def live_at_end(snapshot: RecordedSnapshot, device: int) -> MemoryInUse:
    """Return what is in use in the snapshot itself, whose file may have no history."""
    used = np.flatnonzero(blocks_in_use(snapshot, device))
    stack = snapshot.blocks.stack[used]
    return MemoryInUse(
        stack,
        requested_sizes(snapshot)[used],
        categorize_blocks(snapshot, used),
        np.zeros(len(used), np.int32),
        0,
    )


@derived
def older_blocks(snapshot: RecordedSnapshot, device: int) -> Int64:
    """Return the blocks in use whose allocation is older than the history."""
    history = allocator_history(snapshot, device)
    used = np.flatnonzero(blocks_in_use(snapshot, device))
    if not len(history):
        return used
    rows = history.rows.start + live_allocations(history, len(history) - 1)
    return used[~np.isin(snapshot.blocks.address[used], snapshot.history.address[rows])]


def sample_categories(
    snapshot: RecordedSnapshot, device: int, history: AllocatorHistory, entries: Int64
) -> dict[str, bytes]:
    """Return, of each category that occurs, its bytes after each entry (ascending) as a packed float64 column."""
    levels = category_levels(snapshot, device, history, entries)
    return {CATEGORIES[code]: float64_bytes(levels[code]) for code in np.flatnonzero(levels.any(axis=1)).tolist()}


def category_levels(snapshot: RecordedSnapshot, device: int, history: AllocatorHistory, entries: Int64) -> Int64:
    """Return int64[categories, len(entries)]: bytes in use of each category after each entry (ascending).

    The categories add up to the bytes in use; what is older than the history and freed in it is unknown.
    """
    recorded = snapshot.history
    points, kinds = len(entries), len(CATEGORIES)
    levels = np.zeros((points, kinds), np.int64)
    start, stop = history.rows.start, history.rows.start + (int(entries[-1]) + 1 if points else 0)
    for begin in range(start, stop, _CHUNK_ENTRIES):
        chunk = slice(begin, min(begin + _CHUNK_ENTRIES, stop))
        freed, action = recorded.freed[chunk], recorded.action[chunk]
        changed = np.flatnonzero((action == ALLOC) | (freed >= 0))
        source = np.where(freed[changed] >= 0, freed[changed], begin + changed)
        size = recorded.size[source]
        size = np.where(freed[changed] >= 0, -size, size)
        category = categorize(snapshot, recorded.stack[source], recorded.label[source])
        point = np.searchsorted(entries, begin - start + changed, "left")
        np.add.at(levels.reshape(-1), point * kinds + category, size)
    np.cumsum(levels, axis=0, out=levels)
    if history.anchored:
        old = older_blocks(snapshot, device)
        sizes = requested_sizes(snapshot)[old]
        before = np.zeros(kinds, np.int64)
        np.add.at(before, categorize_blocks(snapshot, old), sizes)
        levels += before
    levels[:, UNKNOWN] += np.maximum(history.in_use[entries] - levels.sum(axis=1), 0)
    by_category: Int64 = levels.T.copy()
    return by_category
