from __future__ import annotations

import numpy as np
import pytest

from tests.support.traces import draw
from torch_tb_profiler.analyses.launches.bandwidth import bytes_between, copy_groups, parse_direction
from torch_tb_profiler.model.kinds import DEVICE_KINDS, rows_of_kind


@pytest.mark.parametrize(
    ("name", "direction", "memory"),
    [
        ("Memcpy HtoD (Pageable -> Device)", "host to device", "pageable"),
        ("Memcpy HtoD (Pinned -> Device)", "host to device", "pinned"),
        ("Memcpy HtoD (Host -> Device)", "host to device", None),
        ("Memcpy DtoH (Device -> Pageable)", "device to host", "pageable"),
        ("Memcpy DtoD (Device -> Device)", "device to device", None),
        ("Memcpy PtoP (Device -> Device)", "device to peer", None),
        ("CopyHostToDevice", "host to device", None),
        ("CopyDeviceToHost", "device to host", None),
        ("Memcpy M2D(Memory -> Device)", "host to device", None),
        ("Memcpy D2M(Device -> Memory)", "device to host", None),
        ("copy", "unknown", None),
    ],
)
def test_what_the_name_of_a_copy_says(name: str, direction: str, memory: str | None) -> None:
    assert parse_direction(name) == (direction, memory)


def test_copies_side_by_side_share_their_time() -> None:
    trace = draw("""
    gpu0  gpu_memcpy  Memcpy~HtoD~(Pinned~->~Device)     0  10  stream=7 bytes=1000
    gpu0  gpu_memcpy  Memcpy~HtoD~(Pinned~->~Device)     5  10  stream=8 bytes=2000
    gpu0  gpu_memcpy  Memcpy~HtoD~(Pinned~->~Device)    50  10  stream=7
    gpu0  gpu_memcpy  Memcpy~DtoH~(Device~->~Pageable)  20   1  stream=7
    gpu0  kernel      gemm                              30   9  stream=7
    """)
    up, down = copy_groups(trace, rows_of_kind(trace, *DEVICE_KINDS))
    assert (up.direction, up.memory, len(up.rows), up.sized, up.bytes, up.time_ns) == (
        "host to device",
        "pinned",
        3,
        2,
        3000,
        15_000,
    )
    assert up.bandwidth == pytest.approx(3000 / 15e-6)
    assert (down.direction, down.memory, down.bytes, down.bandwidth) == ("device to host", "pageable", None, None)


def test_mtia_says_direction_and_size_in_arguments() -> None:
    trace = draw("gpu0 gpu_memcpy dma 0 10 direction=DEVICE_TO_HOST size=500")
    (copy,) = copy_groups(trace, rows_of_kind(trace, *DEVICE_KINDS))
    assert (copy.direction, copy.bytes) == ("device to host", 500)
    assert copy.bandwidth == pytest.approx(5e7)


def test_a_copy_moves_its_bytes_evenly() -> None:
    trace = draw("gpu0 gpu_memcpy copy 10 10 bytes=1000\ngpu0 gpu_memcpy copy 12 0 bytes=7")
    rows = rows_of_kind(trace, *DEVICE_KINDS)
    start = int(trace.events.start[rows[0]])
    edges = start + np.array([-5_000, 0, 2_000, 4_000, 9_000, 50_000])
    assert bytes_between(trace, rows, edges).tolist() == [0, 200, 207, 500, 100]


@pytest.mark.parametrize("seed", range(20))
def test_the_bytes_of_all_stretches_sum_to_the_bytes_of_the_copies(seed: int) -> None:
    random = np.random.default_rng(seed)
    lines = [
        f"gpu0 gpu_memcpy copy {random.integers(0, 1000)} {random.integers(0, 50) / 7:.3f} bytes={size}"
        for size in (2 ** random.integers(0, 50, 50) - 1).tolist()
    ]
    trace = draw("\n".join(lines))
    rows = rows_of_kind(trace, *DEVICE_KINDS)
    edges = np.unique(random.integers(-10, 1_100_000, 30))
    edges = np.concatenate([[-20], edges, [2_000_000]])
    parts = bytes_between(trace, rows, edges)
    assert (parts >= 0).all()
    assert int(parts.sum()) == sum(trace.arg_int("bytes", rows).tolist())
