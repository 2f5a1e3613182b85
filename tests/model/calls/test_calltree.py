"""Call trees by time nesting, what encloses an event, and overlaps that don't nest."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.support.examples import examples
from tests.support.traces import draw, read
from torch_tb_profiler.base.memo import Memo
from torch_tb_profiler.model.calls import calltree, nesting
from torch_tb_profiler.model.calls.calltree import (
    build_call_tree,
    call_tree,
    count_unexplained_overlaps,
    enclosing_operators,
    innermost_enclosing,
    running_slices,
    stack_of_thread,
)
from torch_tb_profiler.model.trace import NO_CODE, Trace

ENTER = "<built-in~method~_record_function_enter_new~of~object>"
EXIT = "torch/autograd/profiler.py(932):~__exit__"
FAST = "<built-in~method~__exit__~of~torch._C._profiler.RecordFunctionFast~object>"


def parents(trace: Trace) -> dict[str, str | None]:
    names = [trace.strings[code] for code in trace.events.name]
    tree = call_tree(trace)
    return {names[row]: names[tree.parent[row]] if tree.parent[row] >= 0 else None for row in tree.rows}


def test_nesting_by_time() -> None:
    trace = draw(
        """
        host  cpu_op        outer   0  100
        host  cpu_op        first  10   20
        host  cuda_runtime  call   12    5
        host  cpu_op        second 30   70
        host2 cpu_op        other   5   10
        """
    )
    assert parents(trace) == {"outer": None, "first": "outer", "call": "first", "second": "outer", "other": None}
    assert call_tree(trace).overlaps == 0


def test_equal_starts_on_several_threads_keep_file_order_behind_length() -> None:
    trace = draw(
        """
        host2 cpu_op  b1     0  50
        host  cpu_op  a1    10  20
        host2 cpu_op  b0     0 100
        host  cpu_op  same1 10  20
        host  cpu_op  a0    10  30
        host  cpu_op  same2 10  20
        """
    )
    names = [trace.strings[trace.events.name[row]] for row in call_tree(trace).rows]
    assert names == ["b0", "b1", "a0", "a1", "same1", "same2"]


def test_times_that_overflow_a_common_axis_still_nest() -> None:
    far = 9_000_000_000_000_000  # us: two threads of this extent side by side are beyond int64 ns
    events = [
        {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur}
        for name, tid, ts, dur in (("a", 1, 0, 10), ("b", 1, 2, 3), ("c", 2, 1, far), ("d", 2, far - 5, 4))
    ]
    assert parents(read(events)) == {"a": None, "b": "a", "c": None, "d": "c"}


def test_same_start_or_end_the_longer_is_the_parent() -> None:
    trace = draw(
        """
        host  cpu_op  short  0  50
        host  cpu_op  long   0 100
        host  cpu_op  tail  60  40
        """
    )
    assert parents(trace) == {"long": None, "short": "long", "tail": "long"}


def test_an_event_of_length_0_is_the_child_of_what_contains_its_instant() -> None:
    trace = draw(
        """
        host  cpu_op  a      0  10
        host  cpu_op  inside 5   0
        host  cpu_op  edge  10   0
        host  cpu_op  b     10  10
        """
    )
    assert parents(trace) == {"a": None, "inside": "a", "edge": "b", "b": None}


def test_overlap_goes_to_a_side_lane_and_is_counted() -> None:
    trace = draw(
        """
        host  cpu_op  a       0 50
        host  cpu_op  crosses 40 30
        host  cpu_op  within  45 10
        host  cpu_op  after   80 10
        """
    )
    tree = call_tree(trace)
    assert parents(trace) == {"a": None, "crosses": None, "within": "crosses", "after": None}
    assert tree.lane.tolist() == [0, 1, 1, 0]
    assert tree.overlaps == 2


def test_device_annotations_are_not_in_the_host_tree() -> None:
    trace = draw(
        """
        host  cpu_op               a       0 50
        host  gpu_user_annotation  ProfilerStep#1  0 50
        """
    )
    assert list(parents(trace)) == ["a"]


def test_the_enclosing_operator_skips_other_slices() -> None:
    trace = draw(
        """
        host  cpu_op           op     0 100
        host  user_annotation  note  10  80
        host  python_function  frame 20  60
        host  cuda_runtime     call  30  10
        """
    )
    assert enclosing_operators(trace).tolist() == [-1, 0, 0, 0]


def naive(events: list[tuple[int, int, int]]) -> tuple[dict[int, int | None], dict[int, int]]:
    """Compute parent and lane by their definition, event by event."""
    parent: dict[int, int | None] = {}
    lane: dict[int, int] = {}
    for thread in {t for t, _, _ in events}:
        left = sorted(
            (i for i, e in enumerate(events) if e[0] == thread), key=lambda i: (events[i][1], -events[i][2], i)
        )
        level = 0
        while left:
            stack: list[int] = []
            out: list[int] = []
            for i in left:
                _, start, duration = events[i]
                while stack and events[stack[-1]][1] + events[stack[-1]][2] <= start:
                    stack.pop()
                if stack and start + duration > events[stack[-1]][1] + events[stack[-1]][2]:
                    out.append(i)
                    continue
                parent[i], lane[i] = (stack[-1] if stack else None), level
                if duration:
                    stack.append(i)
            left, level = out, level + 1
    return parent, lane


@settings(max_examples=examples(300), deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(1, 2), st.integers(0, 30), st.integers(0, 20)),
        min_size=1,
        max_size=25,
    ),
    st.booleans(),
    st.sampled_from([0, 2, 6]),
)
def test_the_tree_equals_its_definition(events: list[tuple[int, int, int]], absurd: bool, rounds: int) -> None:
    if absurd:  # times of which several threads' worth do not fit 64 bits
        events = [*events, (3, 2**52, 5)]
    trace = read(
        [
            {"ph": "X", "cat": "cpu_op", "name": "x", "pid": 1, "tid": tid, "ts": start, "dur": duration}
            for tid, start, duration in events
        ]
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nesting, "_MAX_ROUNDS", rounds)
        tree = call_tree(trace)
    wanted_parent, wanted_lane = naive(events)
    assert {i: None if p < 0 else p for i, p in enumerate(tree.parent.tolist())} == wanted_parent
    assert dict(enumerate(tree.lane.tolist())) == wanted_lane
    threads = trace.events.thread
    places = [(tree.lane[i], threads[i], start, -length, i) for i, (_, start, length) in enumerate(events)]
    assert tree.rows.tolist() == [i for *_, i in sorted(places)]
    for code, thread in enumerate(trace.threads):
        stack = [i for i in tree.rows.tolist() if wanted_lane[i] == 0 and events[i][0] == thread.tid]
        assert stack_of_thread(trace, tree, code).tolist() == stack
    assert stack_of_thread(trace, tree, len(trace.threads)).tolist() == []


@pytest.mark.parametrize("since_ns", [0, 2**61])
def test_at_one_instant_slices_end_from_the_inside_out_before_others_begin(since_ns: int) -> None:
    trace = draw("""
    host  cpu_op  outer   0  30
    host  cpu_op  inner   0  10
    host  cpu_op  next   10  20
    """)
    later = replace(trace.events, start=trace.events.start + since_ns)
    trace = replace(trace, events=later, _memo=Memo())
    tree = call_tree(trace)
    times, running = running_slices(trace, tree, tree.rows)
    outer, inner, following, nothing = 0, 1, 2, -1
    assert [time - since_ns for time in times.tolist()] == [0, 0, 10_000, 10_000, 30_000, 30_000]
    assert running.tolist() == [nothing, outer, inner, outer, following, outer, nothing]


@pytest.mark.parametrize("leaving", [EXIT, FAST])
def test_profiler_functions_that_begin_and_end_an_annotation_are_no_overlap(leaving: str) -> None:
    trace = draw(f"""
        host python_function {ENTER} 0 10
        host user_annotation ProfilerStep#2 5 100
        host python_function {leaving} 100 10
    """)
    assert call_tree(trace).overlaps == 1 and count_unexplained_overlaps(trace) == 0


def test_other_overlaps_are_counted() -> None:
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


@pytest.mark.parametrize("few", [0, 8])
def test_what_encloses_events_is_found_thread_by_thread(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calltree, "_MAX_UNSORTED_THREADS", few)
    trace = draw("""
    host   cpu_op  outer   0  100
    host   cpu_op  inner  10   20
    host2  cpu_op  other   5   50
    host2  cpu_op  leaf   12    5
    host3  cpu_op  alone  12    5
    """)
    tree = build_call_tree(trace, np.array([0, 2], np.int32))
    assert innermost_enclosing(trace, tree).tolist() == [NO_CODE, 0, NO_CODE, 2, NO_CODE]
    elsewhere = trace.events.thread[[2, 2, 0, 0, 0]]
    among = np.array([1, 3, 4], np.int32)
    assert innermost_enclosing(trace, tree, elsewhere, among).tolist() == [2, 0, 0]
