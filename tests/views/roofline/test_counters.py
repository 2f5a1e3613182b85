"""Counters on the roofline: by kernel and operator, beside the shapes, and alone where they replace times."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.model.work.operator_events import (
    counter_range,
    instruction_counters,
    kernel,
    launch,
    operator,
    traffic_counters,
)
from tests.support.traces import read
from torch_tb_profiler.analyses.roofline.counters import SHARED_CALL
from torch_tb_profiler.analyses.roofline.speeds import COUNTERS_ONLY, missing_work_reason
from torch_tb_profiler.views._shared.availability import roofline_reason as unavailable
from torch_tb_profiler.views._shared.text import plain, reason_texts
from torch_tb_profiler.views.operators.build import build as operators
from torch_tb_profiler.views.operators.payload import OperatorsParams
from torch_tb_profiler.views.overview.build import hardware_use
from torch_tb_profiler.views.roofline.build import MAX_COUNTER_ROWS, ROCPROF, build
from torch_tb_profiler.views.roofline.payload import RooflineParams

GEMM, ADD = (
    "sgemm_32x32_nn",
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)",
)
MM: dict[str, Any] = {"dims": [[10, 20], [20, 30]], "types": ["float", "float"]}  # 12,000 FLOPs, 4,400 bytes
HOST = [
    operator("aten::linear", 0, 20), operator("aten::mm", 1, 15, **MM), launch(2, 1),
    operator("aten::add", 30, 20), launch(31, 2), launch(33, 3),
]  # fmt: skip
COUNTS = [
    counter_range(GEMM, 0, {**instruction_counters(ffma=6500), **traffic_counters(4000, 1200)}),
    counter_range(ADD, 1, instruction_counters(fadd=400)),
    counter_range(ADD, 2, instruction_counters(fadd=600)),
]


def test_counters_alone_tell_work_but_no_time() -> None:
    """What the range profiler writes: launches, and ranges instead of kernels."""
    trace = read([*HOST, *COUNTS])
    payload = build(trace, RooflineParams())
    assert plain(payload.headline) == (
        "Hardware counters measured 0.0000140 GFLOP in 3 kernels, 92.9% of them in GEMM 32x32 nn. "
        "Kernel times aren't recorded together with counters."
    )
    assert payload.rows == []
    assert payload.reasons == reason_texts(dict.fromkeys(("coverage", "mfu", "hfu"), COUNTERS_ONLY))
    assert unavailable(trace) is None
    assert missing_work_reason(trace) == hardware_use(trace) == COUNTERS_ONLY
    assert plain(operators(trace, OperatorsParams()).reasons["speed"]) == COUNTERS_ONLY


def test_counters_stand_beside_what_the_shapes_say() -> None:
    counters = build(read([*HOST, *COUNTS]), RooflineParams()).counters
    assert counters is not None
    product, sums = counters.rows
    assert (product.operator, product.outermost, product.calls) == ("aten::mm", "aten::linear", 1)
    assert (product.flops, product.modeled_flops) == (13_000, 12_000)
    assert (product.bytes, product.modeled_bytes) == (5200, 4400)
    assert (product.reason, product.modeled_reason) == (None, None)
    assert dict(zip(counters.names, product.values, strict=True))["dram__bytes_read.sum"] == 4000
    assert (sums.operator, sums.outermost, sums.calls) == ("aten::add", "aten::add", 2)
    assert (sums.flops, sums.bytes) == (1000, None)
    assert "dram__bytes_read.sum" in (sums.reason or "")
    assert (sums.modeled_flops, sums.modeled_reason) == (None, SHARED_CALL)
    assert counters.note is None
    assert (counters.ranges, counters.left_out) == (3, 0)


def test_beside_kernels_the_rows_say_that_they_are_measured() -> None:
    kernels = [kernel(GEMM, 50, 10, 1), kernel(ADD, 60, 1, 2), kernel(ADD, 61, 1, 3)]
    payload = build(read([*HOST, *kernels, *COUNTS]), RooflineParams())
    rows = {row.name: row for row in payload.rows}
    assert (rows["aten::mm"].flops, rows["aten::mm"].bytes, rows["aten::mm"].measured) == (13_000, 5200, True)
    assert (rows["aten::add"].flops, rows["aten::add"].measured) == (1000, True)
    assert "Hardware counters" not in plain(payload.headline)
    bare = build(read([*HOST, *kernels]), RooflineParams())
    assert bare.counters is None
    assert not any(row.measured for row in bare.rows)
    table = operators(read([*HOST, *kernels, *COUNTS]), OperatorsParams()).rows
    assert {row.name: row.speed.measured for row in table if row.speed} == {
        "aten::linear": False, "aten::mm": True, "aten::add": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("counts", "says"),
    [
        (
            [counter_range("k", at, {"other.sum": 1}) for at in range(3)],
            "The recorded hardware counters don't include the FLOPs of 3 kernels.",
        ),
        (
            [*COUNTS[:2], counter_range("k", 3, {})],
            "Hardware counters measured 0.0000134 GFLOP in 2 kernels (of 3), ",
        ),
        (
            [counter_range(ADD, at, instruction_counters()) for at in range(3)],
            "Hardware counters measured 0 GFLOP in 3 kernels. ",
        ),
    ],
)
def test_what_the_counters_leave_open_is_said(counts: list[dict[str, Any]], says: str) -> None:
    assert plain(build(read([*HOST, *counts]), RooflineParams()).headline).startswith(says)


def test_ranges_without_their_operators_are_shown_with_the_reason() -> None:
    counters = build(read([*HOST, *COUNTS[:2]]), RooflineParams()).counters
    assert counters is not None
    assert "2 counted ranges for 3 kernel launches" in (counters.note or "")
    assert {(row.operator, row.outermost) for row in counters.rows} == {(None, None)}
    assert counters.rows[0].flops == 13_000


def test_many_kernels_are_cut_to_the_largest() -> None:
    events = []
    for i in range(MAX_COUNTER_ROWS + 50):
        events += [operator(f"lib::{i}", 10 * i, 5), launch(10 * i + 1, i + 1)]
        events.append(
            counter_range(
                f"sgemm_{i}", i, {**instruction_counters(fadd=i), **{f"more{j}.sum": j / 7 for j in range(20)}}
            )
        )
    payload = build(read(events), RooflineParams())
    assert payload.counters is not None
    assert (len(payload.counters.rows), payload.counters.left_out) == (MAX_COUNTER_ROWS, 50)
    assert min(row.flops or 0 for row in payload.counters.rows) == 50
    assert len(msgspec.json.encode(payload)) < 100_000


def test_a_recording_of_kernels_alone_says_what_was_counted() -> None:
    """rocprofv3 sees no operators: kernels have what was counted for each, and their bytes a roof."""
    counts: dict[str, Any] = {f"counter {name}": 1024.0 for name in ("FETCH_SIZE", "WRITE_SIZE")}
    gpu = {"id": 0, "name": "AMD Instinct MI300X", "totalGlobalMem": 192 << 30, "numSms": 304}
    trace = read([kernel(ADD, 20, 10, 1, **counts), kernel(GEMM, 40, 10, 2)], deviceProperties=[gpu])
    payload = build(trace, RooflineParams(group_by="kernel"))
    assert payload.counters is not None
    assert payload.counters.source == ROCPROF
    assert plain(payload.headline) == (
        "The recorded hardware counters don't include the FLOPs of 1 kernel. "
        "The operators that launched them aren't recorded."
    )
    rows = {row.name: row for row in payload.rows}
    assert (rows[ADD].bytes, rows[ADD].measured) == (2 << 20, True)
    assert rows[ADD].roof_ns == pytest.approx(1e9 * (2 << 20) / 5.3e12)
    assert (rows[GEMM].bytes, rows[GEMM].measured) == (None, False)
