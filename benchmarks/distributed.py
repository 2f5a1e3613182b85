"""How long it takes until all ranks of a job are compared, and how much memory, by number and size of ranks.

    python -m benchmarks.distributed --folder build/benchmark --ranks 4 16 64 --megabytes 100

The traces are `samples/ddp` grown to the wanted size, one for each rank; all ranks do the same. *Again*: a second
start, when the cache holds what the ranks were reduced to.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from benchmarks.grow import GrowingFile, read_recording, write_grown
from benchmarks.measure import Measurement, run

HERE = Path(__file__).resolve().parent
SAMPLE = next((HERE.parent / "samples" / "ddp").glob("rank0*.gz"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="for the grown files, removed afterwards")
    parser.add_argument("--ranks", type=int, nargs="+", default=[4, 16, 64])
    parser.add_argument("--megabytes", type=float, default=100.0, help="size of each rank's trace")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    recording = read_recording(SAMPLE)
    print("| ranks | GB | wall s | user s | peak memory MB | again s | page of collectives ms | payload KB |")
    print("|---|---|---|---|---|---|---|---|")
    for ranks in options.ranks:
        print(row(recording, options.folder, ranks, options.megabytes), flush=True)


def row(recording: GrowingFile, folder: Path, ranks: int, megabytes: float) -> str:
    """Return a line of the table."""
    place = Path(tempfile.mkdtemp(dir=folder))
    try:
        size = write_job(recording, place / "log" / "run", ranks, megabytes)
        first, again = (measure(place, ranks) for _ in range(2))
    finally:
        shutil.rmtree(place)
    facts = first.facts
    cells = (
        f"{ranks}",
        f"{size / 1e9:.2f}",
        f"{facts['wall']:.1f}",
        f"{facts['user']:.1f}",
        f"{first.peak_mb:.0f}",
        f"{again.facts['wall']:.2f}",
        f"{1000 * again.facts['page']:.0f}",
        f"{facts['payload'] / 1e3:.0f}",
    )
    return f"| {' | '.join(cells)} |"


def measure(place: Path, ranks: int) -> Measurement:
    """Wait until all are compared; fail if one is not."""
    script = HERE / "contestants" / "job.py"
    result = run([sys.executable, str(script), str(place / "log"), str(place / "cache")])
    assert result.facts["ranks"] == ranks, result.facts
    assert result.facts["collectives"] > 0, result.facts
    return result


def write_job(recording: GrowingFile, folder: Path, ranks: int, megabytes: float) -> int:
    """Write a trace per rank; return their bytes."""
    folder.mkdir(parents=True)
    for rank in range(ranks):
        path = folder / f"node{rank // 8}_{rank}.1700000000000.pt.trace.json"
        with path.open("w", encoding="utf-8") as out:
            write_grown(of_rank(recording, rank, ranks), megabytes, out)
    return sum(path.stat().st_size for path in folder.iterdir())


def of_rank(recording: GrowingFile, rank: int, ranks: int) -> GrowingFile:
    """Rewrite the recording as a rank of a job of that size would have made it."""
    group = {"pg_name": "0", "pg_desc": "default_pg", "pg_size": ranks, "ranks": list(range(ranks))}
    info = {"backend": "gloo", "rank": rank, "world_size": ranks, "pg_count": 1, "pg_config": [group]}
    head, count = re.subn(r'"distributedInfo": \{.*\}', f'"distributedInfo": {json.dumps(info)}', recording.head)
    assert count == 1, "the recording says nothing of its rank"
    return replace(recording, head=head)


if __name__ == "__main__":
    main()
