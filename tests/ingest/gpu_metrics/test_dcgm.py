"""Metrics of DCGM with the times that Prometheus adds become counters per GPU and host."""

from __future__ import annotations

import pytest

from tests.ingest.gpu_metrics.test_nvidia_smi import counters, notes, read

TIME_MS = 1_772_939_616_250
LABELS = '{gpu="%d",UUID="GPU-a%d",device="nvidia%d",modelName="NVIDIA H100, \\"SXM\\"",Hostname="node7"}'


def line(name: str, gpu: int, value: str, after_ms: int) -> str:
    return f"{name}{LABELS % (gpu, gpu, gpu)} {value} {TIME_MS + after_ms}"


LINES = [
    "# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).",
    "# TYPE DCGM_FI_DEV_GPU_UTIL gauge",
    line("DCGM_FI_DEV_GPU_UTIL", 0, "45", 0),
    line("DCGM_FI_DEV_GPU_UTIL", 1, "0", 0),
    line("DCGM_FI_DEV_GPU_UTIL", 0, "97", 15_000),
    line("DCGM_FI_DEV_POWER_USAGE", 0, "6.7125e+02", 5),
    line("DCGM_FI_DEV_POWER_USAGE", 1, "NaN", 5),
]


def gpu(number: int) -> str:
    return f'GPU {number} · NVIDIA H100, \\"SXM\\" · node7'


EXPECTED = {
    f"DCGM_FI_DEV_GPU_UTIL, {gpu(0)}": [(0, 45.0), (15_000_000_000, 97.0)],
    f"DCGM_FI_DEV_GPU_UTIL, {gpu(1)}": [(0, 0.0)],
    f"DCGM_FI_DEV_POWER_USAGE, {gpu(0)}": [(5_000_000, 671.25)],
}


def test_each_metric_of_each_gpu_becomes_a_counter() -> None:
    trace = read(*LINES)
    assert counters(trace) == EXPECTED
    assert (trace.producer, trace.clock, trace.health) == ("DCGM", "epoch", ())
    assert trace.base_ns + trace.trace_start_ns == TIME_MS * 10**6


@pytest.mark.parametrize(
    "extra",
    ["DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 45", "DCGM_FI_DEV_GPU_UTIL 45 1772939616250", "up{} 1 1772939616250",
     'DCGM_FI_DEV_GPU_UTIL{gpu="0"} much 1772939616250'],
)  # fmt: skip
def test_a_line_without_a_time_or_value_is_skipped_and_noted(extra: str) -> None:
    trace = read(*LINES, extra)
    assert counters(trace) == EXPECTED
    assert notes(trace) == {"line_unreadable": 1}
