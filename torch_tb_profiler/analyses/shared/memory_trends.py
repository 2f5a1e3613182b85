"""Memory that rises from step to step although no block stays, and peaks outside of the steps.

step       1      2      3      4
live       [---]  [----] [-----] [------]    each step replaces a block by a larger one: a running concatenation
reserved   ====   =====  ======  =======     the allocator reserves more, while tensors use as much as before
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.memory_curve import MemoryLevels, device_block_mask, first_peak
from torch_tb_profiler.model.memory.blocks import has_addresses, memory_blocks
from torch_tb_profiler.model.memory.events import memory_names
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import ABSENT, Int64, Trace

MIN_RISING_STEPS = 4
"""Fewest steps after the first one, which fills caches, that show a trend."""

MIN_RISE_SHARE = 0.01
"""A rise below this share of the peak, over all steps, is not worth naming,"""

MIN_STEADY_SHARE = 0.75
"""and neither is one that happens in less than this share of the steps."""

MAX_USED_RATIO = 0.5
"""Reserved memory that rises with the most that tensors have used so far rises for their sake: that must rise by
less than this ratio. It is kept when they use less again."""


class RisingLive(msgspec.Struct, frozen=True):
    """Live memory that rises, in bytes per step, and the operator that allocates at least half of the rise.

    name  "" if that is code outside operators, None if no single one does or it isn't recorded
    stays most of what the operator adds was allocated before the last step, so it isn't replaced in each step
    """

    per_step: int
    name: str | None
    stays: bool = False


class ReservedRise(msgspec.Struct, frozen=True):
    """Bytes per step by which reserved memory rises, and by which the highest peak so far does, which is less."""

    per_step: int
    used: int


class MemoryTrends(msgspec.Struct, frozen=True):
    """How a device's memory develops over the steps, in bytes; None where it doesn't rise.

    live          rises although blocks are released
    reserved      rises, while the most that tensors have used rises much less
    peak_in_steps the highest allocated memory in steps, if the peak lies outside of them
    """

    live: RisingLive | None
    reserved: ReservedRise | None
    peak_in_steps: int | None


def memory_trends(trace: Trace, level: MemoryLevels) -> MemoryTrends:
    """Return the trends of a device; all None without recorded steps and totals."""
    recorded = steps(trace)
    if not recorded.recorded or level.relative or len(level.time) == 0:
        return MemoryTrends(None, None, None)
    ends = np.searchsorted(level.time, recorded.host_ends, "right") - 1
    per_step = _rise_per_step(level.allocated, ends)
    live = None if per_step is None else RisingLive(per_step, *_find_rising_name(trace, level, ends))
    return MemoryTrends(live, _find_reserved_rise(level, ends), _peak_in_steps(trace, level))


def _rise_per_step(values: Int64, ends: Int64) -> int | None:
    """Return the mean rise of values at the ends of the steps after the first one, None if it isn't steady."""
    if len(ends) <= MIN_RISING_STEPS or ends[0] < 0 or (values[ends] == ABSENT).any():
        return None
    at_end = values[ends]
    changes = np.diff(at_end)
    total = int(at_end[-1] - at_end[0])
    # What has stopped rising is a cache that is full.
    steady = (changes > 0).mean() >= MIN_STEADY_SHARE and bool((changes[-2:] > 0).any())
    return total // len(changes) if steady and total >= MIN_RISE_SHARE * int(values.max()) else None


def _find_reserved_rise(level: MemoryLevels, ends: Int64) -> ReservedRise | None:
    """Return how reserved memory rises, None if it doesn't or the highest peak so far rises nearly as much."""
    if (level.reserved == ABSENT).any() or not (level.reserved > 0).any():
        return None
    rise = _rise_per_step(level.reserved, ends)
    highest = np.maximum.accumulate(level.allocated)[ends]
    if rise is None or (highest == ABSENT).any():
        return None
    used = (int(highest[-1]) - int(highest[1])) / (len(ends) - 2)
    return ReservedRise(rise, round(used)) if used < MAX_USED_RATIO * rise else None


def _find_peaks_of_steps(trace: Trace, level: MemoryLevels) -> list[int]:
    """Return the highest allocated memory in each step."""
    recorded = steps(trace)
    low = np.maximum(np.searchsorted(level.time, recorded.host_starts, "right") - 1, 0)
    high = np.searchsorted(level.time, recorded.host_ends, "right")
    peaks = [
        first_peak(level.allocated, first, last) for first, last in zip(low.tolist(), high.tolist(), strict=True)
    ]
    return [peak.bytes for peak in peaks if peak is not None]


def _peak_in_steps(trace: Trace, level: MemoryLevels) -> int | None:
    peak, peaks = first_peak(level.allocated), _find_peaks_of_steps(trace, level)
    if peak is None or not peaks:
        return None
    return max(peaks) if max(peaks) < (1 - MIN_RISE_SHARE) * peak.bytes else None


def _find_rising_name(trace: Trace, level: MemoryLevels, ends: Int64) -> tuple[str | None, bool]:
    """Return the operator whose live blocks make up at least half of the rise from the second step to the last.

    Also whether most of that was allocated before the last step.
    """
    if not has_addresses(trace):
        return None, False
    blocks, (codes, texts) = memory_blocks(trace), memory_names(trace)
    mine = np.flatnonzero(device_block_mask(trace, level) & (blocks.allocation >= 0))
    code = codes[blocks.allocation[mine]]
    code = np.where(code >= 0, code, len(texts))  # outside of operators
    first, previous, last = (int(level.positions[end]) for end in (ends[1], ends[-2], ends[-1]))
    allocation, size = blocks.allocation[mine], blocks.size[mine]
    at_first, at_last = ((allocation <= at) & (blocks.end[mine] > at) for at in (first, last))
    sums = [np.bincount(code[live], size[live], minlength=len(texts) + 1) for live in (at_first, at_last)]
    rise = sums[1] - sums[0]
    top = int(rise.argmax())
    if 2 * rise[top] < level.allocated[ends[-1]] - level.allocated[ends[1]]:
        return None, False
    older = at_last & (code == top) & (allocation > first) & (allocation <= previous)
    return [*texts, ""][top], bool(2 * size[older].sum() > rise[top])
