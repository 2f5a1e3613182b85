"""How large and how fast the answers about many iterations of an inference engine are.

    python -m benchmarks.serving [--iterations 100000] [--folder DIR]

Draws a trace of an engine that serves requests, repeats it until it has so many iterations, opens it once, and
then asks a fresh session for each tab, whose answers are cached. *CPU* is that of the process that answers.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from tests.support.serving import Workload, serving_document
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.session import Session, open_session

VIEWS = ("overview", "serving", "idle", "critical_path", "trace", "kernels")


def write_trace(path: Path, iterations: int) -> None:
    """Write the trace of one run of an engine again and again, each later than the one before."""
    events = json.loads(serving_document(Workload(requests=150)))["traceEvents"]
    complete = [event for event in events if event["ph"] == "X"]
    count = sum(event["name"].startswith("execute_") for event in complete)
    length = max(event["ts"] + event["dur"] for event in complete)
    calls = max(event["args"].get("correlation", 0) for event in complete)
    with path.open("w", encoding="utf-8") as file:
        file.write('{"schemaVersion": 1, "traceEvents": [\n')
        for number in range(-(-iterations // count)):
            for event in complete:
                args = dict(event["args"])
                if "correlation" in args:
                    args["correlation"] += number * calls
                moved = {**event, "ts": event["ts"] + number * length, "args": args}
                file.write(json.dumps(moved) + ",\n")
        file.write('{"ph": "M", "name": "end", "pid": 1, "tid": 1, "ts": 0, "args": {}}]}\n')


def ask(session: Session, run: str, view: str) -> tuple[int, float, float]:
    """Return the answer's bytes, its wall time and its CPU time in seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    answer = session.view(view, run, wait=True)
    assert answer.payload is not None, view
    return len(answer.payload), time.perf_counter() - wall, time.process_time() - cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=100_000)
    parser.add_argument("--folder")
    options = parser.parse_args()
    folder = Path(options.folder or tempfile.mkdtemp())
    run = folder / "serving"
    run.mkdir(parents=True, exist_ok=True)
    path = run / "rank0.1.pt.trace.json"
    if not path.exists():
        write_trace(path, options.iterations)
    settings = Settings(cache_dir=str(folder / "cache"))
    for opening in ("first", "cached"):
        with open_session(str(folder), settings, own_process=True) as session:
            print(f"{opening} opening:")
            for view in VIEWS:
                size, wall, cpu = ask(session, "serving", view)
                print(f"  {view:15} {size / 1e6:8.2f} MB {wall:8.2f} s {cpu:8.2f} s of CPU")


if __name__ == "__main__":
    main()
