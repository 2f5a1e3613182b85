"""The difference between two memory snapshots by site of allocation, which adds up exactly.

Both are looked at when most is in use. A site is a stack; what was allocated before the history and freed in it is
a site of its own. A difference is split into blocks that are more and blocks that are larger:

    B - A = (blocks_B - blocks_A) * mean size in A  +  the rest
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch_tb_profiler.analyses.memory.snapshot.history import allocator_history
from torch_tb_profiler.analyses.memory.snapshot.live import MemoryInUse, live_at_end, memory_in_use
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.model.snapshots import RecordedSnapshot

SiteKind = Literal["stack", "no stack", "before the history", "other sites"]

SiteKey = tuple[SiteKind, tuple[str, ...]]
"""Kind and frames of a site."""

_PACKAGES = lazy_regex(r"^.*?(?:site|dist)-packages/")


@dataclass(frozen=True)
class SiteDifference:
    """Bytes and blocks of a site in both snapshots; `more` of the difference are blocks, `larger` their sizes.

    frames  innermost first, with paths of packages without the folder that they are installed in
    """

    kind: SiteKind
    frames: tuple[str, ...]
    base_bytes: int
    bytes: int
    base_blocks: int
    blocks: int

    @property
    def difference(self) -> int:
        return self.bytes - self.base_bytes

    @property
    def more(self) -> int:
        if not self.base_blocks:
            return self.difference
        return (self.blocks - self.base_blocks) * self.base_bytes // self.base_blocks

    @property
    def larger(self) -> int:
        return self.difference - self.more


@dataclass(frozen=True)
class PeakState:
    """What is in use on a device when most is, after `entry` (None: without a history), and what is reserved."""

    live: MemoryInUse
    entry: int | None
    reserved: int


def state_at_peak(snapshot: RecordedSnapshot, device: int, reserved: int) -> PeakState:
    """Return the state at the peak of the history, of a file without one the state of the snapshot itself.

    reserved  bytes in segments of the snapshot itself
    """
    history = allocator_history(snapshot, device)
    entry = history.peak
    if entry is None:
        return PeakState(live_at_end(snapshot, device), None, reserved)
    return PeakState(memory_in_use(snapshot, device, history, entry), entry, history.reserved_at(entry))


def compare_sites(
    base: RecordedSnapshot, base_live: MemoryInUse, snapshot: RecordedSnapshot, live: MemoryInUse, limit: int
) -> list[SiteDifference]:
    """Return the sites by the size of their difference; beyond `limit` they are one row, so that all add up."""
    of_base, of_other = _sum_sites(base, base_live), _sum_sites(snapshot, live)
    none = (0, 0)
    rows = [
        SiteDifference(kind, frames, base_bytes, size, base_blocks, blocks)
        for (kind, frames) in of_base.keys() | of_other.keys()
        for base_bytes, base_blocks in (of_base.get((kind, frames), none),)
        for size, blocks in (of_other.get((kind, frames), none),)
    ]
    rows.sort(key=lambda row: (-abs(row.difference), row.frames, row.kind))
    rest = rows[limit:]
    if not rest:
        return rows
    other = SiteDifference(
        "other sites",
        (),
        sum(row.base_bytes for row in rest),
        sum(row.bytes for row in rest),
        sum(row.base_blocks for row in rest),
        sum(row.blocks for row in rest),
    )
    return [*rows[:limit], other]


def _sum_sites(snapshot: RecordedSnapshot, live: MemoryInUse) -> dict[SiteKey, tuple[int, int]]:
    """Return (bytes, blocks) by kind and frames of each site."""
    sites: dict[SiteKey, tuple[int, int]] = {}
    for stack, size, blocks, _ in live.by_site():
        frames = tuple(_PACKAGES.sub("", frame) for frame in snapshot.stack(stack))
        key: SiteKey = ("stack" if frames else "no stack", frames)
        known = sites.get(key, (0, 0))
        sites[key] = known[0] + size, known[1] + blocks
    if live.older:
        sites["before the history", ()] = live.older, 0
    return sites
