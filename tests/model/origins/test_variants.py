"""Replays that differ from their capture as recordings do: what is said of a kernel is right, or nothing is."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.model.origins.drawing import Event, Launch, capture, captures_of, host, kernel_origins, replay
from torch_tb_profiler.model.origin_records import CaptureSet

KINDS = ("gemm", "gemm", "layer_norm_kernel", "add_kernel", "attention", "gemm", "silu")
MODEL: tuple[Launch, ...] = tuple(
    (f"aten::op{layer}_{place}", f"Layer_{layer}", kernel)
    for layer in range(6)
    for place, kernel in enumerate(KINDS)
)
OTHER: tuple[Launch, ...] = tuple(
    (f"aten::draft{layer}_{place}", f"Draft_{layer}", kernel)
    for layer in range(6)
    for place, kernel in enumerate(("gemm", "layer_norm_kernel", "gemm", "rotary"))
)
NAMES, OTHER_NAMES = [kernel for _, _, kernel in MODEL], [kernel for _, _, kernel in OTHER]


def replayed_operators(events: list[Event], captures: CaptureSet) -> list[str | None]:
    """Return the operator that is said of each replayed kernel, in order of time."""
    rows = kernel_origins(events, captures)
    assert all(row["reason"] for row in rows if row["operator"] is None)
    return [row["operator"] for row in rows]


def wrong(found: list[str | None], truth: list[str | None]) -> list[tuple[str, str | None]]:
    assert len(found) == len(truth)
    return [(one, other) for one, other in zip(found, truth, strict=True) if one is not None and one != other]


def operators(launches: tuple[Launch, ...]) -> list[str | None]:
    return [operator for operator, _, _ in launches]


def test_two_graphs_that_run_at_once_on_two_streams() -> None:
    events = [
        *replay(NAMES, 10_000, streams=[7] * len(NAMES)),
        *replay(OTHER_NAMES, 10_003, streams=[20] * len(OTHER_NAMES)),
    ]
    work = sorted((event for event in events if event["cat"] == "kernel"), key=lambda event: event["ts"])
    streams = [event["args"]["stream"] for event in work]
    assert streams[:4] == [7, 20, 7, 20]
    left = {7: iter(operators(MODEL)), 20: iter(operators(OTHER))}
    truth = [next(left[stream]) for stream in streams]
    assert replayed_operators(events, captures_of(capture(MODEL), capture(OTHER))) == truth
    only_one = replayed_operators(events, captures_of(capture(OTHER)))
    assert [name for name, stream in zip(only_one, streams, strict=True) if stream == 7] == [None] * len(MODEL)


@pytest.mark.parametrize(("first", "last"), [(0, 24), (18, 42), (9, 33), (0, 20), (0, 15)])
def test_a_graph_whose_replay_is_recorded_in_part(first: int, last: int) -> None:
    found = replayed_operators(replay(NAMES[first:last]), captures_of(capture(MODEL), capture(OTHER)))
    assert not wrong(found, operators(MODEL)[first:last])


def test_a_capture_of_another_batch_size_never_gives_its_shapes() -> None:
    smaller = captures_of(capture(MODEL, size=16))
    around = "execute_{0}_context_0(0)_generation_{0}({0})"
    for size, shapes in ((16, [f"[[16,{number}]]" for number in range(len(MODEL))]), (24, [None] * len(MODEL))):
        rows = kernel_origins(replay(NAMES, around=around.format(size)), smaller)
        assert [row["operator"] for row in rows] == operators(MODEL)  # the program is the same
        assert [row["shapes"] for row in rows] == shapes
    # A graph of another size often runs other kernels: of these only a third is the same.
    tuned = [kernel if number % 3 == 0 else f"{kernel}_tuned" for number, kernel in enumerate(NAMES)]
    assert replayed_operators(replay(tuned), smaller) == [None] * len(NAMES)


@pytest.mark.parametrize("high", [0, 5 << 32])
def test_kernels_that_finish_in_another_order_than_their_nodes(high: int) -> None:
    chance = random.Random(3)
    places = list(range(len(NAMES)))
    chance.shuffle(places)
    events = replay([NAMES[place] for place in places], nodes=[high + 3 + place for place in places])
    truth = [operators(MODEL)[place] for place in places]
    assert replayed_operators(events, captures_of(capture(MODEL))) == truth
    without = [*events]
    for event in without:
        event["args"] = {key: value for key, value in event.get("args", {}).items() if "graph" not in key}
    assert not wrong(replayed_operators(without, captures_of(capture(MODEL))), truth)


@pytest.mark.parametrize("lost", ["correlation", "stream", "device"])
def test_kernels_without_part_of_their_arguments(lost: str) -> None:
    events = replay(NAMES)
    chance = random.Random(4)
    for event in events:
        if event["cat"] == "kernel" and chance.random() < 0.3:
            event["args"] = {key: value for key, value in event["args"].items() if key != lost}
    assert not wrong(replayed_operators(events, captures_of(capture(MODEL))), operators(MODEL))


def test_a_launch_between_two_replays_is_no_part_of_them() -> None:
    call = host("cuda_runtime", "hipLaunchKernel", 10_500, 2, correlation=99)
    kernel = host("kernel", "gemm", 10_215.0, 3, correlation=99, device=0, stream=7) | {"pid": 0, "tid": 7}
    own: dict[str, Any] = host("cpu_op", "mine::gemm", 10_499, 5)
    truth = [*operators(MODEL)]
    at = sum(10_010 + 10 * number < 10_215 for number in range(len(NAMES)))
    truth.insert(at, "mine::gemm")
    rows = kernel_origins([*replay(NAMES), own, call, kernel], captures_of(capture(MODEL)))
    assert [row["operator"] for row in rows] == truth
    assert rows[at]["how"] == "launch"
