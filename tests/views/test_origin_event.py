"""The origin of one event, as the page's card shows it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.model.origins.drawing import LAYERS, capture, host, replay
from tests.support.traces import read
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.model.origin_records import CompiledGraph, CompiledKernel, OriginRecords
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.origins import OriginEventParams, SourceLine, build_origin
from torch_tb_profiler.views.trace.event import EventParams, build_event

SOURCE = """
import torch
cpp_fused_add_0 = async_compile.cpp_pybinding(['float*'], r'''
void kernel(float* x) {}
''')

cpp_fused_mul_1 = async_compile.cpp_pybinding([], r'''
other
''')
"""


def test_a_replayed_kernel_has_the_origin_of_its_launch_and_its_launch_call_none() -> None:
    events = [*capture(), *replay([kernel for _, _, kernel in LAYERS])]
    trace = read(events)
    kernel = events.index(
        next(event for event in events if event["cat"] == "kernel" and event["name"] == "add_kernel")
    )
    found = build_origin(trace, OriginEventParams(kernel))
    assert (found.how, found.operator, found.modules) == ("capture", "aten::add", ["Block_0"])
    assert found.lines == [SourceLine("model.py", 13)]
    assert not build_origin(trace, OriginEventParams(0)).has_origin
    stack = plain(build_event(trace, EventParams(kernel)).reasons["stack"])
    assert stack == "No Python stack: a graph launch ran this, not a call of the program."
    with pytest.raises(NotFoundError, match="there is no event 999"):
        build_origin(trace, OriginEventParams(999))


def test_a_compiled_kernel_has_the_source_that_was_generated_for_it_alone() -> None:
    events = [
        host("user_annotation", "## Call CompiledFxGraph key ##", 0, 50),
        host("cpu_op", "graph_0_cpp_fused_add_0", 5, 10),
    ]
    kernel = CompiledKernel("cpp_fused_add_0", ("add",), None, ("C:\\model.py:4",))
    graph = CompiledGraph("0/0", False, "key", (kernel,), source=SOURCE)
    trace = replace(read(events), origin_records=OriginRecords(graphs=(graph,)))
    found = build_origin(trace, OriginEventParams(1))
    assert found.source is not None
    assert found.source.startswith("cpp_fused_add_0 = ") and found.source.endswith(
        "void kernel(float* x) {}\n''')"
    )
    assert found.lines == [SourceLine("C:\\model.py", 4)]
