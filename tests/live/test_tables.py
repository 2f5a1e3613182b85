"""The operator table of a live run beside what PyTorch's own profiler answers."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from torch_tb_profiler.ingest import read_trace
from torch_tb_profiler.views.operators import build as operators
from torch_tb_profiler.views.operators.build import build_stacks
from torch_tb_profiler.views.operators.payload import OperatorRowParams, OperatorsParams

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.slow]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """Return (the profiler, the trace it wrote) of some training steps with stacks, shapes and modules."""
    from torch.profiler import ProfilerActivity, profile

    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(batch: int) -> None:
        optimizer.zero_grad()
        model(torch.randn(batch, 32)).square().mean().backward()
        optimizer.step()

    step(4)
    with profile(
        activities=[ProfilerActivity.CPU], record_shapes=True, with_stack=True, with_modules=True
    ) as profiler:
        for batch in (4, 16, 4):
            step(batch)
    OPERATORS_OF[profiler] = {
        each.name for each in walk(profiler.profiler.kineto_results.experimental_event_tree())
    }
    path = tmp_path_factory.mktemp("live") / "trace.json"
    profiler.export_chrome_trace(str(path))
    with path.open("rb") as stream:
        return profiler, read_trace(stream, size=path.stat().st_size)


def walk(events: Any) -> Any:
    """Yield the operators of the profiler's own event tree."""
    for each in events:
        if each.tag.name == "TorchOp":
            yield each
        yield from walk(each.children)


OPERATORS_OF: dict[Any, set[str]] = {}
"""Names of what a profiler recorded as operators."""


def own(profiler: Any, *, by_shape: bool) -> dict[tuple[str, str], list[float]]:
    """Return calls, self and total CPU time in us by (name, shapes) of what the trace has as operators."""
    found: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0, 0, 0])
    for row in profiler.key_averages(group_by_input_shape=by_shape):
        # Annotations and Python frames are in its table, too; the trace has them in categories of their own.
        if row.key in OPERATORS_OF[profiler] and not row.is_user_annotation:
            key = (row.key, json.dumps(row.input_shapes) if by_shape else "")
            for i, value in enumerate((row.count, row.self_cpu_time_total, row.cpu_time_total)):
                found[key][i] += value
    return found


@pytest.mark.parametrize("by_shape", [False, True], ids=["name", "shape"])
def test_calls_and_times_equal_those_of_key_averages(recorded: tuple[Any, Any], by_shape: bool) -> None:
    profiler, trace = recorded
    payload = operators.build(trace, OperatorsParams("shape" if by_shape else "name"))
    ours = {
        (row.name, json.dumps(json.loads(row.input_shape or "[]")) if by_shape else ""): row
        for row in payload.rows
    }
    theirs = own(profiler, by_shape=by_shape)
    assert ours.keys() == theirs.keys()
    for key, (calls, self_us, total_us) in theirs.items():
        row = ours[key]
        assert row.calls == calls, key
        # Both read the same clock; the trace writes a time to the nanosecond, the table sums microseconds.
        assert abs(row.host_total_ns / 1000 - total_us) <= calls, key
        assert abs(row.host_self_ns / 1000 - self_us) <= calls, key


def test_the_stack_of_a_call_names_this_file(recorded: tuple[Any, Any]) -> None:
    _, trace = recorded
    row = next(row for row in operators.build(trace, OperatorsParams()).rows if row.name == "aten::addmm")
    found = build_stacks(trace, OperatorRowParams(row.event))
    assert found.bare == 0
    assert all(any(Path(__file__).name in (f.file or "") for f in stack.frames) for stack in found.stacks)
