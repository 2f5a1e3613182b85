"""What the host does while nothing is recorded: which frame, and when nobody may be named."""

from __future__ import annotations

import json

import pytest

from tests.analyses.overview.advice_traces import ids, steps
from tests.analyses.overview.rule_traces import RULES, Three
from tests.support.traces import draw, event, read_bytes
from torch_tb_profiler.analyses.overview.dominant_frames import (
    DominantFrame,
    function_without_operators,
    unrecorded_function,
)
from torch_tb_profiler.analyses.overview.idle import (
    host_late_times,
    late_times_without_records,
    long_unrecorded_times,
)
from torch_tb_profiler.base.intervals import intersect, subtract, total

BEFORE, AFTER = "host cpu_op aten::mm 0 100", "host cpu_op aten::add 9100 900"
"""Nine of ten milliseconds pass between them."""


def find_function(*lines: str) -> DominantFrame | None:
    return unrecorded_function(draw("\n".join((steps(1), BEFORE, AFTER, *lines))))


def frame(name: str, start: int, duration: int, thread: str = "host") -> str:
    return f"{thread} python_function {name} {start} {duration}"


def test_many_short_calls_of_one_name_count_together() -> None:
    calls = [frame("data.py(4):~token", 200 + 20 * i, 15) for i in range(400)]
    found = find_function(frame("train.py(9):~batch", 150, 8_900), *calls)
    assert found is not None and found.name == "data.py(4): token"
    assert (found.during.ends - found.during.starts).sum() == 400 * 15_000
    fewer = find_function(frame("train.py(9):~batch", 150, 8_900), *calls[:200])
    assert fewer is not None and fewer.name == "train.py(9): batch"


def test_a_thread_that_waits_beside_is_not_what_the_step_does() -> None:
    wait = frame("threading.py(295):~wait", 300, 8_000, "host2")
    assert find_function(wait) is None
    found = find_function(wait, frame("train.py(9):~batch", 150, 8_900))
    assert found is not None and found.name == "train.py(9): batch"


def test_what_holds_the_whole_step_explains_nothing_in_it() -> None:
    assert find_function(frame("train.py(1):~main", 0, 10_000)) is None
    assert find_function(frame("train.py(1):~main", 0, 9_999)) is not None


def test_a_comprehension_has_the_name_of_its_function() -> None:
    inner = frame("data.py(5):~<listcomp>", 200, 8_000)
    assert find_function(inner) is None
    found = find_function(frame("data.py(4):~load", 150, 8_500), inner)
    assert found is not None and found.name == "data.py(4): load"


def test_a_function_that_calls_itself_counts_once() -> None:
    """Three calls within each other, of 4 ms each, are less than half of 9 ms."""
    assert find_function(*(frame("data.py(4):~walk", 200 + i, 4_000 - 2 * i) for i in range(3))) is None


def test_a_function_that_mostly_runs_operators_is_not_beside_the_step() -> None:
    lines = [steps(1), BEFORE, "host cpu_op aten::add 1500 8500"]
    assert function_without_operators(draw("\n".join((*lines, frame("train.py(9):~forward", 50, 9_900))))) is None
    found = function_without_operators(draw("\n".join((*lines, frame("train.py(9):~forward", 50, 2_700)))))
    assert found is not None and found.name == "train.py(9): forward"


def test_more_than_half_of_the_time_is_enough_and_half_is_not() -> None:
    assert find_function(frame("data.py(4):~load", 150, 4_501)) is not None
    assert find_function(frame("data.py(4):~load", 150, 4_500)) is None


def test_without_steps_nothing_says_that_it_comes_again() -> None:
    lines = [BEFORE, AFTER, frame("data.py(4):~load", 150, 8_900)]
    assert ids(draw("\n".join(lines))) == []
    assert ids(draw("\n".join((steps(1), *lines)))) == ["host_code"]


def test_a_frame_without_a_name_is_not_called_by_the_name_of_another() -> None:
    nameless = {key: value for key, value in event(frame("lost", 200, 8_000)).items() if key != "name"}
    picture = "\n".join((steps(1), BEFORE, AFTER))
    assert unrecorded_function(draw(picture, nameless)) is None
    found = unrecorded_function(draw("\n".join((picture, frame("data.py(4):~load", 150, 8_500))), nameless))
    assert found is not None and found.name == "data.py(4): load"


@pytest.mark.parametrize("documents", RULES.values(), ids=map(str, RULES))
def test_threads_without_records_are_looked_at_wherever_nothing_is_recorded(documents: Three) -> None:
    for document in documents:
        trace = read_bytes(json.dumps(document).encode())
        unrecorded = intersect(host_late_times(trace), long_unrecorded_times(trace))
        assert total(subtract(unrecorded, late_times_without_records(trace))) == 0
