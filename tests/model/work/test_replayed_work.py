"""A kernel that a graph replays counts for the operator at its capture, with the FLOPs of the inputs there."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.model.origins.drawing import Event, captures_of, host, replay
from tests.support.traces import read
from torch_tb_profiler.analyses.roofline.speeds import missing_work_reason
from torch_tb_profiler.model.origin_records import OriginRecords
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.model.work.operator_work import operator_work
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.roofline.build import build
from torch_tb_profiler.views.roofline.payload import RooflineParams

SHAPES = {"Input Dims": [[8, 16], [16, 4]], "Input type": ["float", "float"]}
MM_FLOPS, MM_BYTES = 2 * 8 * 16 * 4, 4 * (8 * 16 + 16 * 4 + 8 * 4)


def launch(kernel: str, at: float) -> Event:
    return host("cuda_runtime", "hipLaunchKernel", at, 1, kernel=kernel)


def capture(rows: int = 8, *, inside: str | None = "aten::mm") -> list[Event]:
    """Draw a product in two kernels, in a wrapper that launches its own copy, and an attention kernel."""
    shapes = SHAPES | {"Input Dims": [[rows, 16], [16, 4]]}
    return [
        host("cuda_runtime", "hipStreamBeginCapture", 0, 1),
        host("cpu_op", "aten::linear", 5, 40, **shapes),
        launch("copy_kernel", 6),
        *([host("cpu_op", inside, 10, 20, **shapes)] if inside else []),
        launch("gemm", 12),
        launch("splitk_reduce", 16),
        host("cpu_op", "my::attention", 50, 20, **shapes),
        launch("attention", 55),
        host("cuda_runtime", "hipStreamEndCapture", 90, 1),
    ]


KERNELS = ["copy_kernel", "gemm", "splitk_reduce", "attention"]


def replays(*kernels: list[str], captures: tuple[list[Event], ...] = (capture(),), **options: Any) -> Trace:
    events = [host("cpu_op", "my::serve", 0, 50_000)]
    for number, names in enumerate(kernels):
        events += replay(names, 10_000 + 1_000 * number, **options)
    return replace(read(events), origin_records=OriginRecords(captures_of(*captures)))


def rows_of(trace: Trace, **params: Any) -> dict[str, tuple[int, float | None, float | None]]:
    rows = build(trace, RooflineParams(**params)).rows
    return {row.name: (row.calls, row.flops, row.bytes) for row in rows}


def test_replayed_kernels_have_the_work_of_their_operator_at_capture() -> None:
    trace = replays(KERNELS, KERNELS)
    assert rows_of(trace) == {
        "aten::mm": (2, 2.0 * MM_FLOPS, 2.0 * MM_BYTES),
        "aten::linear": (2, None, None),  # what a wrapper launches itself beside the product
        "my::attention": (2, None, None),
    }
    row = next(row for row in build(trace, RooflineParams(group_by="shape")).rows if row.name == "aten::mm")
    assert (row.input_shape, row.captured, row.device_ns) == ("[[8,16],[16,4]]", True, 4 * 8_000)
    assert missing_work_reason(trace) is None
    shares = rows_of(trace, group_by="kernel")
    assert shares["gemm"] == shares["splitk_reduce"] == (2, MM_FLOPS, MM_BYTES)  # halves of two calls


def test_a_lost_kernel_makes_the_work_of_its_call_unknown() -> None:
    trace = replays(["copy_kernel", "gemm", "attention"])
    assert "aten::mm" not in rows_of(trace)
    whole = operator_work(replays(KERNELS)).flops
    assert (whole == MM_FLOPS).sum() == 1


@pytest.mark.parametrize(("around", "flops"), [("bs=8", MM_FLOPS), ("bs=16", 2 * MM_FLOPS), (None, None)])
def test_the_batch_size_chooses_the_inputs(around: str | None, flops: float | None) -> None:
    sizes = tuple([host("user_annotation", f"capture_{rows}_DECODE", -1, 120), *capture(rows)] for rows in (8, 16))
    found = rows_of(replays(KERNELS, captures=sizes, around=around))
    assert found.get("aten::mm", (0, None, None))[1] == flops


def test_recorded_operators_keep_their_work_beside_replays() -> None:
    eager = [
        host("cpu_op", "aten::mm", 100, 20, **SHAPES),
        host("cuda_runtime", "hipLaunchKernel", 105, 4, correlation=5),
        host("kernel", "gemm", 200, 8, device=0, stream=7, correlation=5) | {"pid": 0, "tid": 7},
    ]
    events = [*eager, *replay(KERNELS)]
    records = OriginRecords(captures_of(capture()))
    assert rows_of(replace(read(events), origin_records=records))["aten::mm"] == (
        2,
        2.0 * MM_FLOPS,
        2.0 * MM_BYTES,
    )
    assert rows_of(read(events))["aten::mm"] == (1, MM_FLOPS, MM_BYTES)


def test_a_step_has_the_work_of_the_replays_that_it_launched() -> None:
    steps = [host("user_annotation", f"ProfilerStep#{n}", 10_000 + 1_000 * n - 5, 900) for n in range(2)]
    late = replay(KERNELS, 10_000)
    for event in late[1:]:
        event["ts"] += 1_500  # the device is a step behind
    trace = replace(
        read([*steps, *late, *replay(["other"], 11_000)]), origin_records=OriginRecords(captures_of(capture()))
    )
    assert rows_of(trace, step="0")["aten::mm"][0] == 1
    assert "aten::mm" not in rows_of(trace, step="1")


def test_without_shapes_at_capture_nothing_is_known() -> None:
    bare = [event | {"args": {k: v for k, v in event["args"].items() if k not in SHAPES}} for event in capture()]
    trace = replays(KERNELS, captures=(bare,))
    reason = missing_work_reason(trace)
    assert reason is not None and "shapes" in reason
    assert plain(build(trace, RooflineParams()).headline)
