"""What it takes to open a large database of rocprofv3 and large `.pftrace` of it and of PyTorch.

    python -m benchmarks.producers --folder build/benchmark --megabytes 1000 [--only NAME] [--what "parsed alone"]

Each is drawn with the writers of the tests and repeated, every time later and with calls of its own. A step of
rocprofv3's has 44,000 events.
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import run
from tests.support.producers.pftrace import field, rocprof_pftrace, varint
from tests.support.producers.pytorch_pftrace import pytorch_pftrace
from tests.support.producers.rocpd import UUID, write_rocpd
from tests.support.producers.rocprof import BOOT, RocprofRun, draw_training
from torch_tb_profiler.ingest.perfetto.protobuf import BYTES, VARINT, iterate_fields, parse_fields

_READ = """
import json, os, sys, time
from tempfile import TemporaryDirectory
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.session import Root, Session
begin, told = time.perf_counter(), 0
with TemporaryDirectory() as cache, Session([Root(sys.argv[1])], Settings(cache_dir=cache)) as session:
    session.scan()
    seen, answer, last, still = set(), session.view("overview"), begin, {}
    while answer.payload is None and answer.state.state != "failed":
        now, told = time.perf_counter(), answer.state.progress
        if told not in seen:
            seen.add(told)
            last = now
        stage = told.stage if told is not None else "starting"
        still[stage] = max(still.get(stage, 0.0), now - last)
        answer = session.view("overview", wait=True, timeout=0.05)
    wall = time.perf_counter() - begin
used = os.times()
print(json.dumps({"wall_s": wall, "user_s": used.user + used.children_user, "told": len(seen),
                  "longest_without_change_s": still, "ok": answer.payload is not None}))
"""

_PARSE = """
import json, sys, time
from pathlib import Path
from torch_tb_profiler.ingest import read_trace
path, last, longest = Path(sys.argv[1]), time.process_time(), 0.0
def report(progress):
    global last, longest
    now = time.process_time()
    last, longest = now, max(longest, now - last)
with path.open("rb") as stream:
    trace = read_trace(stream, size=path.stat().st_size, report=report)
report(None)
print(json.dumps({"events": len(trace), "user_s": time.process_time(), "longest_without_report_s": longest}))
"""

_STOP = """
import json, multiprocessing, sys, time
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.session import Root, Session
session = Session([Root(sys.argv[1])], Settings(cache_bytes=0))
session.scan()
progress = None
while progress is None or progress.events == 0:
    state = session.view("overview", wait=True, timeout=0.05).state
    assert state.state in ("waiting", "loading"), state
    progress = state.progress
begin = time.perf_counter()
session.close()
print(json.dumps({"events": progress.events, "stopped_s": time.perf_counter() - begin,
                  "alive": len(multiprocessing.active_children())}))
"""

_CALL = 1 << 21
"""Correlations from here on all take four bytes, so that they can be replaced where they lie."""

_STEP_NS = 1_000_000


def database(path: Path, size: int) -> None:
    """Repeat rows of work and of events, with ids and times moved."""
    write_rocpd(path, _one_step(draw_training(4000)))
    tables = {each: f"rocpd_{each}{UUID}" for each in ("event", "region", "kernel_dispatch", "memory_copy")}
    parts = max(size // path.stat().st_size, 1)
    with closing(sqlite3.connect(path)) as connection, connection:
        ask = connection.execute
        events, calls = ask(f"SELECT max(id), max(stack_id) FROM {tables['event']}").fetchone()
        (span,) = ask(f'SELECT max("end") - min(start) FROM {tables["region"]}').fetchone()
        moved = {"event_id": events, "stack_id": calls, "start": span, "end": span}
        for table in tables.values():
            columns = [row[1] for row in ask(f"PRAGMA table_info({table})")][1:]
            (last,) = ask(f"SELECT max(id) FROM {table}").fetchone()
            names = ", ".join(f'"{name}"' for name in columns)
            for part in range(1, parts):
                values = ", ".join(f'"{name}" + {part * moved.get(name, 0)}' if name in moved else f'"{name}"'
                                   for name in columns)  # fmt: skip
                ask(f"INSERT INTO {table} ({names}) SELECT {values} FROM {table} WHERE id <= {last}")


def _one_step(run: RocprofRun) -> RocprofRun:
    """Return all that the run records as a single step."""
    markers = [call for call in run.calls if call.message is not None and call.message.startswith("step ")]
    step = replace(markers[0], end=markers[-1].end)
    return replace(run, calls=[step, *(call for call in run.calls if call not in set(markers))])


def packets(path: Path, size: int) -> None:
    """Return the packets of one step, whose times and correlations are replaced."""
    first, *rest = [bytes(each) for _, each in parse_fields(pytorch_pftrace(_groups()))]
    moving = [each for each in rest if each[0] == 0x40]  # those that begin with a time
    with path.open("wb") as stream:
        stream.write(b"".join(field(1, each) for each in (first, *rest) if each[0] != 0x40))
        templates = []
        for packet in moving:
            time = dict(parse_fields(packet))[8]
            assert isinstance(time, int)
            body = packet[1 + len(varint(time)) :]
            mark = next((number for number in (0, 1) if varint(_CALL + number) in body), None)
            parts = body.split(varint(_CALL + mark), 1) if mark is not None else [body]
            templates.append((time, mark, parts))
        step = 0
        while stream.tell() < size:
            for time, mark, parts in templates:
                body = parts[0] if mark is None else varint(_CALL + 2 * step + mark).join(parts)
                stream.write(field(1, b"\x40" + varint(time + step * _STEP_NS) + body))
            step += 1


def rocprof_packets(path: Path, size: int) -> None:
    """Return the packets of one step with its counters, whose times and correlations are moved."""
    recorded = _one_step(draw_training(4000))
    recorded.calls = [replace(each, correlation=each.correlation + _CALL) for each in recorded.calls]
    recorded.copies = [replace(each, correlation=each.correlation + _CALL) for each in recorded.copies]
    recorded.dispatches = [replace(each, correlation=each.correlation + _CALL) for each in recorded.dispatches]
    span = max(each.end for each in recorded.calls) + 100_000
    content = rocprof_pftrace(recorded)
    at, value = np.array(_numbers(content, 0, len(content))).T
    moved, calls = value >= BOOT, (value >= _CALL) & (value < 2 * _CALL)
    bytes_ = np.frombuffer(content, np.uint8).copy()
    with path.open("wb") as stream:
        for part in range(size // len(content) + 1):
            for chosen, by, width in ((moved, span, 8), (calls, 40_000, 4)):
                for place in range(width):
                    part_ = (value[chosen] + part * by) >> 7 * place & 0x7F
                    bytes_[at[chosen] + place] = part_ | (0x80 if place < width - 1 else 0)
            stream.write(bytes_.tobytes())


def _numbers(content: bytes, at: int, end: int, path: tuple[int, ...] = ()) -> list[tuple[int, int]]:
    """Return (where, value) of the times of packets and snapshots, and of the numbers of annotations."""
    found = []
    for number, kind, value, begin in iterate_fields(content, at, end):
        inner = (*path, number)
        if kind == BYTES and inner in ((1,), (1, 11), (1, 11, 4), (1, 6), (1, 6, 1)):
            found += _numbers(content, begin, begin + value, inner)
        elif kind == VARINT and inner in ((1, 8), (1, 11, 4, 3), (1, 6, 1, 2)):
            found.append((begin - len(varint(value)), value))
    return found


def _groups() -> Sequence[Sequence[dict[str, Any]]]:
    """Return operators with what PyTorch records of them, two launches and their kernels; µs."""
    shapes = {"Input Dims": [[64, 1024], [1024, 1024]], "Input type": ["float", "float"],
              "Input Strides": [[1024, 1], [1, 1024]], "Concrete Inputs": ["", ""]}  # fmt: skip
    start = 1.79e15
    host: dict[str, Any] = {"pid": 1, "tid": 1}
    operators = [
        {**host, "cat": "cpu_op", "name": f"aten::op{number % 7}", "ts": start + 10 * number, "dur": 9.0,
         "args": {"External id": number, "Record function id": 0, "Ev Idx": number, **shapes}}
        for number in range(40)
    ]  # fmt: skip
    calls = [
        {**host, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": start + 200 * number + 1, "dur": 5.0,
         "args": {"cbid": 211, "correlation": _CALL + number}}
        for number in range(2)
    ]  # fmt: skip
    kernels = [
        {"pid": 0, "tid": 7, "cat": "kernel", "name": "gemm", "ts": start + 200 * number + 20, "dur": 150.0,
         "args": {"device": 0, "stream": 7, "correlation": _CALL + number}}
        for number in range(2)
    ]  # fmt: skip
    return operators, calls, kernels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--only", default="", help="files whose name contains this")
    parser.add_argument("--what", default="", help="what is measured, if not all")
    options = parser.parse_args()
    files = (("1_results.db", database), ("rank0.pftrace", packets), ("2_results.pftrace", rocprof_packets))
    for name, draw in files:
        if options.only not in name:
            continue
        path = options.folder / name.replace(".", "-") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            draw(path, options.megabytes * 10**6)
        print(name, f"{path.stat().st_size / 1e6:.0f} MB", flush=True)
        for what, program, target in (
            ("parsed alone", _PARSE, path),
            ("stopped", _STOP, path.parent),
            ("opened", _READ, path.parent),
        ):
            if options.what not in ("", what):
                continue
            result = run([sys.executable, "-c", program, str(target)])
            print(f"  {what}", result.facts, f"{result.peak_mb:.0f} MB at the peak", flush=True)


if __name__ == "__main__":
    main()
