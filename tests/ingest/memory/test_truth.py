"""Snapshots of several sizes, from every writer and protocol, are read as their generator says that they are."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from torch_tb_profiler.ingest.memory.snapshot import read_snapshot
from torch_tb_profiler.views.memory.snapshot.build import build_snapshot
from torch_tb_profiler.views.memory.snapshot.payload import SnapshotParams

GENERATOR = Path("tools", "make_snapshot.py")
"""In the folder of real recordings: draws snapshots as PyTorch writes them, with the truth beside."""

ACTIONS = ("alloc", "free_requested", "segment_alloc", "segment_free", "oom", "snapshot", "free_completed")
"""By the codes of `model.snapshots`; a snapshot's own entry is any other action."""

CASES = [
    *(("python", protocol, 3000) for protocol in (2, 3, 4, 5)),
    ("cpp", 2, 3000),
    ("python", 4, 100),
    *(pytest.param(*case, 60_000, marks=pytest.mark.slow) for case in (("python", 4), ("cpp", 2))),
]


@pytest.mark.parametrize(("writer", "protocol", "events"), CASES)
def test_what_is_read_is_what_was_drawn(
    writer: str, protocol: int, events: int, corpus: Path, tmp_path: Path
) -> None:
    if not (corpus / GENERATOR).is_file():
        pytest.skip(f"{GENERATOR} is not in the folder of real recordings")
    file = tmp_path / "snapshot.pickle"
    options = ["--protocol", str(protocol), "--writer", writer, "--oom", "--compile-context"]
    command = [sys.executable, str(corpus / GENERATOR), str(file), str(events), *options]
    subprocess.run(command, check=True, capture_output=True)
    truth = json.loads(Path(f"{file}.json").read_text("utf-8"))
    with open(file, "rb") as stream:
        snapshot = read_snapshot(stream)
    recorded, history = snapshot.history, truth["history"]
    assert snapshot.facts.incomplete is None and snapshot.facts.skipped == 0
    counts = np.bincount(recorded.action, minlength=len(ACTIONS)).tolist()
    assert {name: count for name, count in zip(ACTIONS, counts, strict=True) if count} == history["actions"]
    assert int(recorded.size.sum()) == history["sums"]["size"]
    answer = build_snapshot(snapshot, SnapshotParams())
    (device,), state, peak = answer.devices, truth["state"], answer.peak
    assert {
        "segments": device.segments,
        "blocks": device.blocks,
        "reserved": device.reserved_bytes,
        "allocated": device.allocated_bytes,
        "awaiting": device.awaiting_bytes,
        "free": device.free_bytes,
        "requested": device.requested_bytes,
        "largest_free": device.largest_free_bytes,
    } == state
    assert peak is not None
    assert (peak.bytes, peak.entry) == (history["peak_requested_in_history"], history["peak_entry"])
    assert sum(site.bytes for site in peak.sites) == peak.bytes
    (oom,) = answer.oom
    assert (oom.requested, oom.device_free, oom.reserved) == tuple(
        truth["oom"][name] for name in ("requested", "device_free", "reserved")
    )
