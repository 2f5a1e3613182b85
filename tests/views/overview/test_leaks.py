from __future__ import annotations

import pytest

from tests.support.memory_traces import STEPS, five_steps, memory
from tests.support.traces import draw
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.overview.build import build

GROWING = "\n".join(f"{100 * i + 15} GPU0 {'abcde'[i - 1]} 300 {300 * i - 300} 4096" for i in range(2, 6))


def of_card(capacity: int) -> Trace:
    """Draw steps of which each keeps 300 bytes more, 1,200 in the end."""
    return draw(STEPS, *memory(GROWING), deviceProperties=[{"id": 0, "name": "card", "totalGlobalMem": capacity}])


def test_a_leak_is_seen_on_the_overview_with_the_steps_that_are_left() -> None:
    explanation = build(of_card(4200), NoParams()).explanation
    assert plain(explanation).endswith(
        "Memory may leak: it grows by 300 B per step, which would fill GPU 0 in at most 10 more steps."
    )
    assert "memory?device=GPU+0&table=growth" in {phrase.link for phrase in explanation}


@pytest.mark.parametrize("room", [1, 299, 300])
def test_the_last_step_that_fits_is_counted_in_part(room: int) -> None:
    """It "fills in at most" that many: with room for less than another step, the next one fills it."""
    assert plain(build(of_card(1200 + room), NoParams()).explanation).endswith("in at most 1 more step.")


@pytest.mark.parametrize("trace", [five_steps(), of_card(1200)])
def test_without_the_size_of_the_device_or_room_on_it_no_steps_are_counted(trace: Trace) -> None:
    assert plain(build(trace, NoParams()).explanation).endswith("Memory may leak: it grows by 300 B per step.")


def test_memory_that_comes_back_is_not_spoken_of() -> None:
    released = (
        GROWING
        + "\n590 GPU0 e -300 900 4096\n591 GPU0 d -300 600 4096\n592 GPU0 c -300 300 4096\n593 GPU0 b -300 0 4096"
    )
    assert "Memory" not in plain(build(draw(STEPS, *memory(released)), NoParams()).explanation)
