"""How long the diagnosis of a large hung job takes, and how much memory.

    python -m benchmarks.hangs [--ranks 10000] [--entries 2000] [--folder DIR]

Draws one flight recorder per rank of a job in which rank `ranks / 2` never calls the last all_reduce of its
tensor-parallel group, so that everybody else waits for it in turn; then runs `torch-tb-profiler view hangs` on the
folder. *CPU* is the time of all its processes, which says more than the wall clock on a machine that does other
things, too.
"""

from __future__ import annotations

import argparse
import json
import pickle
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.measure import run

TENSOR_PARALLEL = 8
CALL_SITES = 40
START_NS = 1_700_000_000_000_000_000


def draw_entries(count: int) -> list[dict[str, Any]]:
    """Return the entries of a rank: two collectives of its tensor-parallel group, one of all ranks, in turn."""
    library = {"name": "all_reduce", "filename": "/venv/lib/python3.11/site-packages/torch/c10d.py", "line": 1}
    frames = [
        [library, {"name": f"layer{site}", "filename": "/job/model.py", "line": 10 + site}]
        for site in range(CALL_SITES)
    ]
    world, group = ("0", "default_pg"), ("TP_GROUP", "tp")
    numbers = {"0": 0, "TP_GROUP": 0}
    entries: list[dict[str, Any]] = []
    for i in range(count):
        process_group = world if i % 3 == 2 else group
        name = process_group[0]
        numbers[name] += 1
        entries.append(
            {
                "frames": frames[i % CALL_SITES],
                "record_id": i,
                "pg_id": int(name != "0"),
                "process_group": process_group,
                "collective_seq_id": numbers[name],
                "p2p_seq_id": 0,
                "op_id": numbers[name],
                "profiling_name": "nccl:all_reduce",
                "time_created_ns": START_NS + i * 1_000_000,
                "input_sizes": [[1 + i % 7, 4096]],
                "input_dtypes": ["BFloat16"],
                "output_sizes": [[1 + i % 7, 4096]],
                "output_dtypes": ["BFloat16"],
                "state": "completed",
                "time_discovered_started_ns": None,
                "time_discovered_completed_ns": START_NS + i * 1_000_000 + 90_000,
                "retired": True,
                "timeout_ms": 600_000,
                "is_p2p": False,
            }
        )
    return entries


def draw_dump(entries: list[dict[str, Any]], ranks: int) -> bytes:
    """Return a dump in which places of equal length stand for the name and the members of the rank's group."""
    config = {
        "0": {"name": "0", "desc": "default_pg", "ranks": str(list(range(ranks)))},
        "TP_GROUP": {"name": "TP_GROUP", "desc": "tp", "ranks": "MEMBER, " * TENSOR_PARALLEL},
    }
    status: dict[str, dict[str, int]] = {"0": {}, "1": {}}
    content = {"version": "2.10", "pg_config": config, "pg_status": status, "entries": entries}
    return pickle.dumps(content, protocol=2)


def write_job(folder: Path, ranks: int, count: int) -> int:
    """Write the dumps of all ranks and return their size; the culprit's group lacks it in its last call."""
    entries = draw_entries(count)
    while entries[-1]["process_group"][0] == "0":
        entries = draw_entries(count := count - 1)
    finished = draw_dump(entries[:-1], ranks)
    entries[-1].update(state="scheduled", retired=False, time_discovered_completed_ns=None)
    waiting = draw_dump(entries, ranks)
    # Ranks of other groups went on to the next call of all ranks, where they wait for that group.
    last = dict(entries[-1], record_id=count, pg_id=0, process_group=("0", "default_pg"))
    number = sum(entry["process_group"][0] == "0" for entry in entries) + 1
    last.update(collective_seq_id=number, op_id=number)
    entries[-1].update(state="completed", retired=True)
    behind = draw_dump([*entries, last], ranks)
    culprit, size = ranks // 2, 0
    for rank in range(ranks):
        first = rank - rank % TENSOR_PARALLEL
        is_beside = first <= culprit < first + TENSOR_PARALLEL
        data = finished if rank == culprit else waiting if is_beside else behind
        members = "".join(f"{member:06d}, " for member in range(first, first + TENSOR_PARALLEL))
        data = data.replace(b"TP_GROUP", f"tp{first:06d}".encode())
        data = data.replace(b"MEMBER, " * TENSOR_PARALLEL, members.encode())
        size += (folder / f"nccl_trace_rank_{rank}").write_bytes(data)
    return size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=10_000)
    parser.add_argument("--entries", type=int, default=2_000)
    parser.add_argument("--folder", type=Path, help="where the dumps are drawn; they stay there")
    options = parser.parse_args()
    if options.ranks % TENSOR_PARALLEL:
        parser.error(f"--ranks must be a multiple of {TENSOR_PARALLEL}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        size = write_job(folder, options.ranks, options.entries)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        begin = time.perf_counter()
        measured = run([sys.executable, "-m", "benchmarks.contestants.hangs", str(folder)])
        seconds = time.perf_counter() - begin
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    assert measured.facts["culprit"] == options.ranks // 2, measured.facts
    print(f"{options.ranks:,} ranks x {options.entries:,} entries, {size / 1e9:.2f} GB")
    print(json.dumps({"seconds": round(seconds, 1), "cpu_s": round(cpu, 1), "peak_mb": round(measured.peak_mb)}))


if __name__ == "__main__":
    main()
