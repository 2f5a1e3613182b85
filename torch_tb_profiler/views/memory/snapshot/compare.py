"""Two memory snapshots side by side: by site, and what will fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from torch_tb_profiler.analyses.memory.snapshot.allocators import find_allocator
from torch_tb_profiler.analyses.memory.snapshot.compare import (
    PeakState,
    SiteDifference,
    SiteKind,
    compare_sites,
    state_at_peak,
)
from torch_tb_profiler.analyses.memory.snapshot.failures import last_failures
from torch_tb_profiler.analyses.memory.snapshot.fit import MeasuredPeak, MemoryScaling, fit_batches
from torch_tb_profiler.analyses.memory.snapshot.history import allocator_history
from torch_tb_profiler.analyses.tracks.sources import SourceFrame, parse_frame
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.base.format import format_bytes
from torch_tb_profiler.model.snapshots import RecordedSnapshot
from torch_tb_profiler.model.trace import Trace, TracePair
from torch_tb_profiler.view import PairView
from torch_tb_profiler.views._shared.text import Text, reason_texts, text
from torch_tb_profiler.views.memory.snapshot.words import site_name


class SnapshotPairParams(msgspec.Struct, frozen=True):
    """A device and `other`, the run to compare with, short for `base_run`.

    device  by default one that ran out of memory, else the one that reserves most
    """

    device: int | None = None
    other: str | None = None
    limit: Annotated[int, msgspec.Meta(ge=0)] = 100


class ComparedSite(msgspec.Struct, frozen=True):
    """A site of allocation, innermost frame first, and its difference in bytes, candidate less base.

    kind          stack; no stack recorded; before the history; or all other sites in one row
    more_bytes    what more or fewer blocks explain, at the mean size in the base; `larger_bytes`: the rest
    """

    kind: SiteKind
    frames: list[SourceFrame]
    bytes: int
    base_bytes: int
    candidate_bytes: int
    base_blocks: int
    candidate_blocks: int
    more_bytes: int
    larger_bytes: int


class SnapshotComparison(msgspec.Struct, frozen=True):
    """Two snapshots compared, each at its peak; the sites add up to the difference exactly.

    base_entry, candidate_entry  of the peaks in the histories, null for the state of a file without a history
    """

    headline: Text
    base_bytes: int
    candidate_bytes: int
    peak_difference_bytes: int
    base_entry: int | None
    candidate_entry: int | None
    base_categories: Mapping[str, int]
    candidate_categories: Mapping[str, int]
    sites: list[ComparedSite]
    reasons: Mapping[str, Text]


def build_comparison(pair: TracePair, params: SnapshotPairParams) -> SnapshotComparison:
    """Compare two snapshots. NotFoundError if a recording is no snapshot or lacks the device."""
    base, candidate = _build_snapshot(pair.base[0]), _build_snapshot(pair.candidate[0])
    base_state, state = _peak(base, params.device), _peak(candidate, params.device)
    sites = compare_sites(base, base_state.live, candidate, state.live, params.limit)
    difference = state.live.total - base_state.live.total
    reasons = {}
    if (base.stack_count == 1) != (candidate.stack_count == 1):
        reasons["sites"] = "only one of the snapshots has stacks, so only totals can be compared"
    elif any(each.facts.incomplete is not None for each in (base, candidate)):
        reasons["sites"] = "one of the files is incomplete, so its peak may lie in the part that is missing"
    return SnapshotComparison(
        headline=_headline(difference, base_state.live.total, state.live.total, sites),
        base_bytes=base_state.live.total,
        candidate_bytes=state.live.total,
        peak_difference_bytes=difference,
        base_entry=base_state.entry,
        candidate_entry=state.entry,
        base_categories=base_state.live.by_category(),
        candidate_categories=state.live.by_category(),
        sites=[_build_compared_site(site) for site in sites],
        reasons=reason_texts(reasons),
    )


def _build_snapshot(trace: Trace) -> RecordedSnapshot:
    if trace.snapshot is None:
        raise NotFoundError(
            "only memory snapshots can be compared here, and one of the recordings is a trace",
            hint="put snapshots of a run in a folder of their own",
        )
    return trace.snapshot


def _peak(snapshot: RecordedSnapshot, device: int | None) -> PeakState:
    allocator = find_allocator(snapshot, device)
    return state_at_peak(snapshot, allocator.device, allocator.reserved)


def _build_compared_site(site: SiteDifference) -> ComparedSite:
    return ComparedSite(
        kind=site.kind,
        frames=[parse_frame(frame) for frame in site.frames],
        bytes=site.difference,
        base_bytes=site.base_bytes,
        candidate_bytes=site.bytes,
        base_blocks=site.base_blocks,
        candidate_blocks=site.blocks,
        more_bytes=site.more,
        larger_bytes=site.larger,
    )


def _headline(difference: int, base: int, candidate: int, sites: list[SiteDifference]) -> Text:
    if not difference:
        return text("Both peaks are {size}.", size=format_bytes(candidate))
    top = max((site for site in sites if site.frames), key=lambda site: abs(site.difference), default=None)
    holder = ""
    if top is not None and top.difference * difference > 0:
        frame = site_name(top.frames)
        size, rest = format_bytes(abs(top.difference)), abs(top.difference) - abs(difference)
        more, less = ("more", "less") if difference > 0 else ("less", "more")
        holder = (
            f", {size} of it from {frame}"
            if rest <= 0
            else f": {size} {more} from {frame}, {format_bytes(rest)} {less} from other code"
        )
    return text(
        "The peak is {difference} {direction} than in the base ({base}){holder}.",
        difference=format_bytes(abs(difference)),
        direction="higher" if difference > 0 else "lower",
        base=format_bytes(base),
        holder=holder,
    )


COMPARE = PairView(
    "memory/compare",
    "Snapshots compared",
    SnapshotPairParams,
    SnapshotComparison,
    build_comparison,
    rows="sites",
)


MAX_NEGATIVE_SHARE = 0.02
"""A category whose fixed part is below 0 by more than this share of the peak doesn't grow with the batch alone."""


class FitParams(msgspec.Struct, frozen=True):
    """How the batch differs between two recordings, and the batch to predict memory for.

    batch         batch size of the candidate (or its sequence length: whatever the two differ in)
    other_batch   of the base; `other`: the run of the base, short for `base_run`
    target        a batch size to predict
    device_bytes  memory of the device; without it, the room is what a failed allocation shows
    """

    batch: Annotated[int, msgspec.Meta(ge=1)] | None = None
    other_batch: Annotated[int, msgspec.Meta(ge=1)] | None = None
    target: Annotated[int, msgspec.Meta(ge=1)] | None = None
    device: int | None = None
    other: str | None = None
    device_bytes: Annotated[int, msgspec.Meta(ge=1)] | None = None


class FitCategory(msgspec.Struct, frozen=True):
    """Bytes of a category that don't depend on the batch (fitted, may be negative), and bytes per item."""

    name: str
    fixed_bytes: int
    bytes_per_item: int


class MemoryFit(msgspec.Struct, frozen=True):
    """How the peak grows with the batch and what will fit; null where two recordings don't show it.

    room_bytes        that this process can have: of the device, or reserved + free when an allocation failed
    fits_at_least     largest batch with as much unused memory as was seen, fits_at_most: with none
    target_low_bytes  that the target needs without unused memory, target_high_bytes: with the most that was seen
    """

    headline: Text
    fixed_bytes: int | None
    bytes_per_item: int | None
    categories: list[FitCategory]
    room_bytes: int | None
    fits_at_least: int | None
    fits_at_most: int | None
    target_low_bytes: int | None
    target_high_bytes: int | None
    reasons: Mapping[str, Text]


def build_fit(pair: TracePair, params: FitParams) -> MemoryFit:
    """Fit the peaks of two recordings. NotFoundError if one is no snapshot or lacks the device."""
    base, candidate = _build_snapshot(pair.base[0]), _build_snapshot(pair.candidate[0])
    scaling, reason = _build_scaling(base, candidate, params)
    if scaling is None:
        headline = text("Can't tell what will fit: {reason}.", reason=reason)
        return MemoryFit(headline, None, None, [], None, None, None, None, None, reason_texts({"fit": reason}))
    room = (
        params.device_bytes
        or _find_available_bytes(base, params.device)
        or _find_available_bytes(candidate, params.device)
    )
    fits = None if room is None else scaling.largest_batch(room)
    target = None if params.target is None else scaling.predict(params.target)
    reasons = {}
    if room is None:
        reasons["room_bytes"] = "the memory of the device isn't recorded; pass `device_bytes`"
    return MemoryFit(
        headline=_fit_headline(scaling, room, fits),
        fixed_bytes=round(scaling.fixed),
        bytes_per_item=round(scaling.per_item),
        categories=[FitCategory(row.name, round(row.fixed), round(row.per_item)) for row in scaling.categories],
        room_bytes=room,
        fits_at_least=None if fits is None else fits[0],
        fits_at_most=None if fits is None else fits[1],
        target_low_bytes=None if target is None else target[0],
        target_high_bytes=None if target is None else target[1],
        reasons=reason_texts(reasons),
    )


def _build_scaling(
    base: RecordedSnapshot, candidate: RecordedSnapshot, params: FitParams
) -> tuple[MemoryScaling | None, str]:
    """Return how memory grows with the batch, or None and why that isn't known."""
    if params.batch is None or params.other_batch is None:
        return None, "pass `batch` and `other_batch`, the batch sizes of both recordings"
    if params.batch == params.other_batch:
        return None, "both recordings have the same batch size; record a second one"
    states = [_peak(each, params.device) for each in (base, candidate)]
    if any(state.entry is None for state in states):
        return None, "a recording has no history, so its peak isn't known; call `_record_memory_history()` first"
    if base.facts.incomplete is not None or candidate.facts.incomplete is not None:
        return None, "a file is incomplete, so its peak isn't known"
    a, b = (
        MeasuredPeak(batch, state.live.by_category(), max(state.reserved - state.live.total, 0))
        for batch, state in zip((params.other_batch, params.batch), states, strict=True)
    )
    scaling = fit_batches(a, b)
    if scaling is None:
        return None, "the peak doesn't grow with the batch size; record batch sizes that differ more"
    faster = min(scaling.categories, key=lambda row: row.fixed)
    if -faster.fixed > MAX_NEGATIVE_SHARE * max(a.bytes, b.bytes):
        return None, (
            f"memory of the category '{faster.name}' grows faster than the batch size; record two that differ in "
            "the batch size alone"
        )
    return scaling, ""


def _find_available_bytes(snapshot: RecordedSnapshot, device: int | None) -> int | None:
    """Return the bytes that the process could have when an allocation last failed; None if that isn't recorded."""
    number = find_allocator(snapshot, device).device
    for failure in last_failures(snapshot, number, allocator_history(snapshot, number), 1):
        if failure.reserved is not None and failure.device_free is not None:
            return failure.reserved + failure.device_free
    return None


def _fit_headline(scaling: MemoryScaling, room: int | None, fits: tuple[int, int] | None) -> Text:
    growth = f"{format_bytes(scaling.per_item)} per item"
    if room is None or fits is None:
        return text("The peak grows by {growth} of the batch.", growth=growth)
    low, high = fits
    if high == 0:
        return text(
            "No batch is likely to fit in {room}: {fixed} don't depend on it, and the peak grows by {growth}.",
            room=format_bytes(room),
            fixed=format_bytes(max(scaling.fixed, 0.0)),
            growth=growth,
        )
    batches = f"{low}" if low == high else f"{low} to {high}"
    return text(
        "The largest batch that fits in {room} is likely {batches}: the peak grows by {growth}.",
        room=format_bytes(room),
        batches=batches,
        growth=growth,
    )


FIT = PairView("memory/fit", "What will fit", FitParams, MemoryFit, build_fit, rows="categories")
