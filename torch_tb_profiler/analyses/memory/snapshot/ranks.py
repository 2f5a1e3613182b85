"""Memory of the ranks of one job side by side, from a digest of each snapshot, and the rank that differs most."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import msgspec

from torch_tb_profiler.analyses.memory.snapshot.allocators import DeviceAllocator, device_allocators
from torch_tb_profiler.analyses.memory.snapshot.compare import state_at_peak
from torch_tb_profiler.analyses.memory.snapshot.growth import snapshot_growth
from torch_tb_profiler.analyses.memory.snapshot.history import requested_in_use
from torch_tb_profiler.analyses.memory.snapshot.modules import program_frame
from torch_tb_profiler.model.snapshots import RecordedSnapshot

MAX_SITES = 1000
"""Sites that a digest holds, largest first; the others are too small to tell ranks apart."""

MIN_DIFFERENCE_SHARE = 0.01
"""A rank differs if its peak is this share away from the median of the others."""

NO_STACK = "no stack"


class DeviceDigest(msgspec.Struct, frozen=True):
    """What a snapshot says about one device, in bytes.

    peak      most that was in use, with its `categories` and its `sites` (frame of the program -> bytes)
    live      in use when the snapshot was written; `reserved` then in segments
    leaked    by sites that may leak, None if the history has too few steps to tell
    complete  the whole file could be read
    """

    device: int
    peak: int
    live: int
    reserved: int
    out_of_memory: int
    leaked: int | None
    complete: bool
    categories: dict[str, int]
    sites: dict[str, int]


class SnapshotDigest(msgspec.Struct, frozen=True):
    """The devices of a snapshot that hold memory or have a history."""

    devices: list[DeviceDigest]


class RankDifference(msgspec.Struct, frozen=True):
    """How far a rank's peak is from the median of the others, and the site that differs most in that direction.

    index  of the rank; `bytes` may be negative
    site   None if no site differs that way; `site_bytes` of the difference are from it
    """

    index: int
    bytes: int
    median: int
    site: str | None
    site_bytes: int


def digest_snapshot(snapshot: RecordedSnapshot) -> SnapshotDigest:
    """Reduce a snapshot to what is compared among ranks."""
    used = [each for each in device_allocators(snapshot) if each.reserved or each.entries]
    return SnapshotDigest([_digest_device(snapshot, each) for each in used])


def _digest_device(snapshot: RecordedSnapshot, allocator: DeviceAllocator) -> DeviceDigest:
    live = state_at_peak(snapshot, allocator.device, allocator.reserved).live
    growth = snapshot_growth(snapshot, allocator.device)
    sites: dict[str, int] = {}
    for stack, size, *_ in live.by_site()[:MAX_SITES]:
        name = program_frame(snapshot.stack(stack)) or NO_STACK
        sites[name] = sites.get(name, 0) + size
    return DeviceDigest(
        device=allocator.device,
        peak=live.total,
        live=requested_in_use(snapshot, allocator.device),
        reserved=allocator.reserved,
        out_of_memory=allocator.out_of_memory,
        leaked=growth.leaked if growth is not None and growth.known else None,
        complete=snapshot.facts.incomplete is None,
        categories=live.by_category(),
        sites=sites,
    )


def find_different_rank(ranks: Sequence[DeviceDigest]) -> RankDifference | None:
    """Return the rank whose peak is farthest from the median of the others; None if all are close to it."""
    found: list[RankDifference] = []
    for index, rank in enumerate(ranks):
        others = [other for other in ranks if other is not rank]
        if not others:
            return None
        median = round(statistics.median(other.peak for other in others))
        difference = rank.peak - median
        if abs(difference) < MIN_DIFFERENCE_SHARE * median or not difference:
            continue
        found.append(RankDifference(index, difference, median, *_find_different_site(rank, others, difference)))
    return max(found, key=lambda each: (abs(each.bytes), each.bytes, -each.index), default=None)


def _find_different_site(
    rank: DeviceDigest, others: Sequence[DeviceDigest], difference: int
) -> tuple[str | None, int]:
    """Return the site that differs most from the median of the others in the direction of the difference."""
    names = dict.fromkeys(name for each in (rank, *others) for name in each.sites)
    changes = {
        name: rank.sites.get(name, 0) - round(statistics.median(each.sites.get(name, 0) for each in others))
        for name in names
    }
    sign = 1 if difference > 0 else -1
    name = max(changes, key=lambda name: sign * changes[name], default=None)
    if name is None or sign * changes[name] <= 0:
        return None, 0
    return name, changes[name]
