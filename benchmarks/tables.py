"""How quickly tables of a trace of 5 million events are built: operators, kernels, idle time, path, roofline.

    python -m benchmarks.tables [--events 5000000] [--rounds 5]

The trace is that of `benchmarks.timeline`; times are of the processor. *First* derives what all tables share (call
tree, links, times per call); the median is of the further ones, as they are asked for when a filter or the
grouping changes.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import msgspec

from benchmarks.timeline import grow, sample
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.views.critical_path import build as critical_path
from torch_tb_profiler.views.critical_path.build import build_what_if
from torch_tb_profiler.views.critical_path.payload import CriticalPathParams, TargetParams
from torch_tb_profiler.views.idle import build as idle
from torch_tb_profiler.views.idle.build import build_flame
from torch_tb_profiler.views.idle.launches import (
    DeviceWorkCurveParams,
    LaunchesParams,
    SequencesParams,
    build_bandwidth,
    build_launches,
    build_queues,
    build_sequences,
)
from torch_tb_profiler.views.idle.payload import IdleParams
from torch_tb_profiler.views.kernels import build as kernels
from torch_tb_profiler.views.kernels.payload import KernelsParams
from torch_tb_profiler.views.operators import build as operators
from torch_tb_profiler.views.operators.build import build_instances, build_stacks
from torch_tb_profiler.views.operators.payload import OperatorRowParams, OperatorsParams
from torch_tb_profiler.views.roofline import build as roofline
from torch_tb_profiler.views.roofline.payload import RooflineParams


def questions(trace: Trace) -> dict[str, Callable[[], Any]]:
    """Return the requests of the pages, by name."""
    row = operators.build(trace, OperatorsParams()).rows[0].event
    callables: dict[str, Callable[[], Any]] = {
        f"operators by {group}": lambda group=group: operators.build(trace, OperatorsParams(group))
        for group in ("name", "shape", "module", "annotation")
    }
    step = operators.build(trace, OperatorsParams()).steps[0]
    callables["operators of a step"] = lambda: operators.build(trace, OperatorsParams(step=step))
    callables["operators of a phase"] = lambda: operators.build(trace, OperatorsParams(phase="backward"))
    callables["stacks of an operator"] = lambda: build_stacks(trace, OperatorRowParams(row))
    callables["durations of an operator"] = lambda: build_instances(trace, OperatorRowParams(row))
    callables["kernels by name"] = lambda: kernels.build(trace, KernelsParams())
    callables["kernels by launch"] = lambda: kernels.build(trace, KernelsParams("launch"))
    # Of idle time the first answer derives the schedule and the causes of all gaps.
    for by in ("cause", "emptied_by", "operator", "module", "frame"):
        callables[f"idle time by {by}"] = lambda by=by: idle.build(trace, IdleParams(by))
    callables["idle time, flame graph"] = lambda: build_flame(trace, IdleParams())
    callables["launches"] = lambda: build_launches(trace, LaunchesParams())
    callables["queue length"] = lambda: build_queues(trace, DeviceWorkCurveParams())
    callables["bandwidth"] = lambda: build_bandwidth(trace, DeviceWorkCurveParams())
    callables["sequences"] = lambda: build_sequences(trace, SequencesParams())
    callables["critical path"] = lambda: critical_path.build(trace, CriticalPathParams())
    callables["critical path, one what-if"] = lambda: build_what_if(trace, TargetParams("device"))
    callables["roofline by operator"] = lambda: roofline.build(trace, RooflineParams())
    return callables


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    trace = grow(sample(), options.events)
    begin = time.process_time()
    operators.build(trace, OperatorsParams())
    shared = time.process_time() - begin
    out = [
        f"{len(trace):,} events; what all tables share: {shared:.2f} s",
        "",
        "| asked | first ms | median ms | KB |",
    ]
    out.append("|---|---|---|---|")
    for name, ask in questions(trace).items():
        times = []
        size = 0
        for _ in range(options.rounds + 1):
            begin = time.process_time()
            size = len(msgspec.json.encode(ask()))
            times.append(1000 * (time.process_time() - begin))
        out.append(f"| {name} | {times[0]:.0f} | {statistics.median(times[1:]):.0f} | {size / 1e3:.0f} |")
    print("\n".join(out))


if __name__ == "__main__":
    main()
