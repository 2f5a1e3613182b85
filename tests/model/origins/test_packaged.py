"""Kernels of AOTInductor are joined by name with the record in their package, or not at all."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import pytest

from tests.model.origins.drawing import Event, column, host, kernel_origins, replay
from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest.compile_log import read_kernel_information
from torch_tb_profiler.model.origin_records import CompiledKernel
from torch_tb_profiler.model.origins.origins import NO_OPERATOR
from torch_tb_profiler.model.origins.packaged import OTHER_PACKAGE, SEVERAL_CALLS

ADD, SILU = "triton_poi_fused_add_0", "triton_poi_fused_silu_1"
RECORD = (
    CompiledKernel(ADD, ("add",), ("add_1",), ("model.py:4",)),
    CompiledKernel("extern_kernels.mm", ("linear",), ("mm",), ("model.py:5",)),
    CompiledKernel(SILU, ("silu",), ("mul",), ("model.py:6",)),
)


def run(*names: str, at: float = 0) -> list[Event]:
    """Return kernels that compiled C++ launches: no operator is around the calls."""
    events: list[Event] = []
    for number, name in enumerate(names, 1):
        begin = at + 20 * number
        correlation = int(begin)
        events.append(host("cuda_driver", "cuLaunchKernel", begin, 4, correlation=correlation))
        kernel = host("kernel", name, begin + 5, 8, device=0, stream=7, correlation=correlation)
        events.append(kernel | {"pid": 0, "tid": 7})
    return events


def test_generated_kernels_have_the_nodes_and_lines_of_their_name_and_those_of_libraries_none() -> None:
    rows = kernel_origins(run(ADD, "ampere_sgemm", f"{SILU}.kd"), packaged=RECORD)
    assert column(rows, "how") == ["compile record", None, "compile record"]
    assert column(rows, "nodes") == [("add",), None, ("silu",)]
    assert column(rows, "lines") == [("model.py:4",), None, ("model.py:6",)]
    assert column(rows, "reason") == [NO_OPERATOR] * 3
    assert column(rows, "backward") == [0, 0, 0]


def test_profiled_calls_on_the_host_are_joined_too() -> None:
    library = (CompiledKernel("aoti_torch_cpu_addmm_out", ("linear",), None, ("model.py:5",)),)
    generated = (CompiledKernel("cpp_fused_add_0", ("add",), None, ("model.py:4",)),)
    events = [
        host("cpu_op", "aoti_torch_cpu_addmm_out", 0, 10),
        host("cpu_op", "aten::addmm", 1, 8),
        host("cpu_op", "cpp_fused_add_0", 20, 5),
    ]
    rows = kernel_origins(events, packaged=library + generated)
    assert column(rows, "name") == ["aoti_torch_cpu_addmm_out", "cpp_fused_add_0"]
    assert column(rows, "lines") == [("model.py:5",), ("model.py:4",)]
    assert kernel_origins(events[:2], packaged=library) == []  # nothing says that a generated model ran


@pytest.mark.parametrize(
    ("second", "lines", "nodes", "reason"),
    [
        (CompiledKernel(ADD, ("add",), ("add_1",), ("model.py:4",)), ("model.py:4",), ("add",), NO_OPERATOR),
        (CompiledKernel(ADD, ("add",), ("add_1",), ("model.py:9",)), None, ("add",), SEVERAL_CALLS),
        (CompiledKernel(ADD, ("add_2",), ("add_1",), ("model.py:4",)), ("model.py:4",), None, SEVERAL_CALLS),
        (CompiledKernel(ADD), None, None, SEVERAL_CALLS),
    ],
)
def test_of_calls_in_another_order_that_is_known_on_which_all_agree(
    second: CompiledKernel, lines: Any, nodes: Any, reason: str
) -> None:
    rows = kernel_origins(run(SILU, ADD), packaged=(*RECORD, second))
    assert [(row["lines"], row["nodes"], row["reason"]) for row in rows[1:]] == [(lines, nodes, reason)]


AGAIN = (*RECORD, CompiledKernel(ADD, ("add_2",), ("add_3",), ("model.py:9",)))
ORDER = (ADD, SILU, ADD)
FIRST, LAST = ("model.py:4",), ("model.py:9",)


@pytest.mark.parametrize(
    ("names", "lines"),
    [
        (ORDER, [FIRST, LAST]),
        (ORDER * 3, [FIRST, LAST] * 3),
        (ORDER[1:], [None]),  # the recording began within a run
        ((*ORDER, *ORDER[:1]), [None] * 3),
        ((*ORDER, *ORDER[1:], *ORDER), [None] * 5),  # one was lost
        ((ADD, ADD, SILU), [None] * 2),  # two were swapped
    ],
)
def test_in_whole_runs_each_call_is_the_one_at_its_place(names: Sequence[str], lines: list[Any]) -> None:
    rows = kernel_origins(run(*names), packaged=AGAIN)
    assert [row["lines"] for row in rows if row["name"] == ADD] == lines
    assert {row["lines"] for row in rows if row["name"] == SILU} == {("model.py:6",)}


def test_runs_on_two_threads_are_counted_apart() -> None:
    second = [event | {"tid": 2} if event["cat"] != "kernel" else event for event in run(*ORDER, at=7)]
    rows = kernel_origins([*run(*ORDER), *second], packaged=AGAIN)
    assert [row["lines"] for row in rows if row["name"] == ADD] == [FIRST, FIRST, LAST, LAST]


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        (run(ADD, "triton_red_fused_norm_2"), OTHER_PACKAGE),  # the record is of another model
        ([*run(ADD), host("cpu_op", "Torch-Compiled Region: 0/0", 500, 5)], NO_OPERATOR),  # perhaps its kernel
        ([*run(ADD), host("user_annotation", "## Call CompiledFxGraph key ##", 500, 5)], NO_OPERATOR),
        (replay([ADD]), "replayed from a graph whose capture was not recorded"),  # perhaps of other code
    ],
)
def test_a_name_that_may_be_of_other_code_says_nothing(events: list[Event], reason: str) -> None:
    row = next(row for row in kernel_origins(events, packaged=RECORD) if row["name"] == ADD)
    assert (row["lines"], row["nodes"], row["how"], row["reason"]) == (None, None, None, reason)


STACK = (
    '  File "/x/site-packages/torch/nn/f.py", line 9, in linear\n  File "/home/me/model.py", line 4, in forward\n'
)


def test_calls_are_read_in_the_order_of_the_code() -> None:
    content = {
        f"{SILU}:10": {"stack_traces": [], "post_grad_nodes": ["mul"], "pre_grad_nodes": []},
        f"{ADD}:2": {"stack_traces": [STACK, STACK], "post_grad_nodes": ["add_1"], "pre_grad_nodes": ["add"]},
    }
    assert read_kernel_information(io.BytesIO(json.dumps(content).encode())) == [
        CompiledKernel(ADD, ("add",), ("add_1",), ("/home/me/model.py:4",)),
        CompiledKernel(SILU, None, ("mul",), None),
    ]


@pytest.mark.parametrize(
    "damaged", [b"", b"{}", b"[]", b'{"traceEvents": []}', b'{"a:1": []}', b'{"a:1": {}', b"\xff"]
)
def test_a_file_that_is_no_record_is_refused(damaged: bytes) -> None:
    with pytest.raises(TraceError, match="it "):
        read_kernel_information(io.BytesIO(damaged))
