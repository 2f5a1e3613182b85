"""Iterations are placed by the kernels of all their collectives together, or not at all."""

from __future__ import annotations

import io
import json

import pytest

from tests.support.producers.aorta import Busy, iteration, line
from tests.support.traces import event, read
from torch_tb_profiler.ingest import read_trace
from torch_tb_profiler.model.iteration_alignment import IterationPlaces, place_iterations
from torch_tb_profiler.model.trace import Trace

BEGINS = [1000, 1700, 2500, 3400]
SEEDS = (0, 90, 30, 60)
"""How much longer collectives take in each iteration."""
KERNELS = {
    "all_gather_into_tensor": "ncclDevKernel_AllGather_RING_LL",
    "reduce_scatter_tensor": "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL",
    "all_reduce": "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
}


def metrics() -> Trace:
    lines = "".join(json.dumps(line(step, iteration(seed), 500)) + "\n" for step, seed in enumerate(SEEDS))
    return read_trace(io.BytesIO(lines.encode()), size=len(lines))


def collectives() -> list[tuple[int, Busy]]:
    return [
        (begin, each)
        for begin, seed in zip(BEGINS, SEEDS, strict=True)
        for each in iteration(seed)
        if each.function
    ]


def capture(moved: str = "", by: int = 0) -> Trace:
    """Return kernels 5 µs inside of their ranges, and a broadcast and an all-reduce before the first iteration.

    moved  the collective whose last kernel is moved, by so many µs
    """
    lines = [
        "gpu0 kernel ncclDevKernel_Broadcast 0 10 stream=1",
        f"gpu0 kernel {KERNELS['all_reduce']} 100 5 stream=1",
    ]
    last = {each.function: number for number, (_, each) in enumerate(collectives())}
    for number, (begin, each) in enumerate(collectives()):
        assert each.function
        start = begin + each.start + 5 + (by if moved == each.function and last[moved] == number else 0)
        lines.append(f"gpu0 kernel {KERNELS[each.function]} {start} {each.end - each.start - 10} stream=1")
    return read([event(each) for each in lines])


def test_the_ranges_of_all_collectives_bound_when_an_iteration_began() -> None:
    placed = place_iterations(capture(), metrics())
    assert isinstance(placed, IterationPlaces)
    assert placed.starts.tolist() == [1000 * begin for begin in BEGINS]
    assert (placed.slack_ns, placed.kernels) == (5_000 + 10_000, len(collectives()))


@pytest.mark.parametrize("moved", KERNELS)
def test_a_kernel_outside_of_its_range_refutes_the_place(moved: str) -> None:
    assert (
        place_iterations(capture(moved, 40), metrics())
        == "the kernels of the collectives don't lie in their ranges"
    )
    assert isinstance(place_iterations(capture(moved, 12), metrics()), IterationPlaces)


def test_iterations_that_would_begin_before_the_one_before_ends_have_no_place() -> None:
    lines = [json.dumps(line(step, iteration(seed), 760)) for step, seed in enumerate(SEEDS)]
    data = "\n".join(lines).encode()
    longer = read_trace(io.BytesIO(data), size=len(data))
    assert place_iterations(capture(), longer) == "the kernels of the collectives don't lie in their ranges"
