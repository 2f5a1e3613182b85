"""The path by operator, module and source line, in a drawn step whose every segment is known."""

from __future__ import annotations

import pytest

from tests.support.traces import draw
from tests.support.views import ask
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.critical_path.build import MAX_GROUPS, build, build_groups
from torch_tb_profiler.views.critical_path.payload import CriticalPathParams, PathGroupsParams

STEP = """
host  user_annotation  ProfilerStep#1                     0  600
host  python_function  train.py(10):~step                 0  560
host  python_function  nn.Module:~Net_0                  10  200
host  python_function  model.py(5):~forward              12  190
host  python_function  torch/nn/functional.py(8):~linear 20  100
host  cpu_op           aten::linear                      30   80
host  cuda_runtime     cudaLaunchKernel                  50   10  correlation=1
gpu0  kernel           gemm                              64  200  correlation=1
host  cpu_op           aten::item                       220  110
host  cuda_runtime     cudaStreamSynchronize            222  106  correlation=2
host  cpu_op           aten::add                        400   50
"""
"""The path: the host to 60, 4 of latency, the kernel to 264, 50 until the wait for it ends, the host."""

Shares = dict[str, tuple[float, float, float]]


def shares(trace: Trace, params: PathGroupsParams) -> Shares:
    """Return title -> us on the host, on the device and in latencies."""
    answer = build_groups(trace, params)
    assert sum(row.time_ns for row in answer.rows) == answer.duration_ns
    assert all(row.time_ns == row.host_ns + row.device_ns + row.latency_ns for row in answer.rows)
    return {row.title: (row.host_ns / 1000, row.device_ns / 1000, row.latency_ns / 1000) for row in answer.rows}


def test_each_segment_belongs_to_the_innermost_line_of_the_program() -> None:
    assert shares(draw(STEP), PathGroupsParams("line")) == {
        "train.py(10): step": (258, 0, 50),
        "model.py(5): forward": (48, 200, 4),
        "No source line recorded": (40, 0, 0),  # the frame ends at 560
    }


def test_each_segment_belongs_to_the_innermost_operator_and_module() -> None:
    trace = draw(STEP)
    assert shares(trace, PathGroupsParams("operator")) == {
        "Outside operators": (250, 0, 0),
        "aten::linear": (30, 200, 4),
        "aten::item": (16, 0, 50),
        "aten::add": (50, 0, 0),
    }
    assert shares(trace, PathGroupsParams("module")) == {"Outside modules": (296, 0, 50), "Net_0": (50, 200, 4)}


def test_a_row_opens_its_longest_segment_and_is_a_target_with_all_that_it_calls() -> None:
    trace = draw(STEP)
    rows = {row.title: row for row in build_groups(trace, PathGroupsParams("line")).rows}
    step, forward, nowhere = rows["train.py(10): step"], rows["model.py(5): forward"], rows.popitem()[1]
    assert forward.event is not None and trace.strings[trace.events.name[forward.event]] == "gemm"
    assert (nowhere.name, nowhere.target) == (None, None)
    assert (step.target, forward.target) == ("line:train.py(10): step", "line:model.py(5): forward")
    # Without the frame the launch comes 48 us earlier, and so does all after it.
    curve = ask(trace, "critical_path/what_if", target=forward.target)["step_ns"]
    assert (curve[0], curve[-1]) == (600_000, 552_000)
    changed = build(trace, CriticalPathParams(f"{forward.target}:100")).what_if[-1]
    assert (changed.target, changed.step_ns) == (forward.target, 552_000)
    module = next(row for row in build_groups(trace, PathGroupsParams("module")).rows if row.name == "Net_0")
    assert module.target == "module:Net_0"


def test_one_step_alone_and_the_mean_of_all() -> None:
    trace = draw("""
    host  user_annotation  ProfilerStep#1        0  100
    host  python_function  train.py(1):~first   10   80
    host  user_annotation  ProfilerStep#2      100  200
    host  python_function  train.py(2):~second 110  150
    """)
    nowhere = "No source line recorded"
    second = shares(trace, PathGroupsParams("line", step="2"))
    assert second == {
        "train.py(2): second": (150, 0, 0),
        nowhere: (50, 0, 0),
    }
    both = shares(trace, PathGroupsParams("line"))
    assert both == {"train.py(2): second": (75, 0, 0), "train.py(1): first": (40, 0, 0), nowhere: (35, 0, 0)}
    with pytest.raises(NotFoundError, match="no complete step '3'"):
        build_groups(trace, PathGroupsParams("line", step="3"))


def test_a_trace_without_python_has_no_source_line() -> None:
    answer = build_groups(draw("host cpu_op aten::mm 0 10"), PathGroupsParams("line"))
    assert [(row.title, row.time_ns) for row in answer.rows] == [("No source line recorded", 10_000)]
    assert plain(answer.reasons["rows"]) == "no Python source was recorded (`profile(with_stack=True)`)"
    assert not build_groups(draw(STEP), PathGroupsParams("line")).reasons


def test_many_small_names_are_one_row() -> None:
    count = MAX_GROUPS + 5
    trace = draw("\n".join(f"host cpu_op op{at} {10 * at} 10" for at in range(count)))
    *rows, last = build_groups(trace, PathGroupsParams("operator")).rows
    assert (len(rows), last.title, last.others, last.time_ns) == (MAX_GROUPS, "5 more", 5, 50_000)
