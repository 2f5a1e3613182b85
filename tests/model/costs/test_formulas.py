"""Tests of FLOPs and bytes of single calls, computed by hand."""

from __future__ import annotations

import pytest

from tests.model.work.operator_events import BF16, FLOAT, LIST, SCALAR, formula_cost
from torch_tb_profiler.model.costs.call import UnknownCostError


def test_a_product_is_two_operations_for_each_pair() -> None:
    found = formula_cost("aten::mm", [[8, 16], [16, 4]], [BF16, BF16])
    assert (found.flops, found.bytes, found.unit, found.type) == (
        2 * 8 * 16 * 4,
        2 * (128 + 64 + 32),
        "matrix",
        BF16,
    )


def test_a_bias_is_read_unless_it_is_scaled_by_zero() -> None:
    dims, types = [[4], [8, 16], [16, 4], [], []], [FLOAT, FLOAT, FLOAT, SCALAR, SCALAR]
    with_bias = formula_cost("aten::addmm", dims, types, ["", "", "", "1", "1"])
    without = formula_cost("aten::addmm", dims, types, ["", "", "", "0", "1"])
    assert with_bias.flops == without.flops == 2 * 8 * 16 * 4
    assert (with_bias.bytes, without.bytes) == (4 * (4 + 128 + 64 + 32), 4 * (128 + 64 + 32))


def test_batches_multiply_and_broadcast() -> None:
    assert formula_cost("aten::bmm", [[3, 8, 16], [3, 16, 4]], [FLOAT, FLOAT]).flops == 3 * 2 * 8 * 16 * 4
    assert formula_cost("aten::matmul", [[3, 8, 16], [16, 4]], [FLOAT, FLOAT]).flops == 3 * 2 * 8 * 16 * 4
    linear = formula_cost("aten::linear", [[3, 8, 16], [4, 16], [4]], [FLOAT, FLOAT, FLOAT])
    assert (linear.flops, linear.bytes) == (3 * 2 * 8 * 16 * 4, 4 * (384 + 64 + 4 + 96))


def test_a_scaled_product_reads_scales_and_writes_its_own_type() -> None:
    fp8 = "c10::Float8_e4m3fn"
    found = formula_cost(
        "aten::_scaled_mm",
        [[8, 16], [16, 4], [], [], [], [], [], []],
        [fp8, fp8, FLOAT, FLOAT, "", "", SCALAR, SCALAR],
        ["", "", "", "", "", "", "6", "True"],
    )
    assert (found.flops, found.bytes) == (2 * 8 * 16 * 4, 128 + 64 + 4 + 4 + 4 * 32)


@pytest.mark.parametrize("dims", [[[8, 16], [15, 4]], [[8], [8, 4]]])
def test_shapes_that_do_not_fit_a_product_are_unknown(dims: list[list[int]]) -> None:
    with pytest.raises(UnknownCostError, match="not those of a product"):
        formula_cost("aten::mm", dims, [FLOAT, FLOAT])


def test_an_expanded_tensor_is_read_once() -> None:
    strided = formula_cost("aten::mul", [[8, 16], [8, 16]], [FLOAT, FLOAT], strides=[[16, 1], [0, 1]])
    assert (strided.flops, strided.bytes) == (128, 4 * (128 + 16 + 128))


CONV = [FLOAT, FLOAT, FLOAT, LIST, LIST, LIST, SCALAR, LIST, SCALAR]


def conv(x: list[int], w: list[int], transposed: str = "False", groups: str = "1", extra: str = "[0, 0]") -> float:
    values = ["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", transposed, extra, groups]
    flops = formula_cost("aten::convolution", [x, w, [w[0]], [], [], [], [], [], []], CONV, values).flops
    assert flops is not None
    return flops


def test_a_convolution_applies_its_weights_to_every_output() -> None:
    assert conv([2, 6, 9, 9], [8, 6, 3, 3]) == 2 * (6 * 9) * (2 * 8 * 5 * 5)


def test_a_weight_has_the_channels_of_one_group() -> None:
    assert conv([2, 6, 9, 9], [8, 3, 3, 3], groups="2") == 2 * (3 * 9) * (2 * 8 * 5 * 5)


def test_a_transposed_convolution_applies_its_weights_to_every_input() -> None:
    assert conv([2, 6, 9, 9], [6, 4, 3, 3], "True", "2") == 2 * (4 * 9) * (2 * 6 * 9 * 9)
    values = ["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "True", "[1, 1]", "2"]
    dims: list[object] = [[2, 6, 9, 9], [6, 4, 3, 3], [], [], [], [], [], [], []]
    found = formula_cost("aten::convolution", dims, [FLOAT, FLOAT, "", *CONV[3:]], values)
    assert found.bytes == 4 * (
        2 * 6 * 81 + 6 * 4 * 9 + 2 * 8 * 18 * 18
    )  # 8 channels, (9 - 1) * 2 - 2 + 3 + 1 wide


def test_a_convolution_takes_one_input_without_a_batch() -> None:
    assert conv([6, 9, 9], [8, 6, 3, 3]) == 2 * (6 * 9) * (8 * 5 * 5)


def test_the_inner_convolution_has_its_groups_at_the_same_position() -> None:
    values = ["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "True", "[1, 1]", "2", "False", "False", "True", "True"]
    dims: list[object] = [[2, 6, 9, 9], [6, 4, 3, 3], *[[]] * 11]
    found = formula_cost("aten::_convolution", dims, [FLOAT, FLOAT, "", *CONV[3:], *[SCALAR] * 4], values)
    assert found.bytes == 4 * (2 * 6 * 81 + 6 * 4 * 9 + 2 * (2 * 4) * 18 * 18)


def test_cudnn_has_the_padding_before_the_stride() -> None:
    found = formula_cost(
        "aten::cudnn_convolution",
        [[1, 3, 8, 8], [4, 3, 3, 3], [], [], [], [], [], [], []],
        [FLOAT, FLOAT, LIST, LIST, LIST, SCALAR, SCALAR, SCALAR, SCALAR],
        ["", "", "[0, 0]", "[3, 3]", "[1, 1]", "1", "False", "False", "True"],
    )
    assert found.flops == 2 * 27 * 4 * 2 * 2


@pytest.mark.parametrize(
    ("mask", "times", "moved"),
    [
        ("[True, True, True]", 2, (128 + 108 + 192) + (128 + 192 + 108) + (128 + 4)),
        ("[False, True, False]", 1, 128 + 192 + 108),
        ("[False, False, True]", 0, 128 + 4),
    ],
)
def test_a_gradient_that_is_not_wanted_is_not_computed(mask: str, times: int, moved: int) -> None:
    go, x, w = [2, 4, 4, 4], [2, 6, 4, 4], [4, 3, 3, 3]
    values = ["", "", "", "[4]", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "2", mask]
    types = [FLOAT] * 3 + [LIST] * 4 + [SCALAR, LIST, SCALAR, LIST]
    found = formula_cost("aten::convolution_backward", [go, x, w] + [[]] * 8, types, values)
    assert found.flops == times * 2 * 27 * 128
    assert found.bytes == 4 * moved


def test_old_traces_do_not_contain_the_stride_of_a_convolution() -> None:
    with pytest.raises(UnknownCostError, match="Concrete Inputs"):
        formula_cost(
            "aten::cudnn_convolution", [[1, 3, 8, 8], [4, 3, 3, 3]] + [[]] * 4, [FLOAT, FLOAT] + [LIST] * 4
        )


SDPA = [BF16, BF16, BF16, "", SCALAR, SCALAR]


def attention(q: list[int], k: list[int], v: list[int], causal: bool) -> float:
    values = ["", "", "", "", "0.", str(causal)]
    flops = formula_cost("aten::scaled_dot_product_attention", [q, k, v, [], [], []], SDPA, values).flops
    assert flops is not None
    return flops


def test_attention_is_two_products_of_the_query_heads() -> None:
    assert attention([2, 8, 10, 4], [2, 8, 20, 4], [2, 8, 20, 6], False) == 2 * 2 * 8 * 10 * 20 * (4 + 6)


def test_grouped_queries_share_keys_that_are_read_once() -> None:
    q, kv = [2, 8, 10, 4], [2, 2, 20, 4]
    found = formula_cost(
        "aten::scaled_dot_product_attention", [q, kv, kv, [], [], []], SDPA, ["", "", "", "", "0.", "False"]
    )
    assert found.flops == 2 * 2 * 8 * 200 * 8
    assert found.bytes == 2 * (640 + 2 * 320 + 640)


def test_causal_attention_computes_a_triangle() -> None:
    assert attention([1, 1, 10, 4], [1, 1, 10, 4], [1, 1, 10, 4], True) == 2 * 50 * 8
    assert attention([1, 1, 4, 4], [1, 1, 10, 4], [1, 1, 10, 4], True) == 2 * 8 * 8
    assert attention([1, 1, 10, 4], [1, 1, 4, 4], [1, 1, 4, 4], True) == 2 * (8 + 6 * 4) * 8


def test_backward_attention_executes_more_than_it_needs() -> None:
    shape = [1, 2, 10, 4]
    types = [BF16] * 6 + ["", "", SCALAR, SCALAR, SCALAR, SCALAR]
    values = [""] * 8 + ["10", "10", "0.", "False"]
    dims = [shape] * 5 + [[1, 2, 10]] + [[]] * 6
    found = formula_cost("aten::_scaled_dot_product_flash_attention_backward", dims, types, values)
    assert (found.flops, found.needed) == (2 * 2 * 100 * (12 + 8), 2 * 2 * 2 * 100 * 8)


def test_packed_sequences_without_lengths_are_unknown() -> None:
    shape = [1, 10, 2, 4]
    types = [BF16, BF16, BF16, "int", "int"] + [SCALAR] * 5
    values = ["", "", "", "", "", "10", "10", "0.", "False", "False"]
    with pytest.raises(UnknownCostError, match="lengths"):
        formula_cost("aten::_flash_attention_forward", [shape] * 3 + [[3], [3]] + [[]] * 5, types, values)


def test_elementwise_work_follows_the_broadcast_output() -> None:
    found = formula_cost("aten::add", [[8, 1], [4], []], [BF16, FLOAT, SCALAR])
    assert (found.flops, found.bytes, found.unit) == (32, 2 * 8 + 4 * 4 + 4 * 32, "vector")
    assert (
        formula_cost("aten::mul", [[8], []], [BF16, "double"]).bytes == 2 * 8 + 8 + 2 * 8
    )  # a number does not promote
    assert formula_cost("aten::eq", [[8], []], ["long int", SCALAR]).bytes == 8 * 8 + 8
    assert formula_cost("aten::add_", [[8], [8], []], [BF16, FLOAT, SCALAR]).bytes == 2 * 8 + 4 * 8 + 2 * 8
    assert formula_cost("aten::addcmul", [[8], [8], [8]], [FLOAT] * 3).flops == 16
    assert (
        formula_cost("aten::clamp_min", [[8], [], [8]], [FLOAT, SCALAR, FLOAT]).bytes == 4 * 16
    )  # the last is the output
    with pytest.raises(UnknownCostError, match="can't be broadcast"):
        formula_cost("aten::add", [[8], [3], []], [FLOAT, FLOAT, SCALAR])


@pytest.mark.parametrize(
    ("name", "values", "out"),
    [
        ("aten::sum", ["", "[-1]", "False", ""], 8),
        ("aten::sum", ["", "[0, 1]", "False", ""], 1),
        ("aten::mean", ["", "[]", "False", ""], 1),
        ("aten::amax", ["", "[0]", "True"], 4),
    ],
)
def test_a_reduction_reads_its_input_and_writes_its_result(name: str, values: list[str], out: int) -> None:
    found = formula_cost(
        name, [[8, 4]] + [[]] * (len(values) - 1), [FLOAT, LIST, SCALAR, ""][: len(values)], values
    )
    assert (found.flops, found.bytes) == (32, 4 * (32 + out))


def test_a_sum_that_names_a_type_is_one_number() -> None:
    assert formula_cost("aten::sum", [[8, 4], []], [FLOAT, SCALAR], ["", "6"]).bytes == 4 * (32 + 1)


def test_a_running_sum_keeps_the_shape() -> None:
    found = formula_cost("aten::cumsum", [[8, 4], [], []], [FLOAT, SCALAR, ""], ["", "1", ""])
    assert (found.flops, found.bytes) == (32, 4 * (32 + 32))


def test_max_of_rows_writes_values_and_indices() -> None:
    found = formula_cost("aten::max", [[8, 4], [], []], [FLOAT, SCALAR, SCALAR], ["", "1", "False"])
    assert found.bytes == 4 * 32 + (4 + 8) * 8
    assert (
        formula_cost("aten::argmax", [[8, 4], [], []], [FLOAT, SCALAR, SCALAR], ["", "1", "False"]).bytes
        == 128 + 64
    )
    assert (
        formula_cost("aten::max", [[8], [8]], [FLOAT, FLOAT], ["", ""]).bytes == 4 * 24
    )  # of two tensors: elementwise


def test_norms_and_softmax_have_their_operations_per_element() -> None:
    values = ["", "", "", "", "", "True", "0.1", "1e-05"]
    dims = [[4, 3, 5, 5], [3], [3], [3], [3], [], [], []]
    types = [FLOAT] * 5 + [SCALAR] * 3
    training = formula_cost("aten::native_batch_norm", dims, types, values)
    values[5] = "False"
    inference = formula_cost("aten::native_batch_norm", dims, types, values)
    assert (training.flops, inference.flops) == (5 * 300 + 18, 2 * 300 + 18)
    assert training.bytes == inference.bytes == 4 * (600 + 12)
    layer = formula_cost("aten::native_layer_norm", [[6, 8], [], [8], [8], []], [BF16, LIST, BF16, BF16, SCALAR])
    assert (layer.flops, layer.bytes) == (5 * 48 + 6 * 6, 2 * (96 + 16))
    soft = formula_cost("aten::_softmax", [[6, 8], [], []], [BF16, SCALAR, SCALAR], ["", "-1", "True"])
    assert (soft.flops, soft.bytes) == (144, 48 * 2 + 48 * 4)


def test_a_group_norm_has_statistics_for_each_group_of_each_sample() -> None:
    values = ["", "", "", "4", "6", "25", "3", "1e-05"]  # 4 samples, 6 channels of 25, in 3 groups
    found = formula_cost(
        "aten::native_group_norm", [[4, 6, 5, 5], [6], [6], *[[]] * 5], [FLOAT] * 3 + [SCALAR] * 5, values
    )
    assert (found.flops, found.bytes) == (5 * 600 + 6 * (4 * 3), 4 * (2 * 600 + 2 * 6))


def test_copies_only_move() -> None:
    cast = formula_cost("aten::copy_", [[8], [8], []], [FLOAT, BF16, SCALAR])
    assert (cast.flops, cast.bytes, cast.unit) == (0, 4 * 8 + 2 * 8, None)
    kernel = "void CatArrayBatchedCopy<OpaqueType<2u>, unsigned int, 3, 64, 64>(float*)"
    cat = formula_cost("aten::cat", [[[8, 2], [8, 3]], []], ["TensorList", SCALAR], ["", "1"], kernel=kernel)
    assert cat.bytes == 2 * 2 * 40
    rows = formula_cost("aten::embedding", [[100, 16], [5]], [BF16, "long int"])
    assert rows.bytes == 2 * 5 * 16 * 2 + 5 * 8
    with pytest.raises(UnknownCostError, match="list of tensors"):
        formula_cost("aten::cat", [[[8, 2], [8, 3]], []], ["TensorList", SCALAR], ["", "1"], kernel="cat_kernel")


def test_lists_of_tensors_have_the_cost_of_their_members() -> None:
    kernel = "void multi_tensor_apply_kernel<TensorListMetadata<2>, BinaryOpListAlphaFunctor<float, 2>>()"
    lists = [[[8], [4]], [[8], [4]], []]
    added = formula_cost("aten::_foreach_add_", lists, ["TensorList", "TensorList", SCALAR], kernel=kernel)
    assert (added.flops, added.bytes) == (12, 4 * 36)
    copied = formula_cost("aten::_foreach_copy_", lists, ["TensorList", "TensorList", SCALAR], kernel=kernel)
    assert (copied.flops, copied.bytes) == (0, 4 * 24)
    adam = formula_cost("aten::_fused_adamw_", [[[8], [4]]] * 5, ["TensorList"] * 5, kernel=kernel)
    assert (adam.flops, adam.bytes) == (12 * 12, 7 * 12 * 4)


def test_a_generated_kernel_moves_its_arguments_and_has_unknown_flops() -> None:
    found = formula_cost("triton_poi_fused_add_0", [[8], [8], []], [BF16, FLOAT, SCALAR])
    assert (found.flops, found.bytes, found.estimated) == (None, 2 * 8 + 4 * 8, True)
    assert found.reason


@pytest.mark.parametrize("kernel", ["multi_tensor_apply_kernel<TensorListMetadata<2>>", "float_kernel", "float"])
def test_a_kernel_without_a_type_in_its_arguments_leaves_lists_unknown(kernel: str) -> None:
    with pytest.raises(UnknownCostError, match="list of tensors"):
        formula_cost(
            "aten::_foreach_add_", [[[8]], [[8]], []], ["TensorList", "TensorList", SCALAR], kernel=kernel
        )


@pytest.mark.parametrize("dims", [[[8, -1], [8, 8]], [["x"], [8]], [[1.5], [8]], [[2**40, 2**40], [8]]])
def test_damaged_shapes_are_unknown(dims: list[object]) -> None:
    with pytest.raises(UnknownCostError):
        formula_cost("aten::mm", dims, [FLOAT, FLOAT])
