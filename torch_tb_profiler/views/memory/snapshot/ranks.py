"""Memory snapshots of the ranks of one job, side by side."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from torch_tb_profiler.analyses.memory.snapshot.categories import CATEGORIES
from torch_tb_profiler.analyses.memory.snapshot.ranks import (
    MIN_DIFFERENCE_SHARE,
    DeviceDigest,
    RankDifference,
    SnapshotDigest,
    digest_snapshot,
    find_different_rank,
)
from torch_tb_profiler.base.format import format_bytes, format_ratio, shorten_middle
from torch_tb_profiler.base.grammar import all_of, capitalize, plural
from torch_tb_profiler.model.devices import device_name
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import Members, NoParams, Reduction, RunView
from torch_tb_profiler.views._shared.text import Phrase, Text, join_phrases, link, reason_texts, sentences, text
from torch_tb_profiler.views.memory.snapshot.words import MAX_FRAME_LENGTH

MAX_LISTED_FAILURES = 4
"""Of more ranks that ran out of memory, the headline names two."""


class SnapshotRankRow(msgspec.Struct, frozen=True):
    """A device of a rank's snapshot, in bytes; `rank` is null if neither name nor file tells it.

    peak_bytes        most that was in use, split into `categories`, which add up to it
    difference_bytes  of the peak from the median of the other rows, null for the only one
    live_bytes        in use when the snapshot was written; reserved_bytes: in segments then
    leaked_bytes      by sites that may leak, null if the history has too few steps
    complete          the whole file could be read; otherwise the peak may lie in the part that is missing
    """

    worker: str
    rank: int | None
    device: int
    peak_bytes: int
    difference_bytes: int | None
    live_bytes: int
    reserved_bytes: int
    out_of_memory: int
    leaked_bytes: int | None
    complete: bool
    categories: Mapping[str, int]


class SnapshotRanks(msgspec.Struct, frozen=True):
    """The snapshots of all workers of a run, one row per device.

    failures    which ranks ran out of memory, each leading to its snapshot; empty if none did
    different   index of the row whose peak is farthest from the others', null if they are within 1%
    categories  that occur, those of most bytes first
    reasons     worker -> why it has no row
    """

    headline: Text
    failures: Text
    rows: list[SnapshotRankRow]
    different: int | None
    categories: list[str]
    reasons: Mapping[str, Text]


def reduce_snapshot(trace: Trace) -> SnapshotDigest:
    """Return the digest of a trace's snapshot, empty if it is no snapshot."""
    return SnapshotDigest([]) if trace.snapshot is None else digest_snapshot(trace.snapshot)


def build_ranks(members: Members[SnapshotDigest], _: NoParams) -> SnapshotRanks:
    """Build the table of the snapshots that have been read."""
    found: list[tuple[str, int | None, DeviceDigest]] = []
    reasons: dict[str, str] = {}
    for member in members:
        if member.result is None:
            reasons[member.worker] = member.reason or "the file is still being read"
        elif not member.result.devices:
            reasons[member.worker] = "this recording isn't a memory snapshot"
        else:
            found += [(member.worker, member.rank, device) for device in member.result.devices]
    digests = [digest for *_, digest in found]
    different = find_different_rank(digests)
    totals = {name: sum(each.categories.get(name, 0) for each in digests) for name in CATEGORIES}
    categories = sorted((name for name in totals if totals[name]), key=lambda name: -totals[name])
    failures = _failures_sentence(found)
    return SnapshotRanks(
        headline=sentences(
            failures, _headline(found, different, sum(member.result is None for member in members))
        ),
        failures=failures,
        rows=[_build_row(row, index, digests, categories) for index, row in enumerate(found)],
        different=None if different is None else different.index,
        categories=categories,
        reasons=reason_texts(reasons),
    )


def _build_row(
    found: tuple[str, int | None, DeviceDigest], index: int, digests: list[DeviceDigest], categories: list[str]
) -> SnapshotRankRow:
    import statistics

    worker, rank, digest = found
    others = [each.peak for number, each in enumerate(digests) if number != index]
    return SnapshotRankRow(
        worker=worker,
        rank=rank,
        device=digest.device,
        peak_bytes=digest.peak,
        difference_bytes=digest.peak - round(statistics.median(others)) if others else None,
        live_bytes=digest.live,
        reserved_bytes=digest.reserved,
        out_of_memory=digest.out_of_memory,
        leaked_bytes=digest.leaked,
        complete=digest.complete,
        categories={name: digest.categories.get(name, 0) for name in categories},
    )


def _headline(
    found: list[tuple[str, int | None, DeviceDigest]], different: RankDifference | None, unread: int
) -> Text:
    """Return the finding about the ranks; it speaks of those that were read if `unread` others weren't."""
    if not found:
        if unread:
            return text("No snapshot has been read yet.")
        return text("None of the recordings is a memory snapshot.")
    peaks = [digest.peak for *_, digest in found]
    if len(found) == 1:
        if unread:
            name, peak = _name(found, 0), format_bytes(peaks[0])
            return text("{rank} is the only one that was read; its peak is {peak}.", rank=name, peak=peak)
        return text("Only one snapshot was found, with a peak of {peak}.", peak=format_bytes(peaks[0]))
    if different is None:
        noun = _row_noun(found)
        share = max((max(peaks) - min(peaks)) / max(peaks), MIN_DIFFERENCE_SHARE) if max(peaks) else 0.0
        return text(
            "{ranks} peak within {share} of each other: {low} to {high}.",
            ranks=f"The {plural(len(found), noun)} that were read"
            if unread
            else capitalize(all_of(len(found), noun)),
            share=format_ratio(share, "up"),
            low=format_bytes(min(peaks)),
            high=format_bytes(max(peaks)),
        )
    others = len(found) - 1
    return text(
        "{rank} differs most{of}: its peak of {peak} is {difference} {direction} {others}{site}.",
        rank=_name(found, different.index),
        of=f" of the {len(found)} that were read" if unread else "",
        peak=format_bytes(peaks[different.index]),
        difference=format_bytes(abs(different.bytes)),
        direction="above" if different.bytes > 0 else "below",
        others="the median of the others"
        if others > 1
        else f"that of {_name(found, 1 - different.index, 'rank')}",
        site=_site_clause(different),
    )


def _site_clause(different: RankDifference) -> str:
    """Return how much of a difference is from the site that differs most; other code may offset some of it."""
    if different.site is None:
        return ""
    name, size = shorten_middle(different.site, MAX_FRAME_LENGTH), abs(different.site_bytes)
    if size <= abs(different.bytes):
        return f"; {format_bytes(size)} of the difference is from {name}"
    more, less = ("more", "less") if different.bytes > 0 else ("less", "more")
    return f"; {name} holds {format_bytes(size)} {more}, other code {less}"


def _row_noun(found: list[tuple[str, int | None, DeviceDigest]]) -> str:
    """Return what a row is: a rank, or a device where a worker has several."""
    return "rank" if len({worker for worker, *_ in found}) == len(found) else "GPU"


def _failures_sentence(found: list[tuple[str, int | None, DeviceDigest]]) -> Text:
    """Return which ranks ran out of memory; empty if none did."""
    indexes = [index for index, (*_, digest) in enumerate(found) if digest.out_of_memory]
    if not indexes:
        return ()
    failed: list[str | Phrase] = [
        Phrase(_name(found, index, "rank" if number else "Rank"), link("memory", worker=found[index][0]))
        for number, index in enumerate(indexes)
    ]
    listed = failed if len(failed) <= MAX_LISTED_FAILURES else [*failed[:2], f"{len(failed) - 2} others"]
    return text("{ranks} ran out of memory.", ranks=join_phrases(listed))


def _name(found: list[tuple[str, int | None, DeviceDigest]], index: int, noun: str = "Rank") -> str:
    """Return what a row is called: its rank, and its device where the worker has several; "rank" in a sentence."""
    worker, rank, digest = found[index]
    name = worker if rank is None else f"{noun} {rank}"
    several = sum(other == worker for other, *_ in found) > 1
    return f"{name} ({device_name('CUDA', digest.device)})" if several else name


RANKS = RunView(
    "memory/ranks",
    "Snapshots of all ranks",
    NoParams,
    SnapshotRanks,
    build_ranks,
    Reduction("memory", SnapshotDigest, reduce_snapshot, on_load=True),
)
