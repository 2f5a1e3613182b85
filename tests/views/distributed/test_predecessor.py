"""The predecessor's vectors: two ranks each, numbers in µs as its tests state them."""

from __future__ import annotations

import pytest

from tests.support.jobs import ready_member
from tests.support.traces import draw
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.view import Member, Members, NoParams
from torch_tb_profiler.views.distributed.build import build
from torch_tb_profiler.views.distributed.payload.job import DistributedPayload

GRADIENTS = 'Input~Dims=[[2049000]] Input~type=["float"]'.replace("~", " ")
BUFFERS = 'Input~Dims=[[53120]] Input~type=["float"]'.replace("~", " ")

GLOO = (
    f"""
    host   cpu_op  gloo:broadcast   16  38  {BUFFERS}
    host2  cpu_op  gloo:broadcast   25  36  {BUFFERS}
    host   cpu_op  gloo:broadcast   66  18  {BUFFERS}
    host3  cpu_op  aten::add_        0  20
    host2  cpu_op  gloo:all_reduce 110  18  {GRADIENTS}
    host   cpu_op  gloo:all_reduce 120  36  {GRADIENTS}
    """,
    f"""
    host   cpu_op  gloo:broadcast   20  28  {BUFFERS}
    host2  cpu_op  gloo:broadcast   28  30  {BUFFERS}
    host   cpu_op  gloo:broadcast   77   6  {BUFFERS}
    host3  cpu_op  aten::add_        0  30
    host2  cpu_op  gloo:all_reduce  88  38  {GRADIENTS}
    host   cpu_op  gloo:all_reduce 130  16  {GRADIENTS}
    """,
)
KERNELS = ("gpu0 kernel vectorized 30 101", "gpu0 kernel vectorized 70 70")
HOST_WORK = ("host3 cpu_op aten::mul 30 101", "host3 cpu_op aten::mul 70 70")

NCCL = (
    f"""
    host   cpu_op  nccl:broadcast     0    75  External id=146 {BUFFERS}
    gpu0   kernel  ncclKernel_Broadcast_RING_LL   16    16  correlation=28506 external id=146 stream=16
    host   cpu_op  aten::add_       100    20  External id=24504
    gpu0   kernel  vectorized       130   161  correlation=99765 external id=24504
    host2  cpu_op  nccl:all_reduce  160    75  External id=2513 {GRADIENTS}
    gpu0   kernel  ncclKernel_AllReduce_RING_LL  162  1556  correlation=33218 external id=2513 stream=16
    """,
    f"""
    host   cpu_op  nccl:broadcast     0    20  External id=146 {BUFFERS}
    gpu0   kernel  ncclKernel_Broadcast_RING_LL    8    31  correlation=28506 external id=146 stream=16
    host   cpu_op  aten::add_        25    20  External id=24504
    gpu0   kernel  vectorized        30   161  correlation=99765 external id=24504
    host2  cpu_op  nccl:all_reduce  160    75  External id=2513 {GRADIENTS}
    gpu0   kernel  ncclKernel_AllReduce_RING_LL  562  1058  correlation=33218 external id=2513 stream=16
    """,
)


def compare(*pictures: str) -> DistributedPayload:
    members: list[Member[RankSummary]] = [
        ready_member(f"worker{i}", i, draw(picture)) for i, picture in enumerate(pictures)
    ]
    return build(Members(members), NoParams())


def overlap(payload: DistributedPayload) -> list[list[int]]:
    """Return [computation, overlap, communication, other] in µs per worker."""
    return [
        [time // 1000 for time in (row.computation_ns, row.overlap_ns, row.exposed_ns, row.other_ns)]
        for row in payload.overview
    ]


def waits(payload: DistributedPayload) -> list[list[int]]:
    return [[(row.transfer_ns or 0) // 1000, (row.waiting_ns or 0) // 1000] for row in payload.waiting]


def operations(payload: DistributedPayload) -> list[tuple[object, ...]]:
    """Return the operations as (worker, name, calls, bytes, latency µs, transfer µs)."""
    return [
        (row.worker, row.name, row.calls, row.bytes, (row.latency_ns or 0) // 1000, (row.transfer_ns or 0) // 1000)
        for row in payload.collectives
    ]


@pytest.mark.parametrize(
    ("work", "expected"),
    [(KERNELS, [[31, 70, 39, 16], [16, 54, 44, 32]]), (HOST_WORK, [[47, 74, 35, 0], [36, 64, 34, 12]])],
    ids=["gpu", "cpu"],
)
def test_gloo(work: tuple[str, str], expected: list[list[int]]) -> None:
    payload = compare(*(f"{gloo}\n{more}" for gloo, more in zip(GLOO, work, strict=True)))
    assert overlap(payload) == expected
    assert waits(payload) == [[75, 34], [78, 20]]
    assert operations(payload) == [
        ("worker0", "gloo:broadcast", 3, 637440, 63, 41),
        ("worker0", "gloo:all_reduce", 2, 16392000, 46, 34),
        ("worker1", "gloo:broadcast", 3, 637440, 44, 44),
        ("worker1", "gloo:all_reduce", 2, 16392000, 54, 34),
    ]


def test_nccl_by_its_kernels_alone() -> None:
    """The last predecessor added the host's calls to the kernels' time (75 and 1558 µs), earlier ones did not."""
    payload = compare(*NCCL)
    assert waits(payload) == [[1074, 498], [1074, 15]]
    assert operations(payload) == [
        ("worker0", "nccl:broadcast", 1, 212480, 16, 16),
        ("worker0", "nccl:all_reduce", 1, 8196000, 1556, 1058),
        ("worker1", "nccl:broadcast", 1, 212480, 31, 16),
        ("worker1", "nccl:all_reduce", 1, 8196000, 1058, 1058),
    ]
    # Without steps the recording is one, to the end of the last kernel; the predecessor's ended with the host.
    assert overlap(payload) == [
        [32, 129, 16 + 1556 - 129, 16 + 98],
        [152, 9, 22 + 1058, 1620 - 152 - 9 - 22 - 1058],
    ]


def test_an_annotation_alone_is_communication() -> None:
    payload = compare("host user_annotation nccl:all_reduce 10 50", "host user_annotation nccl:all_reduce 10 40")
    assert [(row.name, row.latency_ns, row.timing) for row in payload.collectives] == [
        ("nccl:all_reduce", 50_000, "host"),
        ("nccl:all_reduce", 40_000, "host"),
    ]
    assert [row.transfer_ns for row in payload.collectives] == [None, None]  # it tells how long a launch took
