"""What is in use at an instant of a memory snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from torch_tb_profiler.analyses.memory.snapshot.allocators import find_allocator
from torch_tb_profiler.analyses.memory.snapshot.history import allocator_history
from torch_tb_profiler.analyses.memory.snapshot.live import live_at_end, memory_in_use
from torch_tb_profiler.analyses.memory.snapshot.steps import snapshot_steps
from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.base.format import format_bytes
from torch_tb_profiler.model.devices import device_name
from torch_tb_profiler.model.snapshots import RecordedSnapshot
from torch_tb_profiler.model.trace import ABSENT
from torch_tb_profiler.view import FileParams, FileView
from torch_tb_profiler.views._shared.text import Text, text
from torch_tb_profiler.views.memory.snapshot.build import list_sites, unknown_ratio
from torch_tb_profiler.views.memory.snapshot.payload import SnapshotModule, SnapshotSite


class InstantParams(FileParams, frozen=True):
    """A snapshot, a device in it, and an entry of its history (default: the state of the snapshot itself)."""

    device: int | None = None
    entry: Annotated[int, msgspec.Meta(ge=0)] | None = None
    limit: Annotated[int, msgspec.Meta(ge=0)] = 100


class MemoryInstant(msgspec.Struct, frozen=True):
    """What is in use on a device after an entry of a snapshot's history, in requested bytes.

    entry          null for the state of the snapshot itself; `time_us` since the epoch, null if not recorded
    step           the step that the entry is in, "" if none
    bytes          in use; `older_bytes` of it were allocated before the history and freed in it, so that only
                   their size is known
    categories     most first; they add up to `bytes`, unknown ones included, whose share is `unknown_ratio`
    modules        most first; they add up to `bytes`, those outside of modules included
    sites          most first, at most `limit` of `total_sites`; all of them add up to `bytes - older_bytes`
    """

    headline: Text
    device: int
    entry: int | None
    time_us: int | None
    step: str
    bytes: int
    older_bytes: int
    reserved_bytes: int
    categories: Mapping[str, int]
    unknown_ratio: float
    modules: list[SnapshotModule]
    total_sites: int
    sites: list[SnapshotSite]


def build_instant(snapshot: RecordedSnapshot, params: InstantParams) -> MemoryInstant:
    """Build what is in use. NotFoundError for an unknown device, UsageError for an entry that doesn't exist."""
    allocator = find_allocator(snapshot, params.device)
    device, entry = allocator.device, params.entry
    time, step, reserved = None, "", allocator.reserved
    if entry is None:
        live = live_at_end(snapshot, device)
    else:
        history = allocator_history(snapshot, device)
        if entry >= len(history):
            raise UsageError(
                f"entry {entry} isn't in the history, which has {len(history)} entries",
                hint="entries are counted from 0; leave it out for the state of the snapshot itself",
            )
        live = memory_in_use(snapshot, device, history, entry)
        reserved = history.reserved_at(entry)
        stamp = int(snapshot.history.time[history.rows.start + entry])
        time = None if stamp == ABSENT else stamp
        inside = (each.name for each in snapshot_steps(snapshot, device) if each.begin <= entry < each.end)
        step = next(inside, "")
    categories, sites = live.by_category(), live.by_site()
    return MemoryInstant(
        headline=_headline(device, entry, step, live.total, reserved),
        device=device,
        entry=entry,
        time_us=time,
        step=step,
        bytes=live.total,
        older_bytes=live.older,
        reserved_bytes=reserved,
        categories=categories,
        unknown_ratio=unknown_ratio(categories),
        modules=[SnapshotModule(*module) for module in live.by_module(snapshot)[: params.limit]],
        total_sites=len(sites),
        sites=list_sites(snapshot, sites[: params.limit]),
    )


def _headline(device: int, entry: int | None, step: str, size: int, reserved: int) -> Text:
    moment = "at the end" if entry is None else f"after entry {entry:,}"
    return text(
        "{size} in use on {device} {moment}{step}, {reserved} reserved.",
        size=format_bytes(size),
        device=device_name("CUDA", device),
        moment=moment,
        step=f" ({step})" if step else "",
        reserved=format_bytes(reserved),
    )


INSTANT = FileView(
    "memory/instant", "Memory at an instant", InstantParams, MemoryInstant, build_instant, "snapshot", rows="sites"
)
