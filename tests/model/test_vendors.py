"""Tests of categories that mix kernels with waits, DMA, metrics or host calls, as some vendors write them."""

from __future__ import annotations

from typing import Any

import msgspec

from tests.support.traces import draw, read
from torch_tb_profiler.analyses.shared.breakdown import breakdown
from torch_tb_profiler.analyses.timeline.event import arguments_of
from torch_tb_profiler.model.devices import devices
from torch_tb_profiler.model.kinds import Kind, rows_of_kind
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.views import find_view

MTIA = draw(
    """
    host  user_annotation  ProfilerStep#1     0 100
    host  mtia_runtime     runFunction        1   2   correlation=5 device=17
    gpu17 mtia_ccp_events  event_wait        10  20   stream=108 wait_on_stream=104
    gpu17 mtia_ccp_events  merge             30  30   stream=101 correlation=5
    gpu17 mtia_ccp_events  dma_request       65   5   stream=105 size=1024 direction=DEVICE_TO_HOST
    gpu17 mtia_ccp_events  dma_request       70   3   stream=105 size=2048 direction=DEVICE_TO_HOST
    gpu17 mtia_ccp_events  dma_request       75   4   stream=105 size=4096 direction=HOST_TO_DEVICE
    gpu17 mtia_ccp_events  hccl::allreduce   80  10   stream=102
    gpu17 mtia_ccp_events  event_record      90   1   stream=101
    """
)

XPU = draw(
    """
    host  user_annotation  ProfilerStep#1          0 100
    host  xpu_runtime      urEnqueueKernelLaunch   1   2   correlation=5
    gpu0  kernel           gemm                   10  20   correlation=5 kernel_id=77 stream=1
    gpu0  kernel           metrics:~gemm           9  22   kernel_id=77 stream=1 EuActive=61
    host  collective_comm  xccl::allreduce        40  30   Communicator_id=3
    """,
    deviceProperties=[{"id": 0, "name": "Intel Max 1550", "maxComputeUnits": 512}],
)


def names(trace: Trace, kind: Kind) -> list[str]:
    return [trace.strings[trace.events.name[row]] for row in rows_of_kind(trace, kind)]


def test_waits_and_dma_of_mtia_are_not_kernels() -> None:
    assert names(MTIA, Kind.KERNEL) == ["merge", "hccl::allreduce"]
    assert names(MTIA, Kind.MEMCPY) == ["dma_request"] * 3
    assert names(MTIA, Kind.SYNC) == ["event_wait", "event_record"]


def test_a_stream_keeps_its_device_if_its_waits_have_none() -> None:
    """MTIA's waits come first on a stream and have no device; the device of its work is that of the process."""
    on_card = {"ph": "X", "cat": "mtia_ccp_events", "pid": 17, "tid": 3774, "dur": 5, "args": {"stream": 108}}
    trace = read([{**on_card, "name": "event_wait", "ts": 0}, {**on_card, "name": "merge", "ts": 5}])
    view: Any = find_view("trace")
    tracks = msgspec.to_builtins(view.build(trace, view.params()))["tracks"]
    streams = {track["role"]: (track["device"], track["stream"]) for track in tracks if track["kind"] == "stream"}
    assert streams == {"compute": (17, 108), "sync": (17, 108)}


def test_a_step_of_mtia_counts_each_event_once() -> None:
    times = {category: int(ns.sum()) for category, ns in breakdown(MTIA).times.items()}
    assert times["kernel"] == 30_000
    assert times["memcpy"] == 12_000
    assert times["communication"] == 10_000
    assert sum(times.values()) == 100_000


def test_dma_of_mtia_is_listed_by_direction_with_its_bytes() -> None:
    view: Any = find_view("kernels")
    rows = msgspec.to_builtins(view.build(MTIA, view.params()))["memory_operations"]
    assert [(row["name"], row["calls"], row["bytes"], row["total_ns"]) for row in rows] == [
        ("dma_request (DEVICE_TO_HOST)", 2, 3072, 8_000),
        ("dma_request (HOST_TO_DEVICE)", 1, 4096, 4_000),
    ]


def test_a_kernel_with_metrics_counts_once() -> None:
    assert names(XPU, Kind.KERNEL) == ["gemm"]
    assert names(XPU, Kind.METRICS) == ["metrics: gemm"]
    assert int(breakdown(XPU).times["kernel"].sum()) == 20_000


def test_metrics_are_arguments_of_their_kernel() -> None:
    kernel, metrics = (int(rows_of_kind(XPU, kind)[0]) for kind in (Kind.KERNEL, Kind.METRICS))
    assert arguments_of(XPU, kernel)["EuActive"] == 61
    assert arguments_of(XPU, kernel)["correlation"] == 5
    assert "correlation" not in arguments_of(XPU, metrics)


def test_a_kernel_does_not_have_the_metrics_of_another() -> None:
    trace = draw(
        """
        gpu0  kernel  gemm           10  20   kernel_id=77 stream=1
        gpu0  kernel  metrics:~conv   9  22   kernel_id=78 stream=1 EuActive=61
        """
    )
    assert "EuActive" not in arguments_of(trace, 0)


def test_an_intel_collective_is_host_communication_and_not_a_second_device() -> None:
    assert [device.id for device in devices(XPU)] == [0]
    assert int(breakdown(XPU).times["communication"].sum()) == 30_000


def test_vector_engines_are_not_multiprocessors() -> None:
    assert devices(XPU)[0].multiprocessors is None


def test_a_kernel_of_another_category_may_begin_with_such_a_name() -> None:
    trace = draw("gpu0 kernel dma_copy_kernel 10 20 stream=1")
    assert names(trace, Kind.KERNEL) == ["dma_copy_kernel"]
