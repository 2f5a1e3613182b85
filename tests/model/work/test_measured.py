"""Tests of counters beside kernels: measured work replaces the model's, for an entire call or not at all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.model.work.operator_events import (
    BF16,
    counter_range,
    instruction_counters,
    kernel,
    launch,
    operator,
    traffic_counters,
    work_of,
)
from tests.support.traces import read
from torch_tb_profiler.analyses.roofline.table import WorkFilter, roofline_table

RELU = "void at::native::vectorized_elementwise_kernel<4, at::native::relu<float>>(int)"
MM: dict[str, Any] = {"dims": [[10, 20], [20, 30]], "types": ["float", "float"]}  # 12,000 FLOPs, 4,400 bytes


def test_measured_work_replaces_modeled_work_and_is_marked() -> None:
    done, names = work_of(
        operator("aten::mm", 0, 9, **MM), launch(1, 1), kernel("sgemm_32x32", 20, 5, 1),
        operator("lib::own", 30, 9), launch(31, 2), kernel(RELU, 40, 5, 2),
        operator("aten::mm", 50, 9, **MM), launch(51, 3), kernel("sgemm_32x32", 60, 5, 3),
        counter_range("sgemm_32x32", 0, {**instruction_counters(ffma=7000), **traffic_counters(3000, 1500)}),
        counter_range(RELU, 1, {**instruction_counters(dadd=50), **traffic_counters(1, 2)}),
        counter_range("sgemm_32x32", 2, {}),
    )  # fmt: skip
    assert names == ["aten::mm", "lib::own", "aten::mm"]
    assert done.flops.tolist() == [14_000, 50, 12_000]
    assert done.bytes.tolist() == [4500, 3, 4400]
    assert done.needed.tolist() == [12_000, 50, 12_000]  # what the mathematics needs does not depend on counters
    assert done.measured.tolist() == [True, True, False]
    assert [done.types[code] for code in done.type] == ["fp32", "fp64", "fp32"]
    assert done.matrix.tolist() == [True, False, True]
    assert done.reason.tolist() == [-1, -1, -1]


def test_a_call_of_two_kernels_is_measured_if_both_are() -> None:
    first, second = instruction_counters(ffma=10), instruction_counters(ffma=30)
    events = [
        operator("aten::mm", 0, 9, **MM), launch(1, 1), launch(2, 2),
        kernel("sgemm_32x32", 20, 30, 1), kernel(RELU, 50, 10, 2),
    ]  # fmt: skip
    done, _ = work_of(*events, counter_range("sgemm_32x32", 0, first), counter_range(RELU, 1, second))
    assert done.flops.tolist() == [80]
    assert done.bytes.tolist() == [4400]
    half, _ = work_of(*events, counter_range("sgemm_32x32", 0, first), counter_range(RELU, 1, {"other": 1}))
    assert half.flops.tolist() == [12_000]
    assert half.measured.tolist() == [False]


def test_each_kernel_has_its_own_counters() -> None:
    """Without counters a call of two kernels shares its work by their time: 30 us and 10 us."""
    events = [
        operator("aten::mm", 0, 9, **MM), launch(1, 1), launch(2, 2),
        kernel("sgemm_32x32", 20, 30, 1), kernel(RELU, 50, 10, 2),
    ]  # fmt: skip
    counts = [
        counter_range("sgemm_32x32", 0, instruction_counters(ffma=10)),
        counter_range(RELU, 1, instruction_counters(ffma=30)),
    ]
    for more, flops in (([], [9000, 3000]), (counts, [20, 60])):
        items = roofline_table(read([*events, *more]), "kernel", WorkFilter(), "").items
        assert items.flops.tolist() == flops
        assert items.bytes.tolist() == pytest.approx([3300, 1100])


def test_kernels_without_counted_work_share_bytes_by_time() -> None:
    events = [
        operator("lib::x", 0, 9),
        launch(1, 1),
        launch(2, 2),
        kernel(RELU, 20, 30, 1),
        kernel(RELU, 50, 10, 2),
    ]
    counts = [counter_range(RELU, at, {**instruction_counters(), **traffic_counters(0, 4)}) for at in (0, 1)]
    items = roofline_table(read([*events, *counts]), "kernel", WorkFilter(), "").items
    assert items.flops.tolist() == [0, 0]
    assert items.bytes.tolist() == [4, 4]


def test_ranges_that_can_not_be_matched_measure_nothing() -> None:
    done, _ = work_of(
        operator("aten::mm", 0, 9, dims=MM["dims"], types=[BF16, BF16]), launch(1, 1), kernel("g", 20, 5, 1),
        *(counter_range("g", at, instruction_counters(ffma=1)) for at in (0, 1)),
    )  # fmt: skip
    assert done.flops.tolist() == [12_000]
    assert not np.any(done.measured)
