"""The compiled nesting answers what the definition in Python answers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ingest.native.comparison import NEEDED
from tests.support.traces import draw
from torch_tb_profiler.ingest.kineto.native.nesting import compiled_nest
from torch_tb_profiler.model.calls import nesting
from torch_tb_profiler.model.calls.calltree import call_tree
from torch_tb_profiler.model.trace import Bool, Int64
from torch_tb_profiler.session.jobs import use_compiled

pytestmark = NEEDED


@pytest.fixture(autouse=True)
def used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_PROFILER_NATIVE", "1")


@given(st.lists(st.tuples(st.integers(-9, 30), st.integers(0, 12)), max_size=30))
def test_it_is_the_definition(intervals: list[tuple[int, int]]) -> None:
    begin = np.array([start for start, _ in intervals], np.int64)
    finish = begin + np.array([length for _, length in intervals], np.int64)
    order = nesting.nesting_order(begin, finish)
    begin, finish = begin[order], finish[order]
    compiled = compiled_nest()
    assert compiled is not None
    expected, found = nesting._one_by_one(begin, finish), compiled(begin, finish)
    assert [column.tolist() for column in found] == [column.tolist() for column in expected]


def test_columns_of_different_lengths_reach_no_compiled_code() -> None:
    compiled = compiled_nest()
    assert compiled is not None
    with pytest.raises(ValueError, match="2 begins and 1 ends"):
        compiled(np.zeros(2, np.int64), np.zeros(1, np.int64))


def test_a_process_that_may_uses_it_and_another_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    picture = """
    host cpu_op aten::linear 0 20
    host cpu_op aten::mm     2 9
    host cpu_op aten::late   8 30
    """
    expected = call_tree(draw(picture))
    calls = []

    def count(begin: Int64, finish: Int64) -> tuple[Int64, Int64, Bool]:
        calls.append(len(begin))
        compiled = compiled_nest()
        assert compiled is not None
        return compiled(begin, finish)

    try:
        use_compiled()
        assert nesting._compiled is not None
        nesting.nest_with(count)
        found = call_tree(draw(picture))
        monkeypatch.setenv("TORCH_PROFILER_NATIVE", "0")
        use_compiled()
        assert nesting._compiled is None
    finally:
        nesting.nest_with(None)
    assert calls == [3, 1], "the slice that sticks out has a lane of its own"
    for column in ("rows", "parent", "depth", "lane"):
        assert np.array_equal(getattr(found, column), getattr(expected, column)), column
