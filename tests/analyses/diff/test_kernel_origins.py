"""Kernels of graph replays are compared by where they come from, before their names."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from tests.model.origins.drawing import Launch, capture, captures_of, host
from tests.model.origins.drawing import replay as draw_replay
from tests.support.traces import read
from torch_tb_profiler.analyses.diff.kernel_origins import align_kernels_by_origin
from torch_tb_profiler.model.origin_records import OriginRecords
from torch_tb_profiler.model.trace import Trace, TracePair
from torch_tb_profiler.views.diff.build import build
from torch_tb_profiler.views.diff.payload import DiffParams

OLD: tuple[Launch, ...] = (("aten::norm", "Norm_0", "triton_3"), ("aten::mm", "Linear_0", "gemm_64"))
NEW: tuple[Launch, ...] = (("aten::norm", "Norm_0", "triton_3"), ("aten::mm", "Linear_0", "gemm_128"))
SHIFTED: tuple[Launch, ...] = (("aten::norm", "Norm_0", "triton_4"), ("aten::mm", "Linear_0", "triton_3"))


def steps(launches: Sequence[Launch], *, is_captured: bool = True) -> Trace:
    """Draw two steps that replay a graph; without its capture, nobody knows where its kernels come from."""
    events = []
    for step, at in enumerate((10_000, 20_000)):
        events += [host("user_annotation", f"ProfilerStep#{step}", at - 10, 500)]
        events += draw_replay([kernel for _, _, kernel in launches], at)
    records = OriginRecords(captures_of(capture(launches))) if is_captured else OriginRecords()
    return replace(read(events), origin_records=records)


def kernels(base: Trace, candidate: Trace) -> set[tuple[str, str | None, str]]:
    return {
        (row.name, row.candidate_name, row.status)
        for row in build(TracePair([base], [candidate]), DiffParams()).kernels
    }


def test_a_renamed_kernel_of_the_same_line_is_one_row() -> None:
    assert kernels(steps(OLD), steps(NEW)) == {("triton_3", None, "matched"), ("gemm_64", "gemm_128", "renamed")}


def test_a_name_that_another_kernel_took_over_is_not_compared_with_it() -> None:
    found = kernels(steps(OLD), steps(SHIFTED))
    assert found == {("triton_3", "triton_4", "renamed"), ("gemm_64", "triton_3", "renamed")}


def test_unknown_origins_are_aligned_by_name() -> None:
    base, candidate = steps(OLD, is_captured=False), steps(NEW)
    assert align_kernels_by_origin(TracePair([base], [candidate])) == {}
    twice = (*OLD, ("aten::mm", "Linear_0", "gemm_32"))
    aligned = align_kernels_by_origin(TracePair([steps(OLD)], [steps(twice)]))
    assert "gemm_64" not in aligned  # two kernels of one place
