from __future__ import annotations

from tests.support.memory_events import memory
from tests.support.memory_traces import CALLS, STEPS, five_steps
from tests.support.traces import draw
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.memory.build import build


def test_growth_names_the_operator_that_holds_it() -> None:
    (gpu,) = build(five_steps(), NoParams()).growth
    assert gpu.steps == ["1", "2", "3", "4", "5"]
    assert gpu.live_bytes == [0, 300, 600, 900, 1200]
    assert (gpu.growing, gpu.per_step_bytes) == (True, 300)
    (holder,) = gpu.holders
    assert (holder.name, holder.growth_bytes, holder.step_bytes, holder.blocks) == (
        "aten::relu", 1200, [0, 300, 600, 900, 1200], 4)  # fmt: skip
    assert [frame.text for frame in holder.frames] == ["train.py(7): step"]


def test_memory_that_comes_back_is_no_leak() -> None:
    steady = draw(CALLS, *memory("20 GPU0 a 512 512 0\n150 GPU0 b 8 520 0\n250 GPU0 b -8 512 0"))
    (gpu,) = build(steady, NoParams()).growth
    assert (gpu.live_bytes, gpu.growing, gpu.holders) == ([512, 520, 512], False, [])


def test_two_steps_tell_no_growth_and_the_payload_says_so() -> None:
    short = draw("host user_annotation ProfilerStep#1 0 100\nhost user_annotation ProfilerStep#2 100 100",
                 *memory("20 GPU0 a 512 512 0\n120 GPU0 b 8 520 0"))  # fmt: skip
    payload = build(short, NoParams())
    assert not payload.growth[0].growing and "4 steps" in plain(payload.reasons["growth"])


def test_unknown_growth_has_a_reason() -> None:
    payload = build(draw(STEPS, *memory("20 GPU0 a 10 - -\n120 GPU0 b 10 20 0")), NoParams())
    assert payload.growth == [] and "no totals" in plain(payload.reasons["growth"])
    assert "addresses" in plain(build(draw(STEPS, *memory("20 GPU0 - 10 10 0")), NoParams()).reasons["growth"])
    assert "growth" not in build(five_steps(), NoParams()).reasons
