"""Overlaps that the recording itself makes are no news about a file; others are."""

from __future__ import annotations

import pytest

from tests.support.traces import draw
from torch_tb_profiler.model.calls.calltree import call_tree, count_unexplained_overlaps

ENTER = "<built-in~method~_record_function_enter_new~of~object>"
EXIT = "torch/autograd/profiler.py(932):~__exit__"
FAST = "<built-in~method~__exit__~of~torch._C._profiler.RecordFunctionFast~object>"


@pytest.mark.parametrize("leaving", [EXIT, FAST])
def test_functions_that_begin_and_end_an_annotation_are_no_overlap(leaving: str) -> None:
    trace = draw(f"""
        host python_function {ENTER} 0 10
        host user_annotation ProfilerStep#2 5 100
        host python_function {leaving} 100 10
    """)
    assert call_tree(trace).overlaps == 1 and count_unexplained_overlaps(trace) == 0


def test_other_events_that_stick_out_are_counted() -> None:
    trace = draw(f"""
        host python_function {ENTER} 0 10
        host user_annotation ProfilerStep#2 5 100
        host cpu_op aten::mm 20 20
        host cpu_op aten::add 30 20
        host2 user_annotation other 5 100
        host2 cpu_op aten::mul 0 10
    """)
    assert call_tree(trace).overlaps == 3 and count_unexplained_overlaps(trace) == 2


def test_a_profiler_function_on_another_thread_explains_nothing() -> None:
    trace = draw(f"""
        host2 python_function {ENTER} 0 10
        host cpu_op aten::mm 0 10
        host user_annotation ProfilerStep#2 5 100
    """)
    assert count_unexplained_overlaps(trace) == 1
