"""The compiled nesting and call trees answer what the definitions in Python answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ingest.native.comparison import NEEDED
from tests.support.traces import draw
from torch_tb_profiler.ingest.kineto.native.nesting import compiled_functions
from torch_tb_profiler.model.calls import calltree, nesting
from torch_tb_profiler.model.calls.calltree import innermost_enclosing
from torch_tb_profiler.model.calls.nesting import CompiledFunctions, active_functions, use_compiled_functions
from torch_tb_profiler.model.kinds import Kind, rows_of_kind
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.session.jobs import enable_compiled_functions

pytestmark = NEEDED


@pytest.fixture(autouse=True)
def used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_PROFILER_NATIVE", "1")


def functions() -> CompiledFunctions:
    found = compiled_functions()
    assert found is not None
    return found


@contextmanager
def calculating_with(chosen: CompiledFunctions | None) -> Iterator[None]:
    use_compiled_functions(chosen)
    try:
        yield
    finally:
        use_compiled_functions(None)


@given(st.lists(st.tuples(st.integers(-9, 30), st.integers(0, 12)), max_size=30))
def test_nesting_matches_its_definition(intervals: list[tuple[int, int]]) -> None:
    begin = np.array([start for start, _ in intervals], np.int64)
    finish = begin + np.array([length for _, length in intervals], np.int64)
    order = nesting.nesting_order(begin, finish)
    begin, finish = begin[order], finish[order]
    expected, found = nesting._nest_in_loop(begin, finish), functions().nest(begin, finish)
    assert [column.tolist() for column in found] == [column.tolist() for column in expected]


SLICES = st.lists(
    st.tuples(
        st.sampled_from(["host", "host2", "host3"]),
        st.sampled_from(["cpu_op aten::mm", "python_function f", "cuda_runtime cudaLaunchKernel"]),
        st.integers(0, 25),
        st.integers(0, 12),
    ),
    min_size=1,
    max_size=25,
)


def answers(picture: str) -> list[list[Any]]:
    """Return the nesting of a call tree, and of a tree of the operators alone, which leaves events out."""
    trace = draw(picture)
    operators = calltree.build_call_tree(trace, rows_of_kind(trace, Kind.CPU_OP))
    tree = calltree.call_tree(trace)
    columns = [each for t in (tree, operators) for each in (t.rows, t.parent, t.depth, t.lane)]
    columns += [
        calltree.enclosing_operators(trace),
        innermost_enclosing(trace, tree),
        innermost_enclosing(trace, operators),
    ]
    return [[str(column.dtype), *column.tolist()] for column in columns]


@given(SLICES)
def test_call_trees_equal_those_of_the_python_code(slices: list[tuple[str, str, int, int]]) -> None:
    """Slices of several threads, in any order, of no length, at one instant, and sticking out of each other."""
    picture = "\n".join(f"{thread} {what} {start} {length}" for thread, what, start, length in slices)
    expected = answers(picture)
    with calculating_with(functions()):
        assert answers(picture) == expected


@pytest.mark.parametrize("runs", [1, 2, 7, 300])
def test_slices_are_sorted_whatever_their_order_in_the_file(runs: int) -> None:
    chance = np.random.default_rng(runs)
    start = np.concatenate([np.sort(part) for part in np.array_split(chance.integers(0, 400, 900), runs)])
    finish = start + chance.integers(0, 9, 900)
    rows, thread = np.arange(900, dtype=np.int32), chance.integers(0, 3, 900).astype(np.int32)
    found, _, _, lane = functions().tree(rows, start, finish, thread, 3)
    assert found.tolist() == np.lexsort((rows, -finish, start, thread, lane)).tolist()
    assert lane.max() > 1 and lane.min() == 0


def test_times_at_the_ends_of_their_range_are_compared_and_never_added() -> None:
    least, most = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    start, finish = np.array([least, -5, most, 3]), np.array([most, 7, most, 7])
    rows, thread = np.arange(4, dtype=np.int32), np.zeros(4, np.int32)
    nested, parent, depth, _ = functions().tree(rows, start, finish, thread, 1)
    assert (nested.tolist(), parent.tolist(), depth.tolist()) == ([0, 1, 3, 2], [-1, 0, -1, 1], [0, 1, 0, 2])


def test_invalid_columns_never_reach_compiled_code() -> None:
    two, three, times = np.zeros(2, np.int32), np.zeros(3, np.int32), np.zeros(2, np.int64)
    found = functions()
    with pytest.raises(ValueError, match="different lengths: 2, 1"):
        found.nest(times, np.zeros(1, np.int64))
    with pytest.raises(ValueError, match="different lengths: 2, 2, 3"):
        found.tree(two, times, times, three, 1)
    with pytest.raises(ValueError, match="different lengths: 2, 2, 3"):
        found.changes(two, times, times, three)
    with pytest.raises(ValueError, match="different lengths: 2, 3"):
        found.enclosing(two, two, np.zeros(3, np.bool_))


@pytest.mark.parametrize(("row", "thread"), [(2, 0), (-1, 0), (0, 1), (0, -1)])
def test_rows_and_threads_out_of_bounds_are_refused(row: int, thread: int) -> None:
    times = np.zeros(2, np.int64)
    with pytest.raises(ValueError, match="out of bounds"):
        functions().tree(np.array([row], np.int32), times, times, np.full(2, thread, np.int32), 1)


PICTURE = """
host cpu_op aten::linear 0 20
host cpu_op aten::mm     2 9
host cpu_op aten::late   8 30
"""


def test_only_enabled_processes_use_the_compiled_code(monkeypatch: pytest.MonkeyPatch) -> None:
    completed = []

    def count(name: str) -> Any:
        def called(*given: Any) -> Any:
            completed.append(name)
            return getattr(functions(), name)(*given)

        return called

    def ask(trace: Trace) -> None:
        calltree.enclosing_operators(trace)
        innermost_enclosing(trace, calltree.call_tree(trace))

    with calculating_with(CompiledFunctions(*map(count, CompiledFunctions.__struct_fields__))):
        ask(draw(PICTURE))
    assert completed == ["tree", "enclosing", "changes"]
    with calculating_with(None):
        enable_compiled_functions()
        assert active_functions() is not None
        monkeypatch.setenv("TORCH_PROFILER_NATIVE", "0")
        enable_compiled_functions()
        assert active_functions() is None
