"""Short names of kernels: they can be read, they tell kernels apart, and no name breaks them."""

from __future__ import annotations

import random
import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torch_tb_profiler.model.kernels.short_names import (
    _FLOATS,
    _INTEGERS,
    _TYPES,
    MAX_SHORT_NAME_LENGTH,
    number_type,
    short_name,
    short_names,
)

NATIVE = "void at::native::"
BINARY = "at::native::AUnaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, at::native::binary_internal"
LAMBDA = "(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda(float)#1}"


@pytest.mark.parametrize(
    ("name", "short"),
    [
        (
            "void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_128x128_nn_align1>(Params)",
            "GEMM bf16 128x128 nn, CUTLASS sm75, align1",
        ),
        (f"{NATIVE}vectorized_elementwise_kernel<4, {BINARY}::MulFunctor<float> > >(int)", "multiply bf16, vec4"),
        (f"{NATIVE}vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int)", "fill fp32, vec4"),
        (f"{NATIVE}unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda{LAMBDA}>(int)", "copy fp32"),
        (
            f"{NATIVE}reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float>>>(x)",
            "mean fp32",
        ),
        ("ampere_sgemm_64x64_nn", "GEMM fp32 64x64 nn, ampere"),
        ("ampere_dgemm_64x64_nn", "GEMM fp64 64x64 nn, ampere"),
        ("ampere_zgemm_64x64_nn", "GEMM 64x64 nn, ampere"),
        (
            "void cutlass::Kernel2<cutlass_80_tensorop_d884gemm_128x64_16x3_nn_align1>(Params)",
            "GEMM fp64 128x64 nn, CUTLASS sm80, align1",
        ),
        ("sm80_xmma_gemm_f64f64_f64f64_f64_nn_n_tilesize64x64x16", "GEMM fp64 64x64x16 nn, xmma sm80"),
        (
            "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x256x32_warpgroupsize2x1x1_execute_segment_k_off",
            "GEMM tf32 128x256x32 tn, xmma sm90",
        ),
        (
            "cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_26_64x128x64_1x4x1_cga1x1x1_kernel0_0",
            "flash attention backward 64x128x64, cuDNN sm90",
        ),
        ("Cijk_Alik_Bljk_BBS_BH_Bias_MT128x96x128_MI16x16x1_SN", "GEMM bf16 128x96x128 tn, Tensile"),
        ("nvjet_sm103_tst_64x16_64x16_4x1_v_bz_TNT", "GEMM 64x16 tnt, nvjet sm103"),
        ("igemm_bwd_gtcx3_nhwc_bf16_bx0_ex1_bt128x64x32_wt32", "conv dgrad bf16 128x64x32, MIOpen"),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", "NCCL AllReduce Sum f32 RING LL"),
        ("triton_poi_fused_add_mul_3", "Triton add, mul (3)"),
        ("triton_red_fused__unsafe_view_add_native_layer_norm_20", "Triton add, layer_norm (20)"),
        (
            "void (anonymous namespace)::softmax_warp_forward<float, 10>(float*)",
            "softmax_warp_forward fp32",
        ),
        (
            f"{NATIVE}CatArrayBatchedCopy_contig<at::native::OpaqueType<2u>, unsigned int, 3>(x)",
            "cat_contig 2-byte",
        ),
        ("my_kernel", "my_kernel"),
        ("void my_kernel<float>(float*)", "my fp32"),
        ("kernel", "kernel"),
        ("", ""),
    ],
)
def test_short_names_have_the_operation_and_type(name: str, short: str) -> None:
    assert short_name(name) == short


def test_similar_names_get_a_part_that_is_unique_to_them() -> None:
    tiles = [f"cutlass_80_tensorop_s1688gemm_128x128_{stage}_nn_align4" for stage in ("32x3", "32x5")]
    assert list(short_names(tiles).values()) == [
        "GEMM tf32 128x128 nn, CUTLASS sm80, align4, 32x3",
        "GEMM tf32 128x128 nn, CUTLASS sm80, align4, 32x5",
    ]
    assert sorted(short_names(["f<int, true>", "f<int, false>"]).values()) == ["f int32 #1", "f int32 #2"]


def test_whatever_the_names_short_names_are_unique_and_short() -> None:
    seeded = random.Random(7)
    pieces = [
        "kernel",
        "<",
        ">",
        "::",
        "_Z",
        "N",
        "9",
        "gemm",
        "128x128",
        "\u2028",
        "triton_poi_fused_",
        "#1",
        "(",
    ]
    pieces += list(string.printable)
    names = {"".join(seeded.choices(pieces, k=seeded.randrange(1, 12))) for _ in range(3000)}
    names |= {"k" * 100 + str(number) for number in range(40)} | {"f int32 #1", "f<int, 1>", "f<int, 2>"}
    found = short_names(names)
    assert found.keys() == names
    assert len(set(found.values())) == len(names)
    assert max(map(len, found.values())) <= MAX_SHORT_NAME_LENGTH


def test_short_names_do_not_depend_on_the_order() -> None:
    names = [f"void f<int, {number}>(int)" for number in range(9)]
    assert short_names(names) == short_names(reversed(names))


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ("int, float, float, float", "fp32"),  # of gemv2T_val: the first one counts
        ("int, int, __half, __half, __half, float, false", "fp16"),  # of gemvx
        ("c10::BFloat16, unsigned int, float", "bf16"),
        ("long, at::native::AddOp<long>", "int64"),  # nothing else is computed with
        ("4, bool, int", "bool"),
        ("128, 64", ""),
        (
            "float, 128, cublasGemvTensorStridedBatched<__half const>, cublasGemvTensorStridedBatched<float>",
            "fp16",
        ),
        ("float, 7, cublasGemvTensorStridedBatched<float>, cublasGemvTensorStridedBatched<__half const>", "fp32"),
        ("3, f(at::Tensor const&, double, long)::{lambda()#1}::operator()() const::{lambda(float)#2}", "fp32"),
        ("4, g(c10::optional<double>)::{lambda(c10::BFloat16)#1}", "bf16"),
        ("4, {lambda(double)#1}", "fp64"),
    ],
)
def test_integers_count_and_index_beside_other_types(arguments: str, kind: str) -> None:
    assert number_type(arguments) == kind


@pytest.mark.parametrize(("expression", "kinds"), [(_FLOATS, 9), (_INTEGERS, 5)])
@given(st.data())
def test_every_spelling_of_a_type_is_known(expression: re.Pattern[str], kinds: int, data: st.DataObject) -> None:
    found = expression.search(data.draw(st.from_regex(expression.pattern)))
    assert found and found[0] in _TYPES
    assert len({kind for spelling, kind in _TYPES.items() if expression.fullmatch(spelling)}) == kinds
