"""What lies between steps is in no average, so it is said how much that is, and what takes it."""

from __future__ import annotations

import pytest

from tests.support.traces import draw
from tests.support.views import ask, words
from torch_tb_profiler.model.trace import Trace


def draw_training(*pauses: int, inside: str = "") -> Trace:
    """Return steps of 10 ms, each followed by a pause in us; `inside`: a line of what fills it."""
    rows, start, loop = [], 0, 10_000 * len(pauses) + sum(pauses)
    rows.append(f"host python_function train.py(3):train 0 {loop}")
    for number, pause in enumerate(pauses):
        rows += [
            f"host user_annotation ProfilerStep#{number} {start} 10000",
            f"host cpu_op aten::mm {start + 10} 50",
            f"host cuda_runtime cudaLaunchKernel {start + 20} 10 correlation={number + 1}",
            f"gpu0 kernel gemm {start + 40} 9000 correlation={number + 1} stream=7",
        ]
        start += 10_000
        if inside and pause:
            rows.append(f"{inside} {start} {pause}")
        start += pause
    return draw("\n".join(rows))


SENTENCE = "Between the first step and the last, {} of the time is outside of steps ({}). "


@pytest.mark.parametrize("slug", ["overview", "idle"])
def test_an_evaluation_between_two_steps_is_named(slug: str) -> None:
    """Four steps of 10 ms, and 40 ms after the second: half of 80 ms."""
    trace = draw_training(0, 40_000, 0, 0, inside="host user_annotation evaluate")
    text = words(ask(trace, slug)["explanation"])
    assert SENTENCE.format("50%", "40.0 ms, mostly in evaluate") in text, text
    assert "It follows step 1; averages of steps don't count it." in text


def test_of_several_stretches_the_longest_is_placed() -> None:
    trace = draw_training(10_000, 20_000, 10_000, 0, inside="host user_annotation evaluate")
    text = words(ask(trace, "overview")["explanation"])
    assert SENTENCE.format("50%", "40.0 ms, mostly in evaluate") + "The longest stretch follows step 1;" in text


def test_a_pause_in_which_nothing_is_recorded_has_no_name() -> None:
    """The loop contains the pause as well, but is no cause of it."""
    assert SENTENCE.format("50%", "40.0 ms") in words(
        ask(draw_training(0, 40_000, 0, 0), "overview")["explanation"]
    )


@pytest.mark.parametrize("pauses", [(0, 0, 0, 0), (0, 1500, 0, 0), (0, 0, 0, 40_000)])
def test_little_time_between_steps_or_time_after_the_last_is_not_said(pauses: tuple[int, ...]) -> None:
    text = words(ask(draw_training(*pauses, inside="host user_annotation evaluate"), "overview")["explanation"])
    assert "outside of steps" not in text
