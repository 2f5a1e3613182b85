"""States and silences of threads that C finds are those that Python finds, on random slices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.support.traces import draw
from torch_tb_profiler.analyses.schedule.causes import Cause, thread_states
from torch_tb_profiler.ingest.compiled import ABSENT
from torch_tb_profiler.model.schedule.compiled_threads import ThreadFunctions, use_thread_functions
from torch_tb_profiler.model.schedule.unrecorded_waits import find_silences
from torch_tb_profiler.session.native.schedule import LIBRARY, load_thread_functions


@pytest.fixture
def functions(monkeypatch: pytest.MonkeyPatch) -> Iterator[ThreadFunctions]:
    monkeypatch.setenv("TORCH_PROFILER_NATIVE", "1")
    found = load_thread_functions()
    if found is None:
        pytest.skip(f"{LIBRARY.file_name} is {ABSENT}")
    yield found
    use_thread_functions(None)


NAMES = (
    *("cpu_op aten::mm", "cpu_op c10d::allreduce_", "user_annotation enumerate(DataLoader)#_Iter.__next__"),
    *(
        "user_annotation ProfilerStep#1",
        "python_function torch/_dynamo/convert_frame.py(5):_compile.compile_inner",
    ),
    *(
        "cuda_runtime cudaLaunchKernel",
        "cuda_runtime cudaEventQuery",
        "cuda_runtime cudaMalloc",
        "overhead Buffer",
    ),
)
"""Slices of which some give their cause to what lies in them, and one is left out of silences."""


def random_slices(seed: int) -> str:
    """Return slices of two threads that nest, overlap, touch, begin together, or have no length."""
    random, lines = np.random.default_rng(seed), []
    for lengths in ([0, 10, 20], [50, 400], [110, 1000]):
        for _ in range(int(random.integers(1, 25))):
            thread, time = random.choice(["host", "host2"]), 10 * random.integers(400)
            lines.append(f"{thread} {random.choice(NAMES)} {time} {random.choice(lengths)}")
    return "\n".join(lines)


def states_and_silences(picture: str) -> list[Any]:
    trace = draw(picture)
    found: list[Any] = []
    for thread in range(len(trace.threads)):
        states = thread_states(trace, thread)
        columns = states.times, states.row, states.cause, *find_silences(trace, thread)
        found += [[str(column.dtype), column.tolist()] for column in columns]
    return found


@pytest.mark.parametrize("seed", range(40))
def test_states_and_silences_agree(functions: ThreadFunctions, seed: int) -> None:
    picture = random_slices(seed)
    in_python = states_and_silences(picture)
    use_thread_functions(functions)
    assert states_and_silences(picture) == in_python


def test_random_slices_have_causes_of_all_kinds_and_silences() -> None:
    found = [states_and_silences(random_slices(seed)) for seed in range(40)]
    causes = {cause for each in found for _, column in each[2::5] for cause in column}
    wanted = {Cause.HOST_COMMUNICATION, Cause.DATA_LOADING, Cause.COMPILE, Cause.PROFILER, Cause.ALLOCATOR}
    assert wanted < causes
    assert any(column for each in found for _, column in each[3::5])


def test_slices_that_do_not_nest_or_are_not_there_have_no_silences(functions: ThreadFunctions) -> None:
    trace = draw("""
    host  cpu_op        aten::mm          0  100
    host  cuda_runtime  cudaEventQuery  300    5
    host  cpu_op        aten::add       400   50
    """)
    events, polls = trace.events, np.array(["Query" in text for text in [*trace.strings, ""]])
    columns = events.start, events.duration, events.name, polls, 100_000

    def silences(*rows: int) -> list[list[int]] | None:
        found = functions.silences(np.array(rows, np.int32), *columns)
        return None if found is None else [column.tolist() for column in found]

    assert silences(0, 1, 2) == [[0, 100_000], [100_000, 400_000]]
    assert silences(2, 0) is None
    assert silences(0, 3) is None
    assert silences(-1) is None
    start, duration = np.array([0, 0, 50_000]), np.array([100_000, 0, 100_000])
    overlapping = start, duration, events.name, polls, 100_000
    assert functions.silences(np.array([0, 2], np.int32), *overlapping) is None
