"""The similarity of two recordings."""

from __future__ import annotations

import pytest

from tests.support.traces import draw
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.session.cache.similarity import SKETCH_HASHES, NameSketch, name_similarity, sketch_names


def trace(first: int, last: int, category: str = "cpu_op") -> Trace:
    return draw("\n".join(f"host {category} name{i} {i} 1" for i in range(first, last)))


@pytest.mark.parametrize("count", [10, 10 * SKETCH_HASHES])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.9, 1.0])
def test_similarity_is_estimated_from_a_few_names(count: int, share: float) -> None:
    apart = round(count * (1 - share) / (1 + share))
    found = name_similarity(sketch_names(trace(0, count)), sketch_names(trace(apart, apart + count)))
    assert found == pytest.approx((count - apart) / (count + apart), abs=0.1)
    assert len(sketch_names(trace(0, count)).names) == min(count, SKETCH_HASHES)


def test_recordings_of_different_kinds_of_devices_are_not_alike() -> None:
    """An Ascend run and a Gaudi run call operators of the same names."""
    npu, hpu, cuda, rocm = (
        NameSketch((1, 2, 3), (name,), kind)
        for name, kind in (("Ascend910B", "NPU"), ("HPU", "HPU"), ("A100", "GPU"), ("MI300", "GPU"))
    )
    assert name_similarity(npu, hpu) == name_similarity(npu, cuda) == 0
    assert name_similarity(cuda, rocm) == name_similarity(npu, npu) == 1
    assert name_similarity(npu, NameSketch((1, 2, 3), ())) == 1
    gpu = "host cpu_op aten::mm 0 9\nhost cuda_runtime cudaLaunchKernel 1 2 correlation=1\n"
    kernel = "gpu0 kernel gemm 5 9 correlation=1 stream=7"
    assert [sketch_names(draw(text)).kind for text in (gpu, gpu + kernel)] == ["", "GPU"]


def test_without_operators_kernels_are_compared_and_without_names_nothing_is_similar() -> None:
    kernels = sketch_names(trace(0, 5, "kernel"))
    assert name_similarity(kernels, kernels) == 1
    assert (
        name_similarity(sketch_names(trace(0, 5, "user_annotation")), sketch_names(trace(0, 5, "user_annotation")))
        == 0
    )
