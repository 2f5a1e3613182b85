"""Tests of recorded clocks: which counters are clocks, of which device, and their mean while it worked."""

from __future__ import annotations

from typing import Any

import pytest

from tests.model.work.operator_events import kernel
from tests.support.traces import read
from torch_tb_profiler.model.hardware.clocks import RecordedClock, recorded_clocks


def sample(
    at: float, value: float, name: str = "SM Clock [MHz]", key: str = "value", **more: Any
) -> dict[str, Any]:
    return {"ph": "C", "name": name, "pid": "GPU 0 Counters", "tid": 0, "ts": at, "args": {key: value}, **more}


WORK = [kernel("gemm", 100, 50, 1), kernel("gemm", 250, 50, 2)]  # from 100 to 300


def test_the_clock_is_the_mean_while_the_device_worked() -> None:
    """1000 holds for 100 of 200, 2000 for 60, 500 for 40; samples outside that time don't count."""
    samples = [sample(10, 9000), sample(90, 1000), sample(200, 2000), sample(260, 500), sample(300, 9000)]
    for order in (samples, samples[::-1]):
        (clock,) = recorded_clocks(read([*WORK, *order])).items()
        assert clock == (0, RecordedClock(1200.0, 3, "SM Clock [MHz]"))


def test_time_before_the_first_sample_does_not_count() -> None:
    assert recorded_clocks(read([*WORK, sample(200, 1000), sample(250, 2000)]))[0].mhz == 1500
    assert recorded_clocks(read([*WORK, sample(300, 1000)])) == {}


@pytest.mark.parametrize(
    ("name", "key", "value", "mhz"),
    [
        ("clocks.sm [MHz]", "value", 1830, 1830),
        ("clocks.current.graphics [MHz]", "value", 1830, 1830),
        ("GPU 0 gfx frequency (MHz)", "", 1830, 1830),
        ("GPU", "sm_clock MHz", 1830, 1830),
        ("sclk", "GHz", 1.83, 1830),
        ("SM Clock Hz", "value", 1.83e9, 1830),
        ("SM Clock", "value", 1830, None),  # without a unit
        ("clocks.mem [MHz]", "value", 1830, None),
        ("Memory Clock [MHz]", "value", 1830, None),
        ("clocks.max.sm [MHz]", "value", 1830, None),
        ("wall clock MHz", "value", 1830, None),
    ],
)
def test_compute_clocks_are_recognized_by_name_and_unit(
    name: str, key: str, value: float, mhz: float | None
) -> None:
    found = recorded_clocks(read([*WORK, sample(90, value, name, key)]))
    assert (pytest.approx(found[0].mhz) if found else None) == mhz


def test_a_clock_belongs_to_the_device_of_its_process() -> None:
    other = {**kernel("gemm", 100, 50, 3), "args": {"correlation": 3, "device": 1, "stream": 7}}
    events = [*WORK, other, sample(90, 1000), sample(90, 1500, pid="GPU 1 Counters")]
    assert {id_: clock.mhz for id_, clock in recorded_clocks(read(events)).items()} == {0: 1000, 1: 1500}
    assert recorded_clocks(read([*WORK, other, sample(90, 1000, pid=7)])) == {}
    assert recorded_clocks(read([*WORK, sample(90, 1000, pid=7)]))[0].mhz == 1000
    assert recorded_clocks(read([*WORK, sample(90, 1000, pid="GPU 3 Counters")])) == {}


def test_values_that_are_not_positive_do_not_count() -> None:
    assert (
        recorded_clocks(read([*WORK, sample(90, 1000), sample(200, 0), sample(210, float("nan"))]))[0].mhz == 1000
    )
