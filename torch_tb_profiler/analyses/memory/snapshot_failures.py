"""Allocations that failed in a memory snapshot."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.memory.snapshot_history import AllocatorHistory
from torch_tb_profiler.model.snapshots import OUT_OF_MEMORY, RecordedSnapshot
from torch_tb_profiler.model.trace import ABSENT


class SnapshotFailure(msgspec.Struct, frozen=True):
    """A failed allocation: bytes requested, bytes free on the device (None: not recorded), and its stack."""

    entry: int
    size: int
    device_free: int | None
    stack: int


def last_failures(snapshot: RecordedSnapshot, history: AllocatorHistory, limit: int) -> list[SnapshotFailure]:
    """Return the last `limit` allocations that failed, in order of time."""
    recorded = snapshot.history
    entries = np.flatnonzero(recorded.action[history.rows] == OUT_OF_MEMORY)[-limit:]
    failures = []
    for entry in entries.tolist():
        row = history.rows.start + entry
        left = int(recorded.address[row])
        failures.append(
            SnapshotFailure(
                entry, int(recorded.size[row]), None if left == ABSENT else left, int(recorded.stack[row])
            )
        )
    return failures
