"""What it takes to find the origins of a million kernels of graph replays.

    python -m benchmarks.origins --kernels 1_000_000 --launches 5_000

A graph of 5,000 launches in layers of 25 kernels is captured once and replayed 200 times: as captured; with the
same 1% of kernels lost and 1% renamed each time; and in ten such variants. CPU time, caches empty; links of
launches, which other views derive anyway, are derived before.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np

from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.origin_records import Capture, CaptureSet, LaunchSite, OriginRecords
from torch_tb_profiler.model.origins.origins import CAPTURE, origins
from torch_tb_profiler.model.trace import ABSENT, ArgColumn, Events, Thread, Trace

LAYER = 25
"""Kernels of a layer: norms, products, attention, elementwise ones."""

KINDS = 12
"""Distinct names of kernels."""

VARIANTS = {"as captured": 0, "one variant": 1, "ten variants": 10}


def draw(kernels: int, launches: int, variants: int, seed: int = 1) -> Trace:
    """Draw the replays of a graph and its capture in a file beside."""
    chance = np.random.default_rng(seed)
    layer = chance.integers(0, KINDS, LAYER)
    captured = np.resize(layer, launches)
    forms = [captured]
    for _ in range(variants):
        form = captured[chance.random(launches) > 0.01]
        forms.append(np.where(chance.random(len(form)) < 0.01, KINDS, form))
    forms = forms[1:] or forms
    replays = [forms[i % len(forms)] for i in range(kernels // launches)]
    sizes = np.array([len(each) for each in replays])
    which = np.repeat(np.arange(len(replays)), sizes)
    place = np.arange(len(which)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    calls, count = len(replays), len(which)
    begin = np.arange(calls) * 12_000 * launches
    strings = ["cuda_runtime", "kernel", "cudaGraphLaunch", *(f"kernel_{code}" for code in range(KINDS)), "other"]
    events = Events(
        phase=np.full(calls + count, ord("X"), np.uint8),
        category=np.repeat(np.array([0, 1], np.int32), [calls, count]),
        name=np.concatenate([np.full(calls, 2), 3 + np.concatenate(replays)]).astype(np.int32),
        thread=np.repeat(np.array([0, 1], np.int32), [calls, count]),
        start=np.concatenate([begin, begin[which] + 10_000 + 10_000 * place]),
        duration=np.repeat(np.array([5_000, 9_000]), [calls, count]),
        id=np.full(calls + count, ABSENT),
    )
    rows = np.arange(calls + count, dtype=np.int32)
    work = rows[calls:]
    args = {
        "correlation": ArgColumn("int", rows, np.concatenate([np.arange(calls), which]) + 1),
        "device": ArgColumn("int", work, np.zeros(count, np.int64)),
        "stream": ArgColumn("int", work, np.full(count, 7)),
    }
    sites = tuple(
        LaunchSite(f"aten::op{captured[i]}", ("Net_0", f"Layer_{i // LAYER}"), (f"model.py:{i % LAYER}",), "[[8]]")
        for i in range(launches)
    )
    names = tuple(f"kernel_{code}" for code in captured.tolist())
    capture = Capture("capture", None, names, tuple(range(launches)))
    records = OriginRecords(CaptureSet(sites, (capture,)))
    return Trace(events, strings, [Thread(1, 1), Thread(0, 7)], (), args, {}, 0, 0, origin_records=records)


def measure(kernels: int, launches: int, variants: int) -> tuple[float, float]:
    """Return (CPU seconds for all origins, share of kernels whose operator is known)."""
    trace = draw(kernels, launches, variants)
    device_links(trace)
    begin = time.process_time()
    found = origins(trace)
    seconds = time.process_time() - begin
    return seconds, float(((found.operator >= 0) & (found.how == CAPTURE)).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kernels", type=int, default=1_000_000)
    parser.add_argument("--launches", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    for name, variants in VARIANTS.items():
        results = [measure(options.kernels, options.launches, variants) for _ in range(options.rounds)]
        print(
            f"{name:14} {statistics.median(seconds for seconds, _ in results):6.2f} s, {results[0][1]:.1%} known"
        )


if __name__ == "__main__":
    main()
