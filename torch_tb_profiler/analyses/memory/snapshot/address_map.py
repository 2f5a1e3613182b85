"""Blocks of segments by address, reduced to as many pieces as can be shown."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from torch_tb_profiler.analyses.memory.snapshot.categories import CATEGORIES, categorize_blocks
from torch_tb_profiler.model.snapshots import AWAITING_FREE, FREE, RecordedSnapshot
from torch_tb_profiler.model.trace import Int64

KINDS = (*CATEGORIES, "free", "awaiting free", "mixed")
_FREE, _AWAITING, _MIXED = range(len(CATEGORIES), len(KINDS))


@dataclass(frozen=True)
class SegmentPieces:
    """(offset, bytes, kind) of the pieces of a segment, and the bytes of its free blocks."""

    pieces: list[tuple[int, int, str]]
    free: int
    largest_free: int


def map_segments(snapshot: RecordedSnapshot, rows: list[int], most: int) -> list[SegmentPieces]:
    """Return the pieces of some segments, at most `most` of each."""
    return [_list_pieces(snapshot, row, most) for row in rows]


def _list_pieces(snapshot: RecordedSnapshot, row: int, most: int) -> SegmentPieces:
    blocks = snapshot.blocks
    begin, end = np.searchsorted(blocks.segment, [row, row + 1])  # the blocks of a segment are neighbors
    size, state = blocks.size[begin:end], blocks.state[begin:end]
    kind = categorize_blocks(snapshot, slice(begin, end)).astype(np.int64)
    kind[state == FREE], kind[state == AWAITING_FREE] = _FREE, _AWAITING
    starts = np.flatnonzero(np.diff(kind, prepend=-1))
    sizes = np.add.reduceat(size, starts) if len(starts) else size
    kinds = kind[starts]
    while len(sizes) > most:
        sizes, kinds = _join_neighbors(sizes, kinds, most)
    offsets = np.cumsum(sizes) - sizes
    free = size[state == FREE]
    rows = zip(offsets.tolist(), sizes.tolist(), [KINDS[code] for code in kinds.tolist()], strict=True)
    return SegmentPieces(list(rows), int(free.sum()), int(free.max(initial=0)))


def _join_neighbors(sizes: Int64, kinds: Int64, most: int) -> tuple[Int64, Int64]:
    """Join pieces that begin in the same of `most` equal parts; what joins several kinds is mixed."""
    begins = np.cumsum(sizes) - sizes
    part = begins * most // max(int(sizes.sum()), 1)
    starts = np.flatnonzero(np.diff(part, prepend=-1))
    counts = np.diff(np.append(starts, len(sizes)))
    return np.add.reduceat(sizes, starts), np.where(counts == 1, kinds[starts], _MIXED)
