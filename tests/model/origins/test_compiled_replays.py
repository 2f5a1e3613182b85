"""Compiled code that a CUDA graph replays has the record of its code only where that is certain."""

from __future__ import annotations

import msgspec
import pytest

from tests.model.origins.drawing import Event, column, host, kernel_origins, replay
from torch_tb_profiler.model.origin_records import CompiledGraph, CompiledKernel
from torch_tb_profiler.model.origins import compiled, origins

KEY = "fkey"
ADD, SUM, MM, ADDMM = (
    "triton_poi_fused_add_0",
    "triton_red_fused_sum_1",
    "extern_kernels.mm",
    "extern_kernels.addmm",
)


def graph_of(*names: str, key: str | None = KEY, source: str = "code") -> CompiledGraph:
    """Return a graph whose kernel number n stems from `model.py:n`."""
    kernels = (CompiledKernel(name, (f"node{n}",), None, (f"model.py:{n}",)) for n, name in enumerate(names))
    return CompiledGraph("0/0", False, key, tuple(kernels), source=source)


def replayed_call(*kernels: str, key: str = KEY, streams: list[int] | None = None) -> list[Event]:
    call = [
        host("cpu_op", "Torch-Compiled Region: 0/0", 0, 100),
        host("user_annotation", f"## Call CompiledFxGraph {key} ##", 10, 60),
    ]
    return [*call, *replay(kernels, 20, streams=streams)]


def lines_of(events: list[Event], *graphs: CompiledGraph) -> list[str | None]:
    rows = kernel_origins(events, graphs=graphs)
    return [None if lines is None else lines[0] for lines in column(rows, "lines")]


def test_replayed_kernels_have_the_lines_of_the_code_in_its_order() -> None:
    events = replayed_call(ADD, "gemm", "cublasLt::splitKreduce_kernel", SUM, "gemm", ADD)
    rows = kernel_origins(events, graphs=(graph_of(ADD, MM, SUM, ADDMM, ADD),))
    assert column(rows, "lines") == [(f"model.py:{n}",) for n in (0, 1, 1, 2, 3, 4)]
    assert column(rows, "nodes") == [(f"node{n}",) for n in (0, 1, 1, 2, 3, 4)]
    assert column(rows, "operator") == [ADD, "aten::mm", "aten::mm", SUM, "aten::addmm", ADD]
    assert column(rows, "how") == ["compile record"] * 6
    assert column(rows, "compile_id") == ["0/0"] * 6 and column(rows, "backward") == [0] * 6
    assert all(reason.startswith(origins.NOT_RECORDED["modules"]) for reason in column(rows, "reason"))


@pytest.mark.parametrize(
    ("kernels", "lines"),
    [
        ((ADD, "gemm", "gemm", SUM), [0, 1, 2, 3]),
        ((ADD, "gemm", SUM), [0, None, 3]),  # which of the two products was lost?
        ((ADD, "gemm", "gemm", "gemm", SUM), [0, None, None, None, 3]),  # one runs two kernels: which?
        ((ADD, "gemm", "gemm"), [None] * 3),  # another generated kernel is missing
        ((SUM, "gemm", "gemm", ADD), [None] * 4),  # another order
        (("gemm", "gemm"), [None] * 2),  # nothing generated: it may be any graph
    ],
)
def test_what_the_replay_does_not_say_stays_unknown(kernels: tuple[str, ...], lines: list[int | None]) -> None:
    wanted = [None if line is None else f"model.py:{line}" for line in lines]
    assert lines_of(replayed_call(*kernels), graph_of(ADD, MM, MM, SUM)) == wanted
    rows = kernel_origins(replayed_call(*kernels), graphs=(graph_of(ADD, MM, MM, SUM),))
    unknown = {row["reason"] for row in rows if row["lines"] is None}
    assert unknown <= {origins.NO_CAPTURE}


def test_a_record_of_another_graph_says_nothing() -> None:
    events = replayed_call(ADD, "gemm", SUM)
    assert lines_of(events, graph_of(ADD, MM, SUM)) == ["model.py:0", "model.py:1", "model.py:2"]
    assert lines_of(events, graph_of(ADD, MM, SUM, key="other")) == [None] * 3
    without_key = replayed_call(ADD, "gemm", SUM, key="None")
    assert lines_of(without_key, graph_of(ADD, MM, SUM, key=None))[0] == "model.py:0"
    changed = graph_of(ADD, ADDMM, SUM, key=None, source="changed")
    assert lines_of(without_key, graph_of(ADD, MM, SUM, key=None), changed) == [None] * 3
    backward = msgspec.structs.replace(graph_of(ADD, MM, SUM, key=None), backward=True)
    assert lines_of(without_key, backward) == [None] * 3


def test_on_several_streams_the_order_of_kernels_is_not_that_of_the_code() -> None:
    events = replayed_call(ADD, "gemm", SUM, streams=[7, 8, 7])
    assert lines_of(events, graph_of(ADD, MM, SUM)) == [None] * 3


def test_a_call_that_launches_two_graphs_is_not_one_replay_of_its_code() -> None:
    events = replayed_call(ADD, "gemm", SUM)
    second = [dict(event, ts=event["ts"] + 30) for event in replay((ADD, "gemm", SUM), 20)]
    for event in second:
        event["args"] = {**event["args"], "correlation": 50}
    assert lines_of([*events, *second], graph_of(ADD, MM, SUM)) == [None] * 6


def test_what_no_record_has_is_not_blamed_on_a_missing_file() -> None:
    """It may be what torch.compile runs beside the generated code, or code of a graph that is not recorded."""
    events = replayed_call(ADD, "gemm", SUM)
    copy = [
        host("cpu_op", "aten::copy_", 12, 4),
        host("cuda_runtime", "cudaLaunchKernel", 13, 2, correlation=9),
        host("kernel", "copy", 15, 2, device=0, stream=7, correlation=9) | {"pid": 0, "tid": 7},
    ]
    reasons = {
        graphs: kernel_origins([*events, *copy], graphs=graphs)[0]["reason"]
        for graphs in ((), (graph_of(ADD, MM, SUM),), (graph_of(ADD, MM, SUM, key="other"),))
    }
    assert list(reasons.values()) == [compiled.NO_RECORD, compiled.NOT_IN_RECORD, compiled.NOT_IN_RECORD]
