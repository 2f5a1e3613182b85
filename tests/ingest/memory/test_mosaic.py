"""Snapshots as Mosaic (facebookresearch/mosaic) draws and counts them: peak, allocations, compile contexts."""

from __future__ import annotations

import io
import pickle
import random
from collections import Counter
from pathlib import Path
from typing import Any, BinaryIO, cast

import pytest

from torch_tb_profiler.ingest.memory.snapshot import read_snapshot
from torch_tb_profiler.views.memory.snapshot.build import build_snapshot
from torch_tb_profiler.views.memory.snapshot.payload import SnapshotParams, SnapshotPeak

THEIRS = Path("traces", "mosaic", "output.pickle")
"""Its own test snapshot (test/snapshots/output.pickle) in the folder of real recordings."""


def draw_snapshot(seed: int) -> dict[str, Any]:
    """Draw allocations at random with `free_completed` alone and pools that are lists, as its script does."""
    dice = random.Random(seed)
    live: list[int] = []
    entries = []
    for time in range(1000):
        frees = bool(live) and dice.random() < 0.48
        address = live.pop(dice.randrange(len(live))) if frees else dice.randrange(1, 1 << 16) << 9
        if not frees and address in live:
            continue
        live += [] if frees else [address]
        entries.append(
            {"action": "free_completed" if frees else "alloc", "addr": address, "size": dice.randrange(1, 10**8),
             "stream": 0, "time_us": time, "compile_context": f"context{dice.randrange(1, 4)}",
             "frames": [{"filename": "/path/to/foo.py", "line": dice.randrange(9), "name": "bar"}]}
        )  # fmt: skip
    return {"segments": [], "device_traces": [entries], "external_annotations": []}


def count_as_mosaic(entries: list[dict[str, Any]]) -> tuple[int, int, int, Counter[str]]:
    """Return the first maximum: bytes, entry, allocations in use, and bytes by compile context."""
    live: dict[int, tuple[int, str]] = {}
    now, best = 0, (0, 0, 0, Counter[str]())
    for number, each in enumerate(entries):
        if each["action"] == "alloc":
            live[each["addr"]] = each["size"], each["compile_context"]
            now += each["size"]
        elif each["action"] == "free_completed" and each["addr"] in live:
            now -= live.pop(each["addr"])[0]
        if now > best[0]:
            contexts = Counter[str]()
            for size, context in live.values():
                contexts[context] += size
            best = now, number, len(live), contexts
    return best


def read_peak(content: bytes) -> SnapshotPeak:
    peak = build_snapshot(read_snapshot(cast(BinaryIO, io.BytesIO(content))), SnapshotParams()).peak
    assert peak is not None
    return peak


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("protocol", [2, 5])
def test_peak_and_contexts_are_those_that_mosaic_counts(seed: int, protocol: int) -> None:
    value = draw_snapshot(seed)
    size, entry, allocations, contexts = count_as_mosaic(value["device_traces"][0])
    peak = read_peak(pickle.dumps(value, protocol))
    assert (peak.bytes, peak.entry, sum(site.blocks for site in peak.sites)) == (size, entry, allocations)
    assert peak.compile_contexts == contexts


def test_its_own_test_snapshot(corpus: Path) -> None:
    file = corpus / THEIRS
    if not file.is_file():
        pytest.skip(f"{THEIRS} is not in the folder of real recordings")
    peak = read_peak(file.read_bytes())
    assert (peak.bytes, peak.entry, sum(site.blocks for site in peak.sites)) == (2_255_398_132, 999, 40)
    assert peak.compile_contexts == {"context2": 1_212_434_191, "context1": 528_274_631, "context3": 514_689_310}
