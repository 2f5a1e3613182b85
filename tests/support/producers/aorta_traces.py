"""Draws AORTA's metrics and traces of the same process: PyTorch's with steps, rocprofv3's without."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.producers.aorta import Busy, line
from tests.support.producers.rocprof import RocprofCall, RocprofDispatch, RocprofRun, rocprof_json
from tests.support.traces import document, event

STEPS = [
    "host user_annotation ProfilerStep#3 0 1000",
    "host cpu_op aten::mm 10 50",
    "host cuda_runtime hipEventRecord 200 5",
    "host cuda_runtime hipEventRecord 700 5",
    "gpu0 kernel gemm 250 300 stream=1",
    "host user_annotation ProfilerStep#4 1000 1000",
    "gpu0 kernel gemm 1100 300 stream=1",
    "host cpu_op aten::mm 1010 50",
]
RANGES = [Busy("compute", 50, 350), Busy("allreduce", 300, 400)]


def iterations(*steps: int, total: int = 500, **more: Any) -> list[dict[str, Any]]:
    return [line(step, RANGES, total, **more) for step in steps]


def write_trace(folder: Path, events: Sequence[str] = STEPS) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "host_1.1700000000000.pt.trace.json").write_bytes(document([event(each) for each in events]))


KERNEL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)"
BEGINS = [100, 1200, 2350, 3300, 4500]
"""When each iteration of the recording of rocprofv3 began, µs."""
COLLECTIVES = [[(100, 300), (500, 620)], [(100, 340), (560, 700)], [(100, 260), (430, 600)],
               [(100, 300), (610, 740)], [(100, 320), (520, 600)]]  # fmt: skip
"""Ranges of all-reduces in each of them, µs."""


def timed_iterations(collectives: Sequence[Sequence[tuple[int, int]]] = COLLECTIVES) -> list[dict[str, Any]]:
    return [
        line(step, [Busy("compute", 0, 80), *(Busy("allreduce", *each) for each in ranges)], 800)
        for step, ranges in enumerate(collectives)
    ]


def write_capture(folder: Path, more: Sequence[int] = (), *, marked: bool = False, late: int = 0) -> None:
    """Write a recording of rocprofv3: a kernel 15 µs inside of each range, and `more` all-reduces, µs."""
    run = RocprofRun()
    times = [
        (begin + low + 15 + late * (number == 2), begin + high - 15)
        for number, (begin, ranges) in enumerate(zip(BEGINS, COLLECTIVES, strict=True))
        for low, high in ranges
    ]
    for number, (low, high) in enumerate(sorted([*times, *((at, at + 20) for at in more)]), 1):
        run.dispatches.append(RocprofDispatch(1, 1000 * low, 1000 * high, number, 1))
    if marked:
        run.calls += [
            RocprofCall(
                "MARKER_CORE_RANGE_API",
                "roctxThreadRangeA",
                1000 * at,
                1000 * (at + 900),
                100 + step,
                f"step {step}",
            )
            for step, at in enumerate(BEGINS)
        ]
    folder.mkdir(parents=True)
    (folder / "4242_results.json").write_bytes(rocprof_json(run))
