"""How quickly the Memory tab answers for a trace with a million memory events.

    python -m benchmarks.memory [--events 1000000] [--rounds 5]

The trace is drawn as columns: nested operators on four threads over 100 steps, which allocate and release blocks
of two devices at 50,000 addresses. *First* derives what the answers share (blocks, their operators); the median is
of the further ones, as they are asked for when a range, an instant or the order changes. Times include the JSON.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from torch_tb_profiler.model.trace import ABSENT, NO_CODE, ArgColumn, Events, Thread, Trace
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views.memory.build import build
from torch_tb_profiler.views.memory.curve import MemoryCurveParams, build_curve
from torch_tb_profiler.views.memory.tables import (
    EventsParams,
    LiveParams,
    MemoryOperatorsParams,
    build_events,
    build_live,
    build_operators,
)

THREADS = 4
STEPS = 100
ADDRESSES = 50_000
CALLS_PER_EVENT = 0.5
NAMES = [f"aten::op{i}" for i in range(200)]


def draw(count: int) -> Trace:
    """Return a trace of `count` memory events and half as many operators; two nest in each third one."""
    rng = np.random.default_rng(7)
    roots = int(count * CALLS_PER_EVENT) // 3
    begin = np.arange(roots, dtype=np.int64) * 3_000
    start = np.concatenate([begin, begin + 100, begin + 1_500])
    duration = np.concatenate([np.full(roots, 2_900), np.full(roots, 1_300), np.full(roots, 1_300)])
    thread = np.tile(np.arange(roots) % THREADS, 3)
    length = 3_000 * roots // STEPS
    steps = np.arange(STEPS, dtype=np.int64) * length
    at = np.sort(rng.integers(0, 3_000 * roots, count))
    address, size = _moves(rng, count)
    device = address % 2
    totals = np.zeros(count, np.int64)
    for which in (0, 1):
        totals[device == which] = 10**9 + np.cumsum(size[device == which])
    strings = ("cpu_op", "cpu_instant_event", "user_annotation", "[memory]", *NAMES,
               *(f"ProfilerStep#{i}" for i in range(STEPS)))  # fmt: skip
    names = rng.integers(4, 4 + len(NAMES), 3 * roots)
    calls, first = 3 * roots, 3 * roots + STEPS
    rows = np.arange(first, first + count, dtype=np.int32)
    columns = {
        "Device Type": device, "Device Id": device - 1, "Addr": address, "Bytes": size,
        "Total Allocated": totals, "Total Reserved": np.full(count, 2 * 10**9),
    }  # fmt: skip
    events = Events(
        phase=np.concatenate([np.full(first, ord("X")), np.full(count, ord("i"))]).astype(np.uint8),
        category=np.repeat([0, 2, 1], [calls, STEPS, count]).astype(np.int32),
        name=np.concatenate([names, 4 + len(NAMES) + np.arange(STEPS), np.full(count, 3)]).astype(np.int32),
        thread=np.concatenate([thread, np.zeros(STEPS), (at // 3_000) % THREADS]).astype(np.int32),
        start=np.concatenate([start, steps, at]),
        duration=np.concatenate([duration, np.full(STEPS, length), np.full(count, ABSENT)]),
        id=np.full(first + count, ABSENT),
    )
    args = {key: ArgColumn("int", rows, values) for key, values in columns.items()}
    return Trace(events, strings, tuple(Thread(1, i) for i in range(THREADS)), (), args, {}, 0, 0)


def _moves(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (addresses, sizes): each address is allocated and released in turn."""
    address = rng.integers(0, ADDRESSES, count)
    order = np.argsort(address, kind="stable")
    bounds = np.flatnonzero(np.diff(address[order], prepend=NO_CODE))
    turn = np.arange(count) - np.repeat(bounds, np.diff(np.append(bounds, count)))
    sizes = 512 * (1 + rng.integers(0, 4096, count))
    ordered = np.where(turn % 2 == 0, sizes, 0)
    ordered[1:] -= np.where(turn[1:] % 2 == 1, sizes[:-1], 0)
    size = np.empty(count, np.int64)
    size[order] = ordered
    return address, size


def questions(trace: Trace) -> dict[str, Callable[[], Any]]:
    """Return the requests of the page in its order; each of a trace whose shared tables exist."""
    middle = int(trace.events.start.max()) // 2
    part = {"begin": middle, "end": middle + 10**8}
    return {
        "curve, whole": lambda: build_curve(trace, MemoryCurveParams(points=1500)),
        "first page of blocks": lambda: build_events(trace, EventsParams(limit=100)),
        "the tab itself": lambda: build(trace, NoParams()),
        "curve, a part": lambda: build_curve(trace, MemoryCurveParams(points=1500, **part)),
        "live at the peak, by operator": lambda: build_live(trace, LiveParams()),
        "live at an instant, by size": lambda: build_live(
            trace, LiveParams(at=middle, group_by="size", limit=100)
        ),
        "operators": lambda: build_operators(trace, MemoryOperatorsParams()),
        "operators of a range": lambda: build_operators(trace, MemoryOperatorsParams(**part)),
        "blocks by operator": lambda: build_events(trace, EventsParams(sort="operator", limit=100)),
        "blocks by duration, page 1000": lambda: build_events(
            trace, EventsParams(sort="duration", first=100_000, limit=100)
        ),
        "blocks, searched": lambda: build_events(trace, EventsParams(search="op17", limit=100)),
        "blocks of a range": lambda: build_events(trace, EventsParams(limit=100, **part)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    trace = draw(options.events)
    out = [
        f"{options.events:,} memory events in a trace of {len(trace):,}",
        "",
        "| asked | first ms | median ms |",
    ]
    out.append("|---|---|---|")
    for name, ask in questions(trace).items():
        times = []
        for _ in range(options.rounds + 1):
            begin = time.perf_counter()
            msgspec.json.encode(ask())
            times.append(1000 * (time.perf_counter() - begin))
        out.append(f"| {name} | {times[0]:.0f} | {statistics.median(times[1:]):.0f} |")
    print("\n".join(out))


if __name__ == "__main__":
    main()
