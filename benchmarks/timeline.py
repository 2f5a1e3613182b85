"""How quickly the server answers the timeline of a trace of 1 and of 5 million events.

    python -m benchmarks.timeline [--events 1000000 5000000] [--rounds 5]
    python -m benchmarks.timeline --events 1000000 --write build/log/run/worker.pt.trace.json

The trace is grown in memory from an own sample, so nothing has to be downloaded or kept: launches and kernels are
added (the sample was recorded without a GPU), then its columns are repeated one after the other in time.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import resource
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from isal import igzip
from msgspec.structs import replace

from torch_tb_profiler.analyses.timeline import ExcerptRange
from torch_tb_profiler.analyses.timeline.excerpt import write_excerpt
from torch_tb_profiler.base.memo import Memo
from torch_tb_profiler.ingest import read_trace
from torch_tb_profiler.model.trace import ABSENT, ArgColumn, Events, Trace
from torch_tb_profiler.views import find_view

SAMPLE = Path(__file__).resolve().parent.parent / "samples" / "transformer"
WIDTH = 1600
NUMBERED = ("correlation", "External id", "Ev Idx", "Sequence number")


def sample() -> Trace:
    """Return the sample, with a launch and a kernel for every operator that would have one on a GPU."""
    (path,) = SAMPLE.glob("*.json.gz")
    document = json.loads(gzip.decompress(path.read_bytes()))
    events = document["traceEvents"]
    free = 0.0
    for number, event in enumerate(_leaves(events)):
        host, ts, duration = {"pid": event["pid"], "tid": event["tid"]}, float(event["ts"]), float(event["dur"])
        launch = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "args": {"correlation": number}}
        events.append({**launch, **host, "ts": ts, "dur": min(duration, 1.0)})
        free = max(free, ts + 10)
        stream = 20 if number % 50 == 0 else 7
        kernel = {"ph": "X", "cat": "kernel", "name": f"{event['name']}_kernel<float, {number % 7}>", "pid": 0}
        args = {"correlation": number, "device": 0, "stream": stream, "blocks per SM": 0.5 + number % 3}
        events.append({**kernel, "tid": stream, "ts": free, "dur": duration, "args": args})
        free += duration
    return read_trace(io.BytesIO(json.dumps(document).encode()))


def _leaves(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the operators in which nothing else runs."""
    operators = sorted(
        (event for event in events if event.get("cat") == "cpu_op"),
        key=lambda event: (event["tid"], event["ts"], -event["dur"]),
    )
    following = [*operators[1:], {"tid": None, "ts": 0}]
    return [
        event
        for event, after in zip(operators, following, strict=True)
        if after["tid"] != event["tid"] or after["ts"] >= event["ts"] + event["dur"]
    ]


def grow(trace: Trace, events: int) -> Trace:
    """Return the trace repeated until it has so many events; ids and correlations of the copies differ."""
    copies, count = -(-events // len(trace)), len(trace)
    copy = np.repeat(np.arange(copies, dtype=np.int64), count)
    columns: dict[str, Any] = {
        name: np.tile(getattr(trace.events, name), copies) for name in Events.__struct_fields__
    }
    span = int(trace.events.start[trace.events.start != ABSENT].max()) + 1_000_000
    for name, step in (("start", span), ("id", 1 << 32)):
        columns[name] = np.where(columns[name] != ABSENT, columns[name] + copy * step, ABSENT)
    args = {}
    for key, column in trace.args.items():
        of = np.repeat(np.arange(copies, dtype=np.int64), len(column.rows))
        values = np.tile(column.values, copies)
        if key in NUMBERED and column.kind == "int":
            values = values + (of << 32)
        rows = (np.tile(column.rows, copies) + of * count).astype(np.int32)
        args[key] = ArgColumn(column.kind, rows, values, column.dictionary)
    return replace(trace, events=Events(**columns), args=args, _memo=Memo())


class Report:
    """Rows of a Markdown table: what was asked, how long it took, how large the answer is."""

    def __init__(self, rounds: int) -> None:
        self._rounds = rounds
        print("| asked | first ms | median ms | max ms | answer KB | gzip KB |\n|---|---|---|---|---|---|")

    def ask(self, what: str, build: Callable[[int], Any]) -> Any:
        """Time one kind of question: the first, then some more of its kind."""
        times, answer, payload = [], None, b""
        for turn in range(self._rounds + 1):
            began = time.perf_counter()
            answer = build(turn)
            payload = msgspec.json.encode(answer)
            times.append((time.perf_counter() - began) * 1e3)
        middle, most = statistics.median(times[1:]), max(times[1:])
        sizes = f"{len(payload) / 1e3:.0f} | {len(igzip.compress(payload, 2)) / 1e3:.0f}"
        print(f"| {what} | {times[0]:.1f} | {middle:.1f} | {most:.1f} | {sizes} |", flush=True)
        return answer


def measure(trace: Trace, rounds: int) -> None:
    """Time every request of the page, each on a trace as the cache opens it: nothing derived yet."""
    report = Report(rounds)

    def build(slug: str, **params: object) -> Any:
        view: Any = find_view(slug)
        return view.build(trace, view.params(**params))

    whole = report.ask("tracks", lambda _: build("trace"))
    length = whole.end_ns - whole.begin_ns
    rng = np.random.default_rng(3)

    def window(share: float) -> dict[str, int]:
        width = max(1, int(length * share))
        begin = int(rng.integers(0, length - width + 1))
        return {"begin": begin, "end": begin + width}

    for share in (1, 0.3, 0.1, 0.01, 0.001, 0.00001):
        name = f"{100 * share:g}%"
        for what, slug, params in (
            ("tile", "trace/tile", {"width": WIDTH}),
            ("counters", "trace/counters", {"width": WIDTH}),
            ("headline", "trace/headline", {}),
            ("selection", "trace/selection", {"limit": 300}),
        ):

            def question(_: int, slug: str = slug, share: float = share, params: Any = params) -> Any:
                return build(slug, **window(share), **params)

            report.ask(f"{what}, {name}", question)
    slices = np.flatnonzero(trace.events.phase == ord("X"))
    report.ask("event", lambda _: build("trace/event", event=int(rng.choice(slices))))
    report.ask("flows", lambda _: build("trace/flows", event=int(rng.choice(slices))))
    report.ask("search, text", lambda _: build("trace/search", query="aten::"))
    report.ask("search, expression", lambda _: build("trace/search", query="mm.*kernel", regex=True))
    report.ask("tracks, with Python", lambda _: build("trace", python=True))
    everything = {"begin": 0, "end": length, "width": WIDTH}
    report.ask("tile, 100%, with Python", lambda _: build("trace/tile", python=True, **everything))
    report.ask("tile, 100%, by module", lambda _: build("trace/tile", color="module", **everything))
    report.ask("a device's time, 100%", lambda _: build("trace/blame", **everything))
    report.ask("a device's time, 10%", lambda _: build("trace/blame", width=WIDTH, **window(0.1)))
    moment = {"device": 0, "at": length // 3, "until": length // 3 + length // 1000}
    report.ask("a moment of a device", lambda _: build("trace/moment", **moment))
    report.ask("critical path, 100%", lambda _: build("trace/path", begin=0, end=length))
    report.ask("critical path, 1%", lambda _: build("trace/path", **window(0.01)))


def write_grown_trace(trace: Trace, path: str | Path) -> None:
    """Write all of a trace as a file, and the folders around it."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        file.writelines(write_excerpt(trace, ExcerptRange()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--events", type=int, nargs="+", default=[1_000_000, 5_000_000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", metavar="FILE", help="write the first of the traces as JSON, measure nothing")
    options = parser.parse_args()
    small = sample()
    if options.write:
        trace = grow(small, options.events[0])
        write_grown_trace(trace, options.write)
        return
    for events in options.events:
        trace = grow(small, events)
        print(f"\n{len(trace):,} events\n")
        measure(trace, options.rounds)
        print(f"\npeak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


if __name__ == "__main__":
    main()
