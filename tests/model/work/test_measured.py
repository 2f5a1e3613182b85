"""Counters beside kernels: what they measured wins over the model, for the whole call or not at all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.model.work.drawn import BF16, counted, instructions, kernel, launch, operator, traffic, work_of
from tests.support.traces import read
from torch_tb_profiler.analyses.roofline.table import Filter, roofline_table

RELU = "void at::native::vectorized_elementwise_kernel<4, at::native::relu<float>>(int)"
MM: dict[str, Any] = {"dims": [[10, 20], [20, 30]], "types": ["float", "float"]}  # 12,000 FLOPs, 4,400 bytes


def test_measured_work_wins_and_says_so() -> None:
    done, names = work_of(
        operator("aten::mm", 0, 9, **MM), launch(1, 1), kernel("sgemm_32x32", 20, 5, 1),
        operator("lib::own", 30, 9), launch(31, 2), kernel(RELU, 40, 5, 2),
        operator("aten::mm", 50, 9, **MM), launch(51, 3), kernel("sgemm_32x32", 60, 5, 3),
        counted("sgemm_32x32", 0, {**instructions(ffma=7000), **traffic(3000, 1500)}),
        counted(RELU, 1, {**instructions(dadd=50), **traffic(1, 2)}),
        counted("sgemm_32x32", 2, {}),
    )  # fmt: skip
    assert names == ["aten::mm", "lib::own", "aten::mm"]
    assert done.flops.tolist() == [14_000, 50, 12_000]
    assert done.bytes.tolist() == [4500, 3, 4400]
    assert done.needed.tolist() == [12_000, 50, 12_000]  # what the mathematics needs is no matter of counters
    assert done.measured.tolist() == [True, True, False]
    assert [done.types[code] for code in done.type] == ["fp32", "fp64", "fp32"]
    assert done.matrix.tolist() == [True, False, True]
    assert done.reason.tolist() == [-1, -1, -1]


def test_a_call_of_two_kernels_is_measured_where_both_are() -> None:
    first, second = instructions(ffma=10), instructions(ffma=30)
    events = [
        operator("aten::mm", 0, 9, **MM), launch(1, 1), launch(2, 2),
        kernel("sgemm_32x32", 20, 30, 1), kernel(RELU, 50, 10, 2),
    ]  # fmt: skip
    done, _ = work_of(*events, counted("sgemm_32x32", 0, first), counted(RELU, 1, second))
    assert done.flops.tolist() == [80]
    assert done.bytes.tolist() == [4400]
    half, _ = work_of(*events, counted("sgemm_32x32", 0, first), counted(RELU, 1, {"other": 1}))
    assert half.flops.tolist() == [12_000]
    assert half.measured.tolist() == [False]


def test_kernels_have_what_was_counted_for_each() -> None:
    """Without counters a call of two kernels shares its work by their time: 30 us and 10 us."""
    events = [
        operator("aten::mm", 0, 9, **MM), launch(1, 1), launch(2, 2),
        kernel("sgemm_32x32", 20, 30, 1), kernel(RELU, 50, 10, 2),
    ]  # fmt: skip
    counts = [counted("sgemm_32x32", 0, instructions(ffma=10)), counted(RELU, 1, instructions(ffma=30))]
    for more, flops in (([], [9000, 3000]), (counts, [20, 60])):
        items = roofline_table(read([*events, *more]), "kernel", Filter(), "").items
        assert items.flops.tolist() == flops
        assert items.bytes.tolist() == pytest.approx([3300, 1100])


def test_where_nothing_is_counted_to_have_been_done_time_is_shared() -> None:
    events = [
        operator("lib::x", 0, 9),
        launch(1, 1),
        launch(2, 2),
        kernel(RELU, 20, 30, 1),
        kernel(RELU, 50, 10, 2),
    ]
    counts = [counted(RELU, at, {**instructions(), **traffic(0, 4)}) for at in (0, 1)]
    items = roofline_table(read([*events, *counts]), "kernel", Filter(), "").items
    assert items.flops.tolist() == [0, 0]
    assert items.bytes.tolist() == [4, 4]


def test_ranges_that_are_not_joined_measure_nothing() -> None:
    done, _ = work_of(
        operator("aten::mm", 0, 9, dims=MM["dims"], types=[BF16, BF16]), launch(1, 1), kernel("g", 20, 5, 1),
        *(counted("g", at, instructions(ffma=1)) for at in (0, 1)),
    )  # fmt: skip
    assert done.flops.tolist() == [12_000]
    assert not np.any(done.measured)
