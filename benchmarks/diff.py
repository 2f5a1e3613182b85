"""How quickly two large traces are compared.

    python -m benchmarks.diff [--nodes 1000000] [--rounds 3] [--distinct]

Trees of seven levels, each node with three below it, repeat from step to step; the candidate has another name in
one place of a hundred. With --distinct no two names are alike, so that nothing merges. *Prepare* derives what
other views share (operators, links); *align* makes one tree of two; *payload* is the first and a further answer
of the tab with its JSON, *part* that of a part.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial

import msgspec
import numpy as np

from torch_tb_profiler.analyses.diff.logical_tree import logical_tree
from torch_tb_profiler.analyses.diff.tree_alignment import align
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.operators import operators
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Events, Thread, Trace, TracePair
from torch_tb_profiler.views.diff import build as diff
from torch_tb_profiler.views.diff.build import build_part
from torch_tb_profiler.views.diff.payload import DiffParams, DiffPartParams

LEVELS, BELOW = 7, 3
PER_ROOT = (BELOW**LEVELS - 1) // (BELOW - 1)
ROOTS_PER_STEP = 20
NAMES = 400


def draw(count: int, changed: float, distinct: bool, seed: int) -> Trace:
    """Return a trace of `count` nested operators; names by place, a part of the places `changed`."""
    rng = np.random.default_rng(seed)
    roots = max(count // PER_ROOT, 1)
    steps = max(roots // ROOTS_PER_STEP, 1)
    length = 2 * BELOW ** (LEVELS + 3)
    start, duration, place = [], [], []
    begin = np.arange(roots, dtype=np.int64) * length
    size, where = length - 100, np.arange(roots) % ROOTS_PER_STEP if not distinct else np.arange(roots)
    for _ in range(LEVELS):
        start.append(begin)
        duration.append(np.full(len(begin), size) - rng.integers(0, 20, len(begin)))
        place.append(where)
        size = size // BELOW - 10
        begin = (begin[:, None] + 5 + np.arange(BELOW) * (size + 6)).reshape(-1)
        where = (where[:, None] * BELOW + np.arange(BELOW) + ROOTS_PER_STEP + 1).reshape(-1)
    rows = sum(map(len, start))
    at = np.concatenate(place)
    code = np.arange(rows) if distinct else (at * 2654435761 >> 7) % NAMES
    texts = [f"aten::op{i}" for i in range(int(code.max()) + 1)]
    other = np.random.default_rng(99).random(int(at.max()) + 1) < changed
    code = np.where(other[at], code + len(texts), code)
    marks = np.arange(steps, dtype=np.int64) * (length * ROOTS_PER_STEP)
    strings = ["cpu_op", "user_annotation", *texts, *(f"{text}_changed" for text in texts)]
    named = len(strings)
    strings += [f"ProfilerStep#{i}" for i in range(steps)]
    total = rows + steps
    events = Events(
        phase=np.full(total, ord("X"), np.uint8),
        category=np.repeat(np.array([0, 1], np.int32), [rows, steps]),
        name=np.concatenate([code + 2, named + np.arange(steps)]).astype(np.int32),
        thread=np.zeros(total, np.int32),
        start=np.concatenate([*start, marks]),
        duration=np.concatenate([*duration, np.full(steps, length * ROOTS_PER_STEP)]),
        id=np.full(total, ABSENT),
    )
    assert NO_CODE not in events.name
    return Trace(events, strings, [Thread(1, 1)], (), {}, {}, 0, 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--distinct", action="store_true")
    options = parser.parse_args()
    times: dict[str, list[float]] = {}

    def timed(name: str, run: Callable[[], object]) -> object:
        begin = time.perf_counter()
        result = run()
        times.setdefault(name, []).append(time.perf_counter() - begin)
        return result

    for _ in range(options.rounds):
        pair = compare(timed, options.nodes, options.distinct)
    tree = align(pair)
    before, now = (len(logical_tree(side[0])) for side in (pair.base, pair.candidate))
    print(f"{before:,} and {now:,} nodes, {len(tree):,} aligned")
    for name, seconds in times.items():
        print(f"{name:22} {statistics.median(seconds):7.2f} s")


def compare(timed: Callable[[str, Callable[[], object]], object], nodes: int, distinct: bool) -> TracePair:
    """Time each step of the comparison of two new traces."""
    base, candidate = draw(nodes, 0.0, distinct, 1), draw(nodes, 0.01, distinct, 2)
    for trace in (base, candidate):
        timed("prepare (a side)", partial(prepare, trace))
    pair = TracePair([base], [candidate])
    timed("timelines and align", lambda: align(pair))
    timed("payload, first", lambda: msgspec.json.encode(diff.build(pair, DiffParams())))
    timed("payload, again", lambda: msgspec.json.encode(diff.build(pair, DiffParams())))
    timed("part", lambda: msgspec.json.encode(build_part(pair, DiffPartParams(path="0-1"))))
    return pair


def prepare(trace: Trace) -> None:
    """Derive what other views have derived before."""
    operators(trace)
    device_links(trace)


if __name__ == "__main__":
    main()
