"""Advice about kernels that could be fewer or others: where it applies, does not, and nearly does."""

from __future__ import annotations

from typing import Any

import pytest

from tests.analyses.overview.advice_traces import get_advice, measure_share
from tests.analyses.overview.kernel_calls import (
    ALIGN1,
    ALIGN8,
    H100,
    SM90,
    STEP,
    SYNC,
    B,
    Call,
    D,
    K,
    M,
    N,
    attention,
    chain,
    events,
    product,
)
from tests.model.work.operator_events import BF16, FLOAT, kernel, launch, operator
from tests.support.traces import read
from torch_tb_profiler.analyses.overview.finding import Advice
from torch_tb_profiler.analyses.overview.gains import measure_gains
from torch_tb_profiler.analyses.overview.kernel_rules.attention import FALLBACK
from torch_tb_profiler.base.intervals import subtract, total
from torch_tb_profiler.model.trace import Trace

BF16_RATE, BANDWIDTH = 989.4e12, 3352e9
AMPERE = {**H100, "computeMajor": 8}


def find_advice(id: str, *calls: Call, device: dict[str, Any] = H100) -> Advice | None:
    return get_advice(read([STEP, SYNC, *events(*calls)], deviceProperties=[device]), id)


def gone_us(found: Advice) -> float:
    """Return the us of device work that the advice removes."""
    return total(subtract(found.finding.during, found.finding.passes)) / 1_000


# ---- matrix products ------------------------------------------------------------------------------------


def test_unaligned_products_gain_what_is_beyond_their_roof() -> None:
    found = find_advice("slow_products", product(n=4099))
    assert found is not None and found.finding.case == "alignment"
    roof = 1e6 * 2 * 4096 * 4096 * 4099 / BF16_RATE
    assert measure_share(found) * 10_000 == pytest.approx(1_200 - roof, abs=0.002)
    assert (found.finding.subject, found.finding.place) == (
        "GEMM bf16 128x128 nn, CUTLASS sm75, align1",
        "[[4096,4096],[4096,4099]]",
    )


@pytest.mark.parametrize(
    ("call", "device"),
    [
        (product(n=4096), H100),  # sizes are multiples of 8: they are not why
        (product(ALIGN8), H100),  # 8 elements of 2 bytes are all that is loaded at once
        (product(name="lib::mystery"), H100),  # what it computes is not known
        (product(time=339), H100),  # 200 us beyond its roof are a fiftieth of the step
        (product(), {"id": 0, "name": "Card", "computeMajor": 9, "computeMinor": 0}),  # no peaks, no roof
        (("aten::convolution", [[8, 3, 224, 224], [64, 3, 7, 7]], BF16, ALIGN1, 1_200), H100),  # no known roof
    ],
)
def test_other_products_are_no_matter_of_alignment(call: Call, device: dict[str, Any]) -> None:
    aligned = product(SM90, 4096, time=150)  # the library has kernels for this device
    assert find_advice("slow_products", product(), aligned) is not None
    assert find_advice("slow_products", call, aligned, device=device) is None


@pytest.mark.parametrize(
    ("dims", "odd"),
    [
        ([[4099, 4096], [4096, 4096]], True),  # the last but one size, too
        ([[1], [4096, 4096], [4096, 4096]], False),  # a vector that is added is no operand
    ],
)
def test_the_sizes_of_matrices_are_what_is_aligned(dims: list[list[int]], odd: bool) -> None:
    name = "aten::mm" if len(dims) == 2 else "aten::addmm"
    found = find_advice("slow_products", (name, dims, BF16, ALIGN1, 1_200), product(SM90, 4096, time=150))
    assert (found is not None) == odd


@pytest.mark.parametrize(
    ("kernel_name", "alone"),
    [
        ("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_nn_align4>(Params)", False),  # 4 of 4 bytes
        ("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_nn_align2>(Params)", True),
    ],
)
def test_alignment_counts_bytes(kernel_name: str, alone: bool) -> None:
    found = find_advice(
        "slow_products",
        ("aten::mm", [[2048, 2048], [2048, 2050]], FLOAT, kernel_name, 1_200),
        product(SM90, 4096, time=150),
    )
    assert (found is not None) == alone


@pytest.mark.parametrize(
    ("others", "major", "advised_"),
    [
        ((), 9, True),  # all kernels are of Ampere
        ((product(SM90, 4096, time=150),), 9, False),  # the library has kernels for this GPU
        ((product("mystery_tensorop_gemm", 4096, time=150),), 9, False),  # of which nobody knows
        ((), 10, True),  # a B200, too, has products of its own
        ((), 8, False),  # an A100: they are its own
        ((), 12, False),  # NVIDIA's libraries use those of Ampere there
    ],
)
def test_an_old_library_has_no_product_for_the_device(
    others: tuple[Call, ...], major: int, advised_: bool
) -> None:
    calls = (product(ALIGN8, 4096), *others)
    found = find_advice("slow_products", *calls, device={**H100, "computeMajor": major})
    assert (found.finding.case if found else None) == ("older" if advised_ else None)


def test_products_of_volta_are_old_for_an_a100() -> None:
    found = find_advice("slow_products", product("volta_s884gemm_fp16_128x128_ldg8_f2f_nn", 4096), device=AMPERE)
    assert found is not None and found.finding.case == "older"


# ---- attention ------------------------------------------------------------------------------------------


def test_unfused_attention_gains_what_is_beyond_a_fused_kernel() -> None:
    """It does the arithmetic of both products and moves q, k, v and the result, but no scores."""
    found = find_advice("unfused_attention", *attention())
    assert found is not None and (found.finding.case, found.finding.value) == ("operators", 1)
    compute = 1e6 * 2 * B * M * N * (K + D) / BF16_RATE
    moved = 1e6 * 2 * B * (M * K + K * N + N * D + M * D) / BANDWIDTH
    assert gone_us(found) == pytest.approx(1_500 - max(compute, moved), abs=0.01)


def test_of_few_keys_fused_attention_moves_more_than_it_computes() -> None:
    """Two bytes an element of q, k, v and the result."""
    keys = 48
    calls = (
        ("aten::baddbmm", [[B, M, keys], [B, M, K], [B, K, keys]], BF16, SM90, 300),
        ("aten::_softmax", [[4, 16, M, keys], [], []], BF16, "softmax", 500),
        ("aten::bmm", [[B, M, keys], [B, keys, D]], BF16, SM90, 300),
    )
    found = find_advice("unfused_attention", *calls)
    assert found is not None
    moved = 1e6 * 2 * B * (M * K + K * keys + keys * D + M * D) / BANDWIDTH
    assert gone_us(found) == pytest.approx(1_100 - moved, abs=0.01)


BACKWARD: tuple[Call, ...] = (
    ("aten::bmm", [[B, N, M], [B, M, D]], BF16, SM90, 300),  # gradient of v
    ("aten::bmm", [[B, M, D], [B, D, N]], BF16, SM90, 300),  # gradient of the weights
    ("aten::_softmax_backward_data", [[4, 16, M, N], [4, 16, M, N], [], []], BF16, "softmax", 500),
    ("aten::mul", [[B, M, N], []], BF16, "scale", 400),
    ("aten::bmm", [[B, K, M], [B, M, N]], BF16, SM90, 300),
    ("aten::bmm", [[B, M, N], [B, N, K]], BF16, SM90, 300),
)


def test_backward_of_unfused_attention_counts_too() -> None:
    found = find_advice("unfused_attention", *attention(), *BACKWARD)
    assert found is not None and found.finding.value == 2
    compute = 1e6 * 2 * B * M * N * (K + D) / BF16_RATE
    # Forward has no mask. Whether it has one, backward doesn't say, and twice the products may be half as many.
    assert gone_us(found) == pytest.approx(1_500 + 2_100 - compute - 2 * compute / 2, abs=0.02)


@pytest.mark.parametrize(("calls", "widths"), [(BACKWARD[1:], D + 2 * K), (BACKWARD[:-1], 2 * D + K)])
def test_backward_may_begin_or_end_with_a_product_of_its_own(calls: tuple[Call, ...], widths: int) -> None:
    """No call before the first of them, or behind the last one, is part of it."""
    found = find_advice("unfused_attention", *calls)
    assert found is not None and found.finding.value == 1
    compute = 1e6 * B * M * N * widths / BF16_RATE  # half of the pairs, as of a causal mask
    assert gone_us(found) == pytest.approx(1_800 - compute, abs=0.02)


def test_calls_of_another_thread_are_no_part_of_attention() -> None:
    trace_events = [STEP, SYNC, *events(*attention(), ("aten::mul", [[B, M, N], []], BF16, "scale", 10))]
    for each in trace_events[-3:-1]:  # the last operator and its launch
        each["tid"] = 2
    found = get_advice(read(trace_events, deviceProperties=[H100]), "unfused_attention")
    assert found is not None and found.finding.value == 1


@pytest.mark.parametrize(
    "calls",
    [
        attention(softmax="aten::_log_softmax"),  # of classes
        attention(scores=N // 2),  # not what the product computed
        attention(keys=N // 2),  # not what the softmax computed
        attention(between="aten::mystery"),  # nobody knows what is in between
        attention()[:3],  # weights of attention alone
        (*attention()[:3], ("aten::mm", [[B * M, N], [N, D]], BF16, SM90, 300)),  # a classifier
    ],
)
def test_another_softmax_is_no_attention(calls: tuple[Call, ...]) -> None:
    assert find_advice("unfused_attention", *calls) is None


def test_without_peaks_nobody_knows_what_fused_attention_would_take() -> None:
    assert find_advice("unfused_attention", *attention(), device={"id": 0, "name": "Card"}) is None


def test_attention_that_falls_back_is_asked_for_other_inputs() -> None:
    around = operator("aten::_scaled_dot_product_attention_math", 5, 80)
    trace = read([STEP, SYNC, around, *events(*attention())], deviceProperties=[H100])
    found = get_advice(trace, "unfused_attention")
    assert found is not None and found.finding.case == "fallback"


def fallback(dtype: str, kernel_name: str) -> list[dict[str, Any]]:
    """Forward of `scaled_dot_product_attention` in float32, and its backward pass."""
    scores = [B, M, N]
    forward: list[Call] = [
        ("aten::mul", [[B, M, K], []], dtype, "scale", 20),
        ("aten::bmm", [[B, M, K], [B, K, N]], dtype, kernel_name, 300),
        ("aten::add", [scores, [M, N]], dtype, "mask", 400),
        ("aten::_softmax", [scores, [], []], dtype, "softmax", 500),
        ("aten::all", [scores, [], []], dtype, "reduce", 100),  # between softmax and product, as of _safe_softmax
        ("aten::bmm", [scores, [B, N, D]], dtype, kernel_name, 300),
    ]
    drawn = [STEP, SYNC, *events(*forward, *(each[:2] + (dtype, *each[3:]) for each in BACKWARD))]
    numbers = {"Sequence number": 7, "Fwd thread id": 0}
    around = {**operator(FALLBACK, 9, 10 * len(forward)), "args": numbers}
    task = operator("autograd::engine::evaluate_function: SafeSoftmaxBackward0", 10 * len(forward) + 9.5, 60)
    task["args"] = {"Sequence number": 7, "Fwd thread id": 1}
    return [*drawn, around, task]


def test_a_fallback_goes_with_casts_masks_and_backward_and_may_run_in_16_bits() -> None:
    """As PyTorch's own in float32: what it runs between its products isn't all elementwise."""
    found = get_advice(read(fallback(FLOAT, "sgemm"), deviceProperties=[H100]), "unfused_attention")
    assert found is not None and (found.finding.case, found.finding.value) == ("fallback", 1)
    causal = (
        1e6 * 3 * B * M * N * (K + D) / BF16_RATE
    )  # 2 operations for half of the pairs, forward and twice that
    assert gone_us(found) == pytest.approx(1_620 + 2_100 - causal, abs=0.02)


def test_attention_in_float32_may_run_in_tf32() -> None:
    calls = [(name, dims, FLOAT, "sgemm" if "bmm" in name else k, 10 * us) for name, dims, _, k, us in attention()]
    found = find_advice("unfused_attention", *calls)
    assert found is not None
    assert gone_us(found) == pytest.approx(15_000 - 1e6 * 2 * B * M * N * (K + D) / (BF16_RATE / 2), abs=0.02)


def test_masked_attention_may_be_causal() -> None:
    found = find_advice("unfused_attention", *attention(between="aten::masked_fill"))
    assert found is not None
    assert gone_us(found) == pytest.approx(1_500 - 1e6 * B * M * N * (K + D) / BF16_RATE, abs=0.02)


# ---- chains of elementwise kernels ----------------------------------------------------------------------


def test_a_chain_gains_its_time_beyond_one_kernel() -> None:
    """Of tensors this small, no faster than the shortest of its kernels."""
    found = find_advice("elementwise_chains", *chain("add", "mul", "relu"))
    assert found is not None and found.finding.value == 1
    assert gone_us(found) == pytest.approx(900)
    assert found.finding.window == (1_000_000, 2_200_000)


@pytest.mark.parametrize(("inputs", "kind", "width"), [(1, FLOAT, 4), (2, FLOAT, 4), (2, BF16, 2)])
def test_one_kernel_moves_at_least_a_tensor_in_and_one_out(inputs: int, kind: str, width: int) -> None:
    """Every other input may be the same tensor, as `y` in `sigmoid(x) * y + tanh(x)` again and again."""
    names = ("add", "mul", "sub") if inputs == 2 else ("exp", "abs", "neg")
    size = 80_000_000
    calls = [(f"aten::{name}", [[size]] * inputs, kind, "vectorized", 400.0) for name in names]
    found = find_advice("elementwise_chains", *calls, ("aten::mystery", [[1]], FLOAT, "short", 1.0))
    fused = 2 * width * size / BANDWIDTH * 1e6
    assert found is not None and fused < 400
    assert gone_us(found) == pytest.approx(1_200 - fused, abs=0.1)


def test_a_chain_that_ends_with_truth_values_writes_a_byte_for_each() -> None:
    size = 80_000_000
    calls = [(f"aten::{name}", [[size]], FLOAT, "vectorized", 400.0) for name in ("exp", "abs", "isnan")]
    found = find_advice("elementwise_chains", *calls, ("aten::mystery", [[1]], FLOAT, "short", 1.0))
    assert found is not None
    assert gone_us(found) == pytest.approx(1_200 - (4 + 1) * size / BANDWIDTH * 1e6, abs=0.1)


def test_one_kernel_for_a_chain_is_one_launch_for_the_host() -> None:
    """The host takes 150 us for each call and is never ahead: the device's 300 us are the least of it."""
    calls = [(f"aten::{name}", [[1000]], FLOAT, "vectorized", 100.0) for name in ("exp", "abs", "neg")]
    trace_events = [STEP, *events(*calls, host=140)]
    for each in trace_events[1:]:
        if each["cat"] == "cpu_op":
            each["dur"] = 140
    found = get_advice(read(trace_events, deviceProperties=[H100]), "elementwise_chains")
    assert found is not None and found.gain is not None and found.gain.ns >= 300_000


@pytest.mark.parametrize(
    "calls",
    [
        chain("add", "mul", "relu")[:2],  # two are no chain
        chain("add", "add", "add"),  # most likely three tensors
        chain("add", "mul", "relu", sizes=(1000, 1000, 999)),
        chain("add", "mystery", "relu"),
        [*chain("add", "mul", "relu")[:2], product(SM90, 4096), chain("add", "mul", "relu")[2]],
    ],
)
def test_other_kernels_in_a_row_are_no_chain(calls: list[Call]) -> None:
    assert find_advice("elementwise_chains", *calls) is None


def test_a_chain_ends_with_the_step() -> None:
    """The second step goes on with the same operators: that makes two chains, as its input comes later."""
    calls = chain("add", "mul", "relu")
    later = [{**each, "ts": each["ts"] + 10_000} for each in events(*calls)]
    for each in later:
        each["args"] = {**each["args"], "correlation": each["args"].get("correlation", 0) + 100}
    two_steps = [{**STEP, "dur": 9_990}, {**STEP, "name": "ProfilerStep#2", "ts": 10_000, "dur": 9_990}]
    found = get_advice(read([*two_steps, *events(*calls), *later], deviceProperties=[H100]), "elementwise_chains")
    assert found is not None and found.finding.value == 2


def test_kernels_of_an_optimizer_or_of_two_streams_are_no_chain() -> None:
    trace_events = [STEP, SYNC, *events(*chain("add", "mul", "relu"))]
    mark = {**STEP, "name": "Optimizer.step#SGD.step", "ts": 5, "dur": 50}
    assert get_advice(read([*trace_events, mark], deviceProperties=[H100]), "elementwise_chains") is None
    trace_events[4]["args"]["stream"] = trace_events[4]["tid"] = 8
    assert get_advice(read(trace_events, deviceProperties=[H100]), "elementwise_chains") is None


def test_kernels_of_two_devices_are_no_chain() -> None:
    trace_events = [STEP, SYNC, *events(*chain("add", "mul", "relu"))]
    trace_events[4]["args"]["device"] = trace_events[4]["pid"] = 1
    assert get_advice(read(trace_events, deviceProperties=[H100]), "elementwise_chains") is None


def test_a_call_of_two_kernels_is_no_part_of_a_chain() -> None:
    trace_events = [STEP, SYNC, *events(*chain("add", "mul", "relu")), kernel("vectorized", 2_300, 100, 2)]
    assert get_advice(read(trace_events, deviceProperties=[H100]), "elementwise_chains") is None


# ---- optimizers -----------------------------------------------------------------------------------------


def advise_step(count: int = 8, mark: str = "Optimizer.step#SGD.step", **changes: Any) -> Advice | None:
    name, kernel_name = changes.get("name", "aten::add_"), changes.get("kernel", "vectorized")
    time, host = changes.get("time", 2), changes.get("host", 100)
    calls: list[Call] = [(name, [[1000], [1000], []], FLOAT, kernel_name, time)] * count
    around = {**STEP, "name": mark, "ts": 5, "dur": 785}
    return get_advice(
        read([STEP, SYNC, around, *events(*calls, host=host)], deviceProperties=[H100]), "optimizer_loop"
    )


def test_an_optimizer_that_launches_for_each_parameter_makes_the_device_wait() -> None:
    """Calls 110 us apart, each with a kernel of 2 us right after its launch; 5 us remain."""
    found = advise_step()
    assert found is not None and (found.finding.case, found.finding.value) == ("launches", 8)
    assert found.finding.subject == "SGD.step"
    assert gone_us(found) == pytest.approx(7 + 7 * 107 + 5)


def test_where_the_device_never_waits_the_kernels_are_what_is_slow() -> None:
    found = advise_step(time=900, host=0)
    assert found is not None and found.finding.case == "kernels"
    assert gone_us(found) == pytest.approx(8 * (900 - 1e6 * 12_000 / BANDWIDTH), abs=0.02)


@pytest.mark.parametrize("gap", [0, 5])
def test_the_gaps_between_the_kernels_of_an_optimizer_are_saved_too(gap: int) -> None:
    """Eight kernels of 90 us; the time before the first and after the last isn't theirs."""
    calls: list[Call] = [("aten::add_", [[1000], [1000], []], FLOAT, "vectorized", 90)] * 8
    trace_events = events(*calls)
    for number, each in enumerate(one for one in trace_events if one["cat"] == "kernel"):
        each["ts"] = 1_000 + number * (90 + gap)
    mark = {**STEP, "name": "Optimizer.step#SGD.step", "ts": 5, "dur": 785}
    found = get_advice(read([STEP, SYNC, mark, *trace_events], deviceProperties=[H100]), "optimizer_loop")
    assert found is not None and found.gain is not None
    assert (found.finding.case, found.gain.basis) == ("kernels", "share")
    saved = 8 * (90 - 1e6 * 12_000 / BANDWIDTH) + 7 * gap
    assert gone_us(found) == pytest.approx(saved, abs=0.02)


@pytest.mark.parametrize(("time", "found"), [(3, True), (10, True), (11, False)])
def test_short_kernels_of_an_optimizer_are_slow_without_shapes_too(time: int, found: bool) -> None:
    """Sixty kernels, mostly their start; what a longer one needs is unknown."""
    trace_events = events(*[("aten::add_", [[1000], [1000], []], FLOAT, "vectorized", time)] * 60)
    for number, each in enumerate(one for one in trace_events if one["cat"] == "kernel"):
        each["ts"] = 1_000 + number * (time + 1)
    for each in trace_events:
        each.get("args", {}).pop("Input Dims", None)
    mark = {**STEP, "name": "Optimizer.step#SGD.step", "ts": 5, "dur": 785}
    advised = get_advice(read([STEP, SYNC, mark, *trace_events], deviceProperties=[H100]), "optimizer_loop")
    assert (advised is not None) == found
    if advised is not None:
        assert advised.finding.case == "kernels"
        assert measure_share(advised) * 10_000 == pytest.approx(60 * time + 59, abs=0.02)


def draw_update(*calls: Call, apart: float) -> tuple[Trace, float]:
    """Return a step in which an optimizer makes these calls one after the other, and its us.

    Each takes `apart` us of the host and has its kernel 3 us after the launch, or once the one before is done.
    """
    drawn, free = [], 0.0
    for number, (name, dims, kind, kernel_name, time) in enumerate(calls, 1):
        begin = 20 + apart * (number - 1)
        at = max(free, begin + 4)
        drawn += [operator(name, begin, apart - 1, dims=dims, types=[kind] * len(dims)), launch(begin + 1, number)]
        drawn.append(kernel(kernel_name, at, time, number))
        free = at + time
    host = 20 + apart * len(calls)
    end = max(host + 1, free) + 10
    mark = {**STEP, "name": "Optimizer.step#AdamW.step", "ts": 10, "dur": host - 10}
    around = [{**STEP, "dur": end}, mark, {**SYNC, "ts": host, "dur": end - 2 - host}]
    return read([*around, *drawn], deviceProperties=[H100]), end


ADAM = (
    ("mul_", 2),
    ("lerp_", 3),
    ("mul_", 2),
    ("addcmul_", 4),
    ("sqrt", 2),
    ("div", 2),
    ("add_", 2),
    ("addcdiv_", 4),
)
"""Operators of a step of Adam for each parameter, and how many tensors of its size each reads and writes."""


def adam(elements: int, factor: float = 1.0, parameters: int = 8) -> list[Call]:
    """Return calls whose kernels take `factor` times as long as their memory traffic at peak, at least 2 us."""
    return [
        (
            f"aten::{name}",
            [[elements]] * (moved - 1),
            FLOAT,
            "vectorized",
            max(2, factor * passes(elements, moved)),
        )
        for name, moved in ADAM
        for _ in range(parameters)
    ]


def passes(elements: int, count: int) -> float:
    """Return the us in which that many tensors in float32 are read or written at peak."""
    return 1e6 * 4 * elements * count / BANDWIDTH


@pytest.mark.parametrize("apart", [3, 10, 30])
@pytest.mark.parametrize("elements", [1_000, 100_000, 20_000_000])
def test_one_kernel_for_all_parameters_gains_no_more_than_is_said(apart: float, elements: int) -> None:
    """It reads parameters, gradients and both moments once, and writes all but the gradients: seven passes."""
    trace, before = draw_update(*adam(elements), apart=apart)
    fused = max(2, 8 * passes(elements, 7))
    _, after = draw_update(("aten::_fused_adam_", [[8 * elements]], FLOAT, "FusedAdam", fused), apart=5)
    found = get_advice(trace, "optimizer_loop")
    assert found is not None and found.gain is not None
    for gain in (found.gain, *measure_gains(trace, [found.finding])):  # with a replay and without
        assert gain.ns / 1_000 >= before - after
        # Parameters are read and written.
        assert gain.ns / 1_000 <= before - 8 * passes(elements, 2) + 0.1
    if apart == 3 and elements == 20_000_000:
        assert found.gain.ns / 1_000 == pytest.approx(8 * passes(elements, 21 - 2), rel=0.01)


def test_a_long_kernel_after_the_launches_of_an_optimizer_is_replaced_as_well() -> None:
    """The host makes 63 calls 30 us apart; the last kernel runs for 1.5 ms when all are made."""
    *short, (name, dims, kind, kernel_name, _) = adam(1_000)
    trace, before = draw_update(*short, (name, dims, kind, kernel_name, 1_500), apart=30)
    _, after = draw_update(("aten::_fused_adam_", [[8_000]], FLOAT, "FusedAdam", 2), apart=5)
    found = get_advice(trace, "optimizer_loop")
    assert found is not None and found.finding.case == "launches" and found.gain is not None
    for gain in (found.gain, *measure_gains(trace, [found.finding])):
        assert gain.ns / 1_000 >= before - after


def test_calls_count_by_step_of_the_optimizer() -> None:
    """Four in each of two steps are not worth a list, however many there are together."""
    calls: list[Call] = [("aten::add_", [[1000], [1000], []], FLOAT, "vectorized", 2)] * 8
    marks = [{**STEP, "name": "Optimizer.step#SGD.step", "ts": ts, "dur": 390} for ts in (5, 400)]
    trace = read([STEP, SYNC, *marks, *events(*calls, host=100)], deviceProperties=[H100])
    assert get_advice(trace, "optimizer_loop") is None


def test_other_optimizers_are_no_loop() -> None:
    assert advise_step(7) is None  # few parameters
    assert advise_step(kernel="multi_tensor_apply_kernel<Adam>") is None  # for lists
    assert advise_step(mark="forward") is None
    assert advise_step(mark="Optimizer.zero_grad#SGD.zero_grad") is None
