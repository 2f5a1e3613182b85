"""How well a device is used, as far as the file tells."""

from __future__ import annotations

import pytest

from tests.support.simulation.simulator import Simulation, ddp
from tests.support.traces import draw
from torch_tb_profiler.analyses.shared.utilization import DeviceUtilization, utilizations

KERNELS = {"yes": "ampere_s16816gemm", "no": "ampere_sgemm", "unknown": "triton_poi_fused_0"}


def draw_linked(**times: int) -> DeviceUtilization:
    """Draw kernels of these lengths, launched by operators, that use Tensor Cores, don't, or don't say."""
    lines = ["host user_annotation ProfilerStep#1 0 500"]
    for i, (what, time) in enumerate(times.items()):
        begin = 100 * i
        lines += [
            f"host cpu_op aten::op{i} {begin} 50",
            f"host cuda_runtime cudaLaunchKernel {begin + 5} 5 correlation={i}",
            f"gpu0 kernel {KERNELS[what]} {begin + 20} {time} correlation={i} stream=7",
        ]
    (found,) = utilizations(draw("\n".join(lines)))
    return found


def test_the_ratio_of_tensor_cores_is_over_all_kernels() -> None:
    found = draw_linked(yes=30, no=20)
    assert found.tensor_core_ratio == pytest.approx(0.6)
    assert "tensor_core_ratio" not in found.unknown
    bare = draw("""
    gpu0 kernel ampere_s16816gemm  0 10 stream=7
    gpu0 kernel ampere_sgemm      10 30 stream=7
    """)
    assert utilizations(bare)[0].tensor_core_ratio is None  # nothing tells that this is a CUDA device
    one_is_linked = draw("""
    host cpu_op       aten::mm            0 9
    host cuda_runtime cudaLaunchKernel    1 1  correlation=1
    gpu0 kernel       ampere_s16816gemm   5 10 correlation=1 stream=7
    gpu0 kernel       ampere_sgemm       15 30 correlation=2 stream=7
    """)
    assert utilizations(one_is_linked)[0].tensor_core_ratio == 0.25


def test_kernels_with_unclear_names_make_the_ratio_a_lower_bound() -> None:
    found = draw_linked(yes=30, no=20, unknown=50)
    assert found.tensor_core_ratio == pytest.approx(0.3)
    assert (found.cores.used, found.cores.not_used, found.cores.unknown) == (30_000, 20_000, 50_000)
    assert found.unknown["tensor_core_ratio"] == "at least: for 50% of the kernel time the names don't show it"
    assert draw_linked(no=20, unknown=50).tensor_core_ratio == 0
    assert draw_linked(yes=20, unknown=20).tensor_core_ratio == 0.5


def test_without_a_clear_kernel_name_the_ratio_is_unknown() -> None:
    found = draw_linked(unknown=50)
    assert found.tensor_core_ratio is None
    assert "kernel names don't show" in found.unknown["tensor_core_ratio"]
    still = draw_linked(yes=0)
    assert still.tensor_core_ratio is None
    assert still.unknown["tensor_core_ratio"] == "no kernel takes time"


def test_estimates_are_of_the_complete_steps_alone() -> None:
    """Window 0..100: of the first kernel 20 us, of the second nothing."""
    estimates = "blocks per SM={} est. achieved occupancy %={}"
    (found,) = utilizations(
        draw(f"""
        host  user_annotation  ProfilerStep#1    0  100
        host  cuda_runtime     launch           10    5  correlation=1
        host  user_annotation  ProfilerStep#2  100  100
        gpu0  kernel           k                20   20  correlation=1 stream=7 {estimates.format(0.5, 40)}
        gpu0  kernel           late            150   50  correlation=9 stream=8 {estimates.format(1, 80)}
        """)
    )
    assert found.utilization == pytest.approx(0.2)
    assert found.sm_efficiency == pytest.approx(0.1)
    assert found.achieved_occupancy == pytest.approx(0.4)
    assert found.streams == 2


def test_computing_is_parted_from_waiting_in_collectives() -> None:
    """Of 100 µs, kernels run for 80; a collective that nothing hides takes 50 of them."""
    (found,) = utilizations(
        draw("""
        host  user_annotation  ProfilerStep#1    0  100
        host  cuda_runtime     launch            1    1  correlation=1
        gpu0  kernel           gemm             10   30  correlation=1 stream=7
        gpu0  kernel           ncclDevKernel_AllReduce_Sum_f32_RING_LL 30 60 correlation=2 stream=8
        """)
    )
    assert found.utilization == pytest.approx(0.8)
    assert found.computing == pytest.approx(0.3)


def test_a_device_is_used_as_in_the_typical_steps() -> None:
    typical, odd = (
        utilizations(Simulation(ddp(2), steps=6, syncs=True, odd=each).run().trace(0))[0]
        for each in (None, (3, 200_000.0))
    )
    assert typical.utilization is not None and typical.computing is not None
    assert odd.utilization == pytest.approx(typical.utilization, abs=0.01)
    assert odd.computing == pytest.approx(typical.computing, abs=0.01)
