"""Answers about very many iterations: a selection of them, and sums that count all."""

from __future__ import annotations

import msgspec
import pytest

from tests.support.traces import draw
from tests.support.views import ask
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views.serving.build import build, build_iterations
from torch_tb_profiler.views.serving.payload import IterationsParams

COUNT, LONG, LONGEST = 6000, 1234, 4321
"""Iterations, and two of them that take longer."""


@pytest.fixture(scope="module")
def trace() -> Trace:
    lines = []
    for i in range(COUNT):
        length = {LONG: 300, LONGEST: 400}.get(i, 100 + i % 7)
        lines.append(f"host  user_annotation  execute_context_0(0)_generation_4(4)  {1000 * i}  50")
        lines.append(f"host  cuda_runtime  cudaLaunchKernel  {1000 * i + 10}  5  correlation={i + 1}")
        lines.append(f"gpu0  kernel  gemm  {1000 * i + 20}  {length}  correlation={i + 1}")
    return draw("\n".join(lines))


def test_the_answer_lists_the_longest_of_each_stretch(trace: Trace) -> None:
    payload = build(trace, NoParams())
    numbers, columns = payload.iteration_numbers, payload.iterations
    assert payload.iterations_total == COUNT and len(numbers) <= 2010
    assert {LONG, LONGEST, 0, COUNT - 1} <= set(numbers)
    at = numbers.index(LONGEST)
    assert columns.busy_ns[at] == 400_000 and len(columns.duration_ns) == len(columns.idle["launch"]) == len(
        numbers
    )
    assert payload.phases[0].iterations == COUNT
    assert len(msgspec.json.encode(payload)) < 500_000


def test_sums_of_a_stretch_count_all_of_its_iterations(trace: Trace) -> None:
    stretch = build_iterations(trace, IterationsParams(first=1000, last=4999))
    assert (stretch.iterations, stretch.decode_requests, stretch.prompt_tokens) == (4000, 16_000, 0)
    lengths = [{LONG: 300, LONGEST: 400}.get(i, 100 + i % 7) for i in range(1000, 5000)]
    assert stretch.busy_ns == 1000 * sum(lengths)
    assert stretch.duration_ns == stretch.busy_ns + sum(
        ns for cause, ns in stretch.idle.items() if cause != "idle"
    )
    short = build_iterations(trace, IterationsParams(first=1233, last=1235))
    assert short.numbers == [1233, 1234, 1235] and short.columns.busy_ns[1] == 300_000
    with pytest.raises(NotFoundError, match="there is no iteration 6000"):
        build_iterations(trace, IterationsParams(first=COUNT))


@pytest.mark.parametrize("view", ["idle", "critical_path"])
def test_other_tabs_list_a_selection_and_average_over_all(trace: Trace, view: str) -> None:
    payload = ask(trace, view)
    assert 1000 < len(payload["steps"]) <= 2010
    counted = payload["counted"] if view == "idle" else payload["path"]["steps"]
    assert counted >= COUNT - 1
    name = f"{LONGEST}"
    assert any(step["name"].endswith(name) for step in payload["steps"])
    if view == "idle":
        assert payload["complete_steps"] >= COUNT - 1
        one = ask(trace, "idle", step=payload["steps"][3]["name"])
        assert one["counted"] == 1 and one["duration_ns"] == payload["steps"][3]["duration_ns"]
