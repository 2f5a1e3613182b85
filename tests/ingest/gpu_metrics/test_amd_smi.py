"""Samples of amd-smi become counters; their times count from the epoch."""

from __future__ import annotations

import pytest

from tests.ingest.gpu_metrics.test_nvidia_smi import counters, notes, read
from torch_tb_profiler.base.errors import TraceError

HEADER = "timestamp,gpu,gfx_activity,umc_activity,socket_power,gfx_voltage,gfx_0_clk,hotspot"
LINES = [
    "1772939616,0,95,80,350,N/A,1980,72",
    "1772939616,1,0,0,98 W,N/A,132,44",
    "1772939618,0,97,81,352,N/A,1975,73",
]
EXPECTED = {
    "gfx_activity, GPU 0": [(0, 95.0), (2 * 10**9, 97.0)],
    "umc_activity, GPU 0": [(0, 80.0), (2 * 10**9, 81.0)],
    "socket_power, GPU 0": [(0, 350.0), (2 * 10**9, 352.0)],
    "gfx_0_clk, GPU 0": [(0, 1980.0), (2 * 10**9, 1975.0)],
    "hotspot, GPU 0": [(0, 72.0), (2 * 10**9, 73.0)],
    "gfx_activity, GPU 1": [(0, 0.0)],
    "umc_activity, GPU 1": [(0, 0.0)],
    "socket_power, GPU 1": [(0, 98.0)],
    "gfx_0_clk, GPU 1": [(0, 132.0)],
    "hotspot, GPU 1": [(0, 44.0)],
}


def test_each_column_of_each_gpu_becomes_a_counter() -> None:
    trace = read(HEADER, *LINES)
    assert counters(trace) == EXPECTED
    assert (trace.producer, trace.clock, trace.health) == ("amd-smi", "epoch", ())
    assert trace.base_ns + trace.trace_start_ns == 1_772_939_616 * 10**9


def test_a_repeated_header_starts_another_table() -> None:
    trace = read(HEADER, LINES[0], "timestamp,gpu,socket_power", "1772939617.5,0,340")
    assert counters(trace)["socket_power, GPU 0"] == [(0, 350.0), (1_500_000_000, 340.0)]


@pytest.mark.parametrize(
    "line", ["1772939617,0", "soon,0,95,80,350,N/A,1980,72", "177293,0,95,80,350,N/A,1980,72"]
)
def test_a_line_that_is_not_a_sample_is_skipped_and_noted(line: str) -> None:
    trace = read(HEADER, *LINES[:2], line, LINES[2])
    assert counters(trace) == EXPECTED
    assert notes(trace) == {"line_unreadable": 1}


def test_a_table_without_a_number_is_an_error() -> None:
    with pytest.raises(TraceError, match="no samples"):
        read(HEADER, "1772939616,0,N/A,N/A,N/A,N/A,N/A,N/A")
