"""A server under everyday chaos: fifteen rounds of 2,000 requests from 20 clients. Runs only with `--long`."""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

import pytest

from tests.reliability.soak import Record, soak
from tests.support.logs import write_log
from tests.support.servers.fragile import server
from tests.support.waiting import until

pytestmark = pytest.mark.long
MIB = 1 << 20


def test_soak(tmp_path: Path) -> None:
    """No answer but the named states, memory flat, nothing left open, every route asked."""
    log = write_log(tmp_path / "log", runs=8, workers=2, count=300)
    rounds, requests, clients = 15, 2000, 20
    environ = {
        "TORCH_PROFILER_CACHE_DIR": str(tmp_path / "cache"),
        "TORCH_PROFILER_CACHE_BYTES": str(20 * MIB),
        "TORCH_PROFILER_MEMORY_BYTES": str(16 * MIB),
        "TORCH_PROFILER_SMALL_FILE_BYTES": str(MIB),
        "TORCH_PROFILER_POLL_SECONDS": "0.5",
    }
    with server(log, **environ) as made:
        records = [soak(made, log, requests, clients) for _ in range(rounds)]
        assert not [defect for record in records for defect in record.defects]
        report(records)
        after = made.count_open()
        assert until(lambda: made.count_open()[0] <= records[0].files[0] + 10), (
            records[0].files,
            made.count_open(),
        )
        assert after[1] < 40
        assert not made.zombies()
        assert len(made.workers()) <= 2
        # The first round reads the files and imports the views, so it is no measure of what a round leaves behind.
        first, last = (max(record.memory) for record in (records[-2], records[-1]))
        assert last <= 1.15 * first + 20 * MIB, [max(record.memory) // MIB for record in records]
        cached = sum(entry.stat().st_size for entry in (tmp_path / "cache").iterdir())
        assert cached <= 22 * MIB


def report(records: list[Record]) -> None:
    """Print the figures of docs/reliability.md (seen with `-s`)."""
    for number, record in enumerate(records, 1):
        seconds = sorted(record.seconds)
        sys.stdout.write(
            f"\nround {number}: {len(seconds)} requests over {len(record.routes)} routes, "
            f"statuses {dict(sorted(record.statuses.items()))}, "
            f"median {statistics.median(seconds):.3f} s, 99 % {seconds[int(len(seconds) * 0.99)]:.2f} s, "
            f"memory {max(record.memory) // MIB} MiB, files {max(record.files)}, threads {max(record.threads)}\n"
        )
