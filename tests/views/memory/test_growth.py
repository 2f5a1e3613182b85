from __future__ import annotations

import pytest

from tests.support.memory_events import memory
from tests.support.memory_traces import CALLS, steps_that_leave, three_steps
from tests.support.traces import draw
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views.memory.build import build


def test_growth_names_the_operator_that_holds_it() -> None:
    gpu = next(each for each in build(three_steps(), NoParams()).growth if each.device == "GPU0")
    assert gpu.steps == ["1", "2", "3"]
    assert gpu.live_bytes == [1312, 1612, 1912]
    assert (gpu.growing, gpu.per_step_bytes) == (True, 300)
    (holder,) = gpu.holders
    assert (holder.name, holder.growth_bytes, holder.step_bytes, holder.blocks) == (
        "aten::relu", 600, [0, 300, 600], 2)  # fmt: skip
    assert [frame.text for frame in holder.frames] == ["train.py(7): step"]


def test_memory_that_does_not_grow_at_every_step_is_no_leak() -> None:
    steady = draw(CALLS, *memory("20 GPU0 a 512 512 0\n150 GPU0 b 8 520 0\n250 GPU0 b -8 512 0"))
    (gpu,) = build(steady, NoParams()).growth
    assert (gpu.live_bytes, gpu.growing, gpu.holders) == ([512, 520, 512], False, [])


@pytest.mark.parametrize(
    ("sizes", "growing", "per_step"),
    [
        ((1000, 2000, 3000), True, 1000),
        ((5000, 2000, 3000, 4000), True, 1000),  # what the first step leaves goes
        ((5000, 2000, 3000), False, -1000),
        ((1000, 2000, 1500, 2500, 3500), False, 1000),
        ((1000, 2000, 2000), False, 500),
        ((10, 20, 30, 40), False, 10),  # a thousandth of the peak is no leak
    ],
)
def test_growth_is_told_from_noise(sizes: tuple[int, ...], growing: bool, per_step: int) -> None:
    (cpu,) = build(steps_that_leave(*sizes), NoParams()).growth
    assert (cpu.growing, cpu.per_step_bytes) == (growing, per_step)
    assert bool(cpu.holders) == growing
    if growing:
        assert cpu.holders[0].growth_bytes == 1000 * cpu.holders[0].blocks


@pytest.mark.parametrize(
    ("sizes", "per_step"),
    [
        ((9000, 2000, 3000, 5000), 1500),  # what the first step leaves is no part of a growth since the second
        ((1000, 2000, 3000, 9000), 1000),  # one large step does not move the median
    ],
)
def test_growth_per_step_is_the_median_since_it_began(sizes: tuple[int, ...], per_step: int) -> None:
    (cpu,) = build(steps_that_leave(*sizes), NoParams()).growth
    assert (cpu.growing, cpu.per_step_bytes) == (True, per_step)


def test_two_steps_tell_no_growth_and_the_payload_says_so() -> None:
    short = draw("host user_annotation ProfilerStep#1 0 100\nhost user_annotation ProfilerStep#2 100 100",
                 *memory("20 GPU0 a 512 512 0\n120 GPU0 b 8 520 0"))  # fmt: skip
    payload = build(short, NoParams())
    assert not payload.growth[0].growing and "3 steps" in payload.reasons["growth"]


def test_unknown_growth_has_a_reason() -> None:
    payload = build(draw(CALLS, *memory("20 GPU0 a 10 - -\n120 GPU0 b 10 20 0")), NoParams())
    assert payload.growth == [] and "no totals" in payload.reasons["growth"]
    assert "growth" not in build(three_steps(), NoParams()).reasons
