from __future__ import annotations

from tests.support.memory_traces import CALLS, memory
from tests.support.traces import draw
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.overview import build as overview


def test_nearly_full_memory_is_advised_on_whatever_the_card_is_called() -> None:
    card = [{"id": 3, "name": "MI300X", "totalGlobalMem": 1000}]
    events = memory("1 HIP0 a 950 950 999\n2 HIP0 a -950 0 999")
    payload = overview.build(draw(CALLS, *events, deviceProperties=card), NoParams())
    (advice,) = (each for each in payload.recommendations if each.id == "memory_limit")
    assert "GPU 0" in plain(advice.text) and "95" in plain(advice.text)
    assert {phrase.link for phrase in advice.text} == {None, "memory?device=GPU+0"}
    room = overview.build(draw(CALLS, *events, deviceProperties=[{**card[0], "totalGlobalMem": 2000}]), NoParams())
    assert all(each.id != "memory_limit" for each in room.recommendations)
