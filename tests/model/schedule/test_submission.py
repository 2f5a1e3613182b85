"""How soon an item starts once nothing holds it up."""

from __future__ import annotations

from tests.model.schedule.test_blocking import launches
from tests.support.traces import draw
from torch_tb_profiler.model.schedule.items import items
from torch_tb_profiler.model.schedule.submission import Latencies, latencies


def test_what_is_typical_takes_ten_items_to_tell() -> None:
    """4 us after a launch and 2 us after the item before it are assumed of a trace that does not tell."""
    assert latencies(items(draw(launches(9, 5)))) == Latencies(launch_ns=4_000, gap_ns=2_000)
    assert latencies(items(draw(launches(10, 5)))).launch_ns == 5_000
