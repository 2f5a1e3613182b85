"""Two snapshots by site, with differences that add up, and what will fit, only where two recordings show it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.snapshots import entry, frame
from tests.views.memory.test_snapshot_failures import BASE, FORWARD, MIB, STEP, draw_segment
from tests.views.memory.test_snapshot_history import read
from torch_tb_profiler.analyses.memory.snapshot.fit import MeasuredPeak, fit_batches
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.ingest.memory.snapshot import as_trace
from torch_tb_profiler.model.snapshots import RecordedSnapshot
from torch_tb_profiler.model.trace import Trace, TracePair
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.memory.snapshot.compare import (
    FitParams,
    MemoryFit,
    SnapshotComparison,
    SnapshotPairParams,
    build_comparison,
    build_fit,
)

EMBEDDING = [frame("embedding", 40, "/home/a/lib/site-packages/models/embedding.py")]
ON_ANOTHER_HOST = [frame("embedding", 40, "/opt/python/dist-packages/models/embedding.py")]


def peaking(*allocations: tuple[int, list[Any]], older: int = 0, oom: int | None = None) -> RecordedSnapshot:
    """Return a snapshot whose history allocates (MiB, stack), in this order, and frees all of it again."""
    entries = [
        entry("alloc", size * MIB, number, stack, addr=BASE + number * 2**32)
        for number, (size, stack) in enumerate(allocations)
    ]
    if oom is not None:
        entries.append(entry("oom", 900 * MIB, 50, FORWARD, device_free=oom * MIB))
    if older:
        entries.append(entry("free_completed", older * MIB, 60, STEP, addr=BASE + 2**40))
    entries += [
        entry("free_completed", size * MIB, 100 + number, stack, addr=BASE + number * 2**32)
        for number, (size, stack) in enumerate(allocations)
    ]
    return read({"segments": [draw_segment([(400, None)])], "device_traces": [entries]})


def pair(base: RecordedSnapshot, candidate: RecordedSnapshot) -> TracePair:
    return TracePair([as_trace(base)], [as_trace(candidate)])


def compare(base: RecordedSnapshot, candidate: RecordedSnapshot, **params: Any) -> SnapshotComparison:
    return build_comparison(pair(base, candidate), SnapshotPairParams(**params))


A = peaking((10, FORWARD), (10, FORWARD), (30, STEP), (5, EMBEDDING), (2, []), older=7)
B = peaking((20, FORWARD), (20, FORWARD), (20, FORWARD), (30, STEP), (90, ON_ANOTHER_HOST), (1, []))


def test_the_sites_add_up_to_the_difference_of_the_peaks() -> None:
    found = compare(A, B)
    assert (found.base_bytes, found.candidate_bytes) == (64 * MIB, 181 * MIB)
    assert found.peak_difference_bytes == sum(site.bytes for site in found.sites) == 117 * MIB
    assert [(site.kind, site.bytes // MIB) for site in found.sites] == [
        ("stack", 85), ("stack", 40), ("before the history", -7), ("no stack", -1), ("stack", 0)
    ]  # fmt: skip
    forward = found.sites[1]
    assert (forward.more_bytes, forward.larger_bytes) == (10 * MIB, 30 * MIB)  # one more, each twice as large
    assert all(site.more_bytes + site.larger_bytes == site.bytes for site in found.sites)
    assert found.sites[0].base_blocks == found.sites[0].candidate_blocks == 1  # one site on both machines
    assert plain(found.headline) == (
        "The peak is 117 MiB higher than in the base (64.0 MiB), 85.0 MiB of it from "
        "models/embedding.py(40): embedding."
    )


@pytest.mark.parametrize("limit", [0, 1, 3, 99])
def test_what_is_not_listed_is_one_row(limit: int) -> None:
    found = compare(A, B, limit=limit)
    assert sum(site.bytes for site in found.sites) == found.peak_difference_bytes
    assert (found.sites[-1].kind == "other sites") == (limit < 5) and len(found.sites) == min(limit + 1, 5)
    reverse = compare(B, A, limit=limit)
    assert reverse.peak_difference_bytes == -found.peak_difference_bytes
    assert plain(compare(A, A).headline) == "Both peaks are 64.0 MiB."


def test_a_trace_is_no_snapshot() -> None:
    trace = as_trace(A)
    with pytest.raises(NotFoundError, match="a trace"):
        build_comparison(TracePair([Trace(trace.events, [], [], [], {}, {}, 0, 0)], [trace]), SnapshotPairParams())


def fit(base: RecordedSnapshot, candidate: RecordedSnapshot, **params: Any) -> MemoryFit:
    return build_fit(pair(base, candidate), FitParams(**params))


SMALL = peaking((100, STEP), (8 * 4, FORWARD))
LARGE = peaking((100, STEP), (8 * 8, FORWARD), oom=200)


def test_what_will_fit_follows_from_two_batch_sizes() -> None:
    found = fit(SMALL, LARGE, batch=8, other_batch=4, target=16)
    assert (found.fixed_bytes, found.bytes_per_item) == (100 * MIB, 8 * MIB)
    assert {each.name: (each.fixed_bytes // MIB, each.bytes_per_item // MIB) for each in found.categories} == {
        "activations": (0, 8), "optimizer state": (100, 0)
    }  # fmt: skip
    assert found.room_bytes == 600 * MIB  # 400 reserved and 200 free when an allocation failed
    # 268 and 236 MiB were reserved beyond what was in use: (600 - 100 - 268) / 8, and (600 - 100) / 8.
    assert (found.fits_at_least, found.fits_at_most) == (29, 62)
    assert (found.target_low_bytes, found.target_high_bytes) == (228 * MIB, 496 * MIB)
    assert "likely 29 to 62" in plain(found.headline)
    known = fit(SMALL, LARGE, batch=8, other_batch=4, device_bytes=1000 * MIB)
    assert (known.fits_at_least, known.fits_at_most, known.target_low_bytes) == (79, 112, None)


@pytest.mark.parametrize(("base", "candidate"), [((16, 70), (32, 110)), ((32, 110), (16, 70))])
def test_unused_memory_that_grows_with_the_batch_goes_on_growing(
    base: tuple[int, int], candidate: tuple[int, int]
) -> None:
    """2.5 unused bytes per item: with as much as at 32 items, 164 would fit."""
    peaks = [
        MeasuredPeak(batch, {"activations": 40 * batch, "parameters": 300}, u) for batch, u in (base, candidate)
    ]
    scaling = fit_batches(*peaks)
    assert scaling is not None
    assert scaling.largest_batch(7_000) == ((7_000 - 300 - 30) // 42.5, (7_000 - 300) // 40)
    assert scaling.predict(100) == (4_300, 4_300 + 30 + 250)
    assert scaling.predict(8) == (620, 620 + 110)  # no less than was seen


@pytest.mark.parametrize(
    ("base", "candidate", "params", "reason"),
    [
        (SMALL, LARGE, {}, "pass `batch` and `other_batch`"),
        (SMALL, LARGE, {"batch": 8, "other_batch": 8}, "record a second one"),
        (SMALL, SMALL, {"batch": 8, "other_batch": 4}, "doesn't grow"),
        (LARGE, SMALL, {"batch": 8, "other_batch": 4}, "doesn't grow"),
        (
            SMALL,
            peaking((100, STEP), (90, FORWARD)),
            {"batch": 8, "other_batch": 4},
            "grows faster than the batch",
        ),
        (
            SMALL,
            read({"segments": [draw_segment([(200, FORWARD)])]}),
            {"batch": 8, "other_batch": 4},
            "no history",
        ),
    ],
)
def test_nothing_is_predicted_that_the_recordings_do_not_show(
    base: RecordedSnapshot, candidate: RecordedSnapshot, params: dict[str, int], reason: str
) -> None:
    found = fit(base, candidate, **params, device_bytes=2**40)
    assert found.fits_at_least is found.fits_at_most is found.bytes_per_item is None
    assert reason in plain(found.headline) and "fit" in found.reasons


def test_without_the_devices_memory_no_batch_is_named() -> None:
    found = fit(SMALL, peaking((100, STEP), (64, FORWARD)), batch=8, other_batch=4)
    assert found.bytes_per_item == 8 * MIB and found.fits_at_most is None and "room_bytes" in found.reasons
