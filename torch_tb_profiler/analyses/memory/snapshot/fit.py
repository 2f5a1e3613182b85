"""Which batch size fits, from the peaks of two recordings with different batch sizes.

    peak = fixed + per_item * batch        through both recordings, in total and for each category

What the allocator reserves beyond what is in use can't be predicted, so the answer is an interval: with none, and
with as much unused memory as the worse of both recordings had, or as a line through both says if that is more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class MeasuredPeak:
    """A recording: its batch size, bytes in use at its peak by category, and reserved bytes beyond them."""

    batch: int
    categories: Mapping[str, int]
    unused: int

    @property
    def bytes(self) -> int:
        return sum(self.categories.values())


@dataclass(frozen=True)
class CategoryScaling:
    """Bytes of a category that don't depend on the batch, and bytes per item of it."""

    name: str
    fixed: float
    per_item: float


@dataclass(frozen=True)
class MemoryScaling:
    """How the peak grows with the batch, and the unused memory with it; `most_unused` of both recordings."""

    fixed: float
    per_item: float
    categories: tuple[CategoryScaling, ...]
    most_unused: int
    unused_fixed: float
    unused_per_item: float

    def predict(self, batch: int) -> tuple[int, int]:
        """Return the bytes that a batch needs, without unused memory and with the most that was seen."""
        used = self.fixed + self.per_item * batch
        unused = max(self.most_unused, self.unused_fixed + self.unused_per_item * batch)
        return max(round(used), 0), max(round(used + unused), 0)

    def largest_batch(self, room: int) -> tuple[int, int]:
        """Return the largest batch that fits in `room` bytes, with the most unused memory and with none."""
        high = (room - self.fixed) // self.per_item
        low = (room - self.fixed - self.most_unused) // self.per_item
        if self.unused_per_item > 0:
            grown = room - self.fixed - self.unused_fixed
            low = min(low, grown // (self.per_item + self.unused_per_item))
        return max(int(low), 0), max(int(high), 0)


def fit_batches(a: MeasuredPeak, b: MeasuredPeak) -> MemoryScaling | None:
    """Return how memory grows with the batch; None if both batches are the same or the peak doesn't grow."""
    step = b.batch - a.batch
    if not step or (b.bytes - a.bytes) * step <= 0:
        return None
    rows = []
    for name in {**a.categories, **b.categories}:
        first, second = a.categories.get(name, 0), b.categories.get(name, 0)
        per_item = (second - first) / step
        rows.append(CategoryScaling(name, first - per_item * a.batch, per_item))
    per_item = (b.bytes - a.bytes) / step
    rows.sort(key=lambda row: (-row.per_item, row.name))
    unused_per_item = (b.unused - a.unused) / step
    return MemoryScaling(
        fixed=a.bytes - per_item * a.batch,
        per_item=per_item,
        categories=tuple(rows),
        most_unused=max(a.unused, b.unused),
        unused_fixed=a.unused - unused_per_item * a.batch,
        unused_per_item=unused_per_item,
    )
