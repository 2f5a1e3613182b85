"""Tests of which call owns a kernel, and of the work of calls with incomplete records."""

from __future__ import annotations

import numpy as np

from tests.model.work.operator_events import BF16, FLOAT, SCALAR, kernel, launch, operator, work_of

MM = {"dims": [[8, 16], [16, 4]], "types": [FLOAT, FLOAT]}
LINEAR = {"dims": [[8, 16], [4, 16]], "types": [FLOAT, FLOAT]}


def test_wrappers_own_nothing() -> None:
    done, names = work_of(
        operator("aten::linear", 0, 50, **LINEAR),
        operator("aten::mm", 10, 30, **MM),
        launch(20, 1),
        kernel("gemm", 40, 10, 1),
    )
    assert names == ["aten::mm"]
    assert done.flops.tolist() == [1024.0]


def test_a_kernel_of_an_operator_without_a_model_belongs_to_the_modeled_one_around_it() -> None:
    done, names = work_of(
        operator("aten::mm", 0, 50, **MM), operator("lib::gemm", 10, 30), launch(20, 1), kernel("gemm", 40, 10, 1)
    )
    assert names == ["aten::mm"]
    assert done.device.tolist() == [10_000]


def test_a_kernel_that_a_wrapper_launches_itself_is_not_the_inner_operators_work() -> None:
    done, names = work_of(
        operator("aten::linear", 0, 50, **LINEAR),
        operator("lib::pad", 2, 6),
        launch(4, 2),
        operator("aten::mm", 10, 30, **MM),
        launch(20, 1),
        kernel("pad", 30, 5, 2),
        kernel("gemm", 40, 10, 1),
    )
    assert sorted(names) == ["aten::mm", "lib::pad"]
    assert np.nansum(done.flops) == 1024
    assert done.device.tolist() == [5000, 10_000]


def test_decomposed_attention_counts_the_operators_that_ran() -> None:
    q = [1, 1, 4, 4]
    done, names = work_of(
        operator("aten::scaled_dot_product_attention", 0, 90, dims=[q, q, q, [], [], []],
                 types=[FLOAT] * 3 + ["", SCALAR, SCALAR], values=["", "", "", "", "0.", "False"]),
        operator("aten::bmm", 10, 10, dims=[[1, 4, 4], [1, 4, 4]], types=[FLOAT, FLOAT]),
        launch(12, 1),
        operator("aten::_softmax", 30, 10, dims=[[1, 4, 4], [], []], types=[FLOAT, SCALAR, SCALAR]),
        launch(32, 2),
        kernel("gemm", 40, 10, 1),
        kernel("softmax", 50, 10, 2),
    )  # fmt: skip
    assert names == ["aten::bmm", "aten::_softmax"]
    assert done.flops.tolist() == [128.0, 48.0]


def test_work_without_shapes_is_unknown_with_a_reason() -> None:
    done, names = work_of(operator("aten::mm", 0, 50), launch(20, 1), kernel("gemm", 40, 10, 1))
    assert names == ["aten::mm"]
    assert np.isnan(done.flops[0])
    assert np.isnan(done.bytes[0])
    assert "record_shapes" in done.reasons[done.reason[0]]


def test_calls_of_one_signature_have_the_same_cost() -> None:
    other = {"dims": [[8, 16], [16, 2]], "types": [FLOAT, FLOAT]}
    done, _ = work_of(
        operator("aten::mm", 0, 9, **MM), launch(1, 1), kernel("gemm", 40, 10, 1),
        operator("aten::mm", 10, 9, **MM), launch(11, 2), kernel("gemm", 50, 10, 2),
        operator("aten::mm", 20, 9, **other), launch(21, 3), kernel("gemm", 60, 10, 3),
    )  # fmt: skip
    assert done.flops.tolist() == [1024.0, 1024.0, 512.0]
    assert len(set(done.signature.tolist())) == 2


def test_kernels_that_run_concurrently_count_as_busy_once() -> None:
    done, _ = work_of(
        operator("aten::mm", 0, 50, **MM), launch(10, 1), launch(20, 2),
        kernel("a", 40, 10, 1), kernel("b", 45, 10, 2),
    )  # fmt: skip
    assert (done.busy.tolist(), done.device.tolist()) == ([15_000], [20_000])


def test_the_bytes_of_a_copy_are_those_that_its_engine_recorded() -> None:
    copy = {"dims": [[8], [8], []], "types": [FLOAT, FLOAT, SCALAR]}
    done, _ = work_of(
        operator("aten::copy_", 0, 9, **copy), launch(1, 1),
        kernel("Memcpy HtoD (Pageable -> Device)", 40, 10, 1, "gpu_memcpy", bytes=32),
        operator("aten::copy_", 10, 9, **copy), launch(11, 2),
        kernel("Memcpy DtoD (Device -> Device)", 50, 10, 2, "gpu_memcpy", bytes=32),
        operator("lib::item", 20, 9), launch(21, 3),
        kernel("Memcpy DtoH (Device -> Pinned)", 60, 10, 3, "gpu_memcpy", bytes=4),
    )  # fmt: skip
    assert done.bytes.tolist() == [32.0, 64.0, 4.0]
    assert done.flops.tolist() == [0.0, 0.0, 0.0]
    assert done.host.tolist() == [True, False, True]
    assert done.reason.tolist() == [-1, -1, -1]


def test_a_product_that_clears_memory_first_has_its_own_bytes() -> None:
    done, _ = work_of(
        operator("aten::mm", 0, 50, **MM), launch(10, 1), launch(20, 2),
        kernel("Memset (Device)", 40, 1, 1, "gpu_memset", bytes=999), kernel("gemm", 45, 10, 2),
    )  # fmt: skip
    assert done.bytes.tolist() == [4.0 * (128 + 64 + 32)]
    assert done.device.tolist() == [11_000]


def test_single_precision_is_tf32_only_if_the_kernel_name_contains_it() -> None:
    done, _ = work_of(
        operator("aten::mm", 0, 9, **MM), launch(1, 1), kernel("ampere_sgemm_128x64_nn", 40, 10, 1),
        operator("aten::mm", 10, 9, **MM), launch(11, 2), kernel("cutlass_tensorop_s1688gemm", 50, 10, 2),
    )  # fmt: skip
    assert [done.types[code] for code in done.type] == ["fp32", "tf32"]


def test_a_kernel_without_a_name_is_not_tf32() -> None:
    nameless = kernel("", 40, 10, 1)
    del nameless["name"]
    last = operator("a_tf32_name", 60, 9)  # the last text of the trace
    done, _ = work_of(operator("aten::mm", 0, 9, **MM), launch(1, 1), nameless, last)
    assert [done.types[code] for code in done.type] == ["fp32"]


def test_the_type_is_that_of_the_product_also_where_a_conversion_before_it_takes_longer() -> None:
    product = "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32"
    done, _ = work_of(
        operator("aten::mm", 0, 9, **MM), launch(1, 1), launch(3, 2),
        kernel("void cudnn::nchwToNhwcKernel<float, float>(float)", 40, 30, 1), kernel(product, 80, 10, 2),
    )  # fmt: skip
    assert [done.types[code] for code in done.type] == ["tf32"]


def test_work_recorded_by_the_compiler_replaces_modeled_work() -> None:
    dims = {"dims": [[8], [8]], "types": [FLOAT, FLOAT]}
    done, _ = work_of(
        operator("triton_poi_fused_0", 0, 9, **dims, kernel_flop=77, kernel_num_gb=1e-9), launch(1, 1),
        kernel("triton_poi_fused_0", 40, 10, 1),
    )  # fmt: skip
    assert (done.flops.tolist(), done.bytes.tolist()) == ([77.0], [1.0])
    assert not done.estimated[0]


def test_forward_operators_inside_backward_are_recomputed() -> None:
    engine = "autograd::engine::evaluate_function: CheckpointFunctionBackward"
    done, names = work_of(
        operator("aten::mm", 0, 9, **MM, **{"Sequence number": 1, "Fwd thread id": 0}), launch(1, 1),
        kernel("gemm", 10, 5, 1),
        operator(engine, 20, 60, **{"Sequence number": 3, "Fwd thread id": 1}),
        operator("aten::mm", 30, 9, **MM, **{"Sequence number": 4, "Fwd thread id": 0}), launch(31, 2),
        kernel("gemm", 40, 5, 2),
        operator("MmBackward0", 50, 20, **{"Sequence number": 4, "Fwd thread id": 1}),
        operator("aten::mm", 55, 9, **MM), launch(56, 3),
        kernel("gemm", 60, 5, 3),
    )  # fmt: skip
    assert names == ["aten::mm"] * 3
    assert done.recomputed.tolist() == [False, True, False]


def test_calls_differ_if_any_of_their_texts_or_their_kernels_do() -> None:
    sums = [
        {"dims": dims, "types": types, "values": values, "strides": strides}
        for dims in ([[8, 4], [], []], [[4, 8], [], []])
        for types in ([FLOAT, "ScalarList", SCALAR], [BF16, "ScalarList", SCALAR])
        for values in (["", "[0]", ""], ["", "[1]", ""])
        for strides in ([[4, 1], [], []], [[0, 1], [], []])
    ]
    calls = [(inputs, name) for name in ("sum", "reduce") for inputs in sums] * 2
    events = [
        event
        for i, (inputs, name) in enumerate(calls)
        for event in (
            operator("aten::sum", 10 * i, 9, **inputs), launch(10 * i + 1, i + 1), kernel(name, 10 * i, 5, i + 1)
        )
    ]  # fmt: skip
    done, _ = work_of(*events)
    assert len(set(done.signature.tolist())) == len(calls) // 2
    assert done.signature[: len(calls) // 2].tolist() == done.signature[len(calls) // 2 :].tolist()
