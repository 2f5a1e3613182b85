from __future__ import annotations

import numpy as np
import pytest

from tests.support.traces import draw, event
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import parse_params
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.operators import build as operators
from torch_tb_profiler.views.operators.build import build_instances, build_stacks
from torch_tb_profiler.views.operators.payload import (
    OperatorRow,
    OperatorRowParams,
    OperatorsParams,
    OperatorsPayload,
    UnlinkedWork,
)

PICTURE = """
host  user_annotation  ProfilerStep#1        0   60
host  user_annotation  ProfilerStep#2       60   60
host  cpu_op           aten::linear         0    40   External id=1
host  cpu_op           aten::addmm          5    30   External id=2
host  cuda_runtime     cudaLaunchKernel    10     8   correlation=7
host  cpu_op           aten::relu          70    10   External id=3
host  cuda_runtime     cudaLaunchKernel    72     4   correlation=8
host  cuda_runtime     cudaLaunchKernel   100     5   correlation=9
gpu0  kernel           ampere_h1688gemm    20    50   correlation=7 device=0 stream=7
gpu0  kernel           relu_kernel         80    20   correlation=8 device=0 stream=7
gpu0  gpu_memset       Memset             110     4   correlation=9 device=0 stream=7
"""


def table(trace: Trace, **params: str) -> OperatorsPayload:
    return operators.build(trace, parse_params(OperatorsParams, params))


def rows(trace: Trace, **params: str) -> dict[str, OperatorRow]:
    return {row.name: row for row in table(trace, **params).rows}


def test_self_time_excludes_nested_operators_and_runtime_calls() -> None:
    found = rows(draw(PICTURE))
    linear, addmm, relu = (found[f"aten::{name}"] for name in ("linear", "addmm", "relu"))
    assert (linear.host_total_ns, linear.host_self_ns) == (40_000, 10_000)
    assert (addmm.host_total_ns, addmm.host_self_ns) == (30_000, 22_000)
    assert (linear.device_total_ns, linear.device_self_ns) == (50_000, 0)
    assert (addmm.device_total_ns, addmm.device_self_ns) == (50_000, 50_000)
    assert (relu.host_self_ns, relu.device_self_ns, relu.host_mean_ns) == (6_000, 20_000, 10_000)


def test_tensor_core_use_follows_from_the_kernel_names() -> None:
    found = rows(draw(PICTURE))
    assert found["aten::addmm"].tc_eligible and found["aten::linear"].tc_eligible
    assert (found["aten::addmm"].tc_self_ratio, found["aten::linear"].tc_self_ratio) == (1.0, None)
    assert found["aten::linear"].tc_total_ratio == 1.0
    assert (found["aten::relu"].tc_eligible, found["aten::relu"].tc_self_ratio) == (False, 0.0)


def test_work_that_no_operator_launched_is_listed_with_its_time() -> None:
    payload = table(draw(PICTURE))
    assert payload.unlinked == UnlinkedWork(1, 4_000)
    assert payload.totals.device_self_ns == 70_000


def test_a_step_filter_looks_at_the_host() -> None:
    first, second = (table(draw(PICTURE), step=step) for step in ("1", "2"))
    assert {row.name for row in first.rows} == {"aten::linear", "aten::addmm"}
    assert {row.name for row in second.rows} == {"aten::relu"}
    assert second.unlinked == UnlinkedWork(1, 4_000)
    assert first.unlinked == UnlinkedWork(0, 0)


def test_a_kernel_filter_selects_the_operators_that_launched_it() -> None:
    assert set(rows(draw(PICTURE), kernel="relu_kernel")) == {"aten::relu"}


def test_a_nested_duplicate_counts_once() -> None:
    found = rows(
        draw(
            """
            host  cpu_op        aten::to    0  100
            host  cpu_op        aten::to   10   80
            host  cpu_op        aten::copy 20   40
            host  cuda_runtime  launch     65    5   correlation=1
            gpu0  kernel        k          70   30   correlation=1 device=0 stream=7
            host  cpu_op        aten::cat 200   50
            host  cpu_op        aten::cat 205   10
            host  cpu_op        aten::cat 220   10
            """
        )
    )
    assert (found["aten::to"].calls, found["aten::to"].host_total_ns) == (1, 100_000)
    assert found["aten::to"].host_self_ns == 55_000
    assert found["aten::to"].device_self_ns == 30_000
    assert found["aten::cat"].calls == 3, "two nested ones are no duplicate"
    assert found["aten::cat"].host_self_ns == 50_000


def test_frames_and_annotations_inside_do_not_reduce_self_time() -> None:
    found = rows(
        draw(
            """
            host  cpu_op           op          0  100
            host  python_function  f.py(1):~f 10   50
            host  user_annotation  mine       20   30
            host  cuda_runtime     launch     25    5
            host  cuda_driver      cuLaunch   26    3
            """
        )
    )
    assert found["op"].host_self_ns == 95_000


def test_without_a_device_times_are_null_and_not_zero() -> None:
    payload = table(draw("host  cpu_op  op  0  10"))
    (row,) = payload.rows
    assert (row.device_self_ns, row.device_total_ns, row.tc_self_ratio) == (None, None, None)
    assert payload.unlinked is None
    assert "no device work" in plain(payload.reasons["device_self_ns"])


def draw_shaped(name: str, at: int, dims: object, **more: object) -> dict[str, object]:
    row = event(f"host  cpu_op  {name}  {at}  10")
    row["args"] = {"Input Dims": dims, **more}
    return row


def test_groups_by_shape_and_by_signature() -> None:
    trace = draw(
        "host  user_annotation  block  0  25",
        draw_shaped("mm", 0, [[2, 3]], **{"Input type": ["float"]}),
        draw_shaped("mm", 20, [[2, 3]], **{"Input type": ["half"]}),
        draw_shaped("mm", 40, [[4, 4]], **{"Input type": ["half"]}),
    )
    by_shape = table(trace, group_by="shape").rows
    assert sorted((row.input_shape, row.calls) for row in by_shape) == [("[[2,3]]", 2), ("[[4,4]]", 1)]
    by_signature = table(trace, group_by="signature").rows
    assert sorted((row.input_types, row.calls) for row in by_signature) == [
        ('["float"]', 1),
        ('["half"]', 1),
        ('["half"]', 1),
    ]
    by_annotation = table(trace, group_by="annotation").rows
    assert {(row.annotation, row.calls) for row in by_annotation} == {("block", 2), (None, 1)}


def test_filters_by_thread_and_phase() -> None:
    trace = draw(
        """
        host   cpu_op           forward     0  10   Sequence number=3
        host   user_annotation  Optimizer.step#SGD.step  50  20
        host   cpu_op           update     55  10
        host   cpu_op           enumerate(DataLoader)#_It.__next__  80  10
        host   cpu_op           read       82   5
        host2  cpu_op           backward   20  10   Sequence number=3 Fwd thread id=1
        """
    )
    assert set(rows(trace, thread="1/2")) == {"backward"}
    assert set(rows(trace, phase="backward")) == {"backward"}
    assert set(rows(trace, phase="optimizer")) == {"update"}
    assert set(rows(trace, phase="data")) == {"read"}
    assert set(rows(trace, phase="forward")) == {"forward"}


def test_an_unknown_filter_value_is_refused_by_name() -> None:
    trace = draw(PICTURE)
    for name, value in (("step", "99"), ("thread", "9/9"), ("phase", "sideways")):
        with pytest.raises(NotFoundError, match=f"no {name}"):
            table(trace, **{name: value})


# ---- stacks and durations -------------------------------------------------------------------------------


def test_stacks_from_python_frames_with_their_times() -> None:
    trace = draw(
        """
        host  python_function  train.py(9):~main    0  100
        host  python_function  model.py(3):~forward 5   40
        host  cpu_op           aten::mm            10   20
        host  python_function  model.py(5):~head   50   40
        host  cpu_op           aten::mm            60   10
        host  cpu_op           aten::mm            75   10
        """
    )
    row = rows(trace)["aten::mm"]
    found = build_stacks(trace, OperatorRowParams(row.event))
    assert [([f.text for f in s.frames], s.calls, s.host_total_ns) for s in found.stacks] == [
        (["model.py(3): forward", "train.py(9): main"], 1, 20_000),
        (["model.py(5): head", "train.py(9): main"], 2, 20_000),
    ]
    assert [(f.function, f.line, f.parent, f.calls, f.host_ns) for f in found.frames] == [
        ("main", 9, None, 3, 40_000),
        ("forward", 3, 0, 1, 20_000),
        ("head", 5, 0, 2, 20_000),
    ]
    assert found.bare == 0
    assert not any(frame.library for frame in found.frames)


def test_frames_of_libraries_are_marked() -> None:
    trace = draw(
        """
        host  python_function  train.py(9):~main                                             0  100
        host  python_function  /usr/lib/python3.11/site-packages/torch/nn/module.py(7):~call  5   40
        host  python_function  <built-in~linear>                                             6   30
        host  cpu_op           aten::mm                                                     10   20
        """
    )
    found = build_stacks(trace, OperatorRowParams(rows(trace)["aten::mm"].event))
    assert [(frame.function, frame.library) for frame in found.frames] == [
        ("main", False),
        ("call", True),
        (None, True),
    ]


def test_recorded_call_stacks_come_first() -> None:
    row = event("host  cpu_op  aten::mm  10  20")
    row["args"] = {"Call stack": "model.py(3): forward;train.py(9): main"}
    trace = draw("host  python_function  other.py(1):~f  0  100", row, event("host  cpu_op  aten::mm  50  5"))
    found = build_stacks(trace, OperatorRowParams(rows(trace)["aten::mm"].event))
    assert [[f.file for f in s.frames] for s in found.stacks] == [["model.py", "train.py"], ["other.py"]]


def test_a_frame_may_have_the_name_of_a_category_or_none() -> None:
    nameless = event("host  python_function  x  0  100")
    del nameless["name"]
    for frame, text in ((event("host  python_function  cpu_op  0  100"), "cpu_op"), (nameless, "")):
        trace = draw("host  cpu_op  aten::mm  10  20", frame)
        found = build_stacks(trace, OperatorRowParams(rows(trace)["aten::mm"].event))
        assert [[f.text for f in s.frames] for s in found.stacks] == [[text]]


def test_without_stacks_the_reason_says_what_to_set() -> None:
    trace = draw("host  cpu_op  aten::mm  10  20")
    found = build_stacks(trace, OperatorRowParams(rows(trace)["aten::mm"].event))
    assert (found.stacks, found.bare) == ([], 1)
    assert "with_stack" in plain(found.reason or ())


def test_outliers_name_their_events() -> None:
    lines = [f"host  cpu_op  aten::mm  {100 * i}  {10 + i % 3}" for i in range(30)]
    trace = draw("\n".join([*lines, "host  cpu_op  aten::mm  9000  500"]))
    found = build_instances(trace, OperatorRowParams(rows(trace)["aten::mm"].event))
    assert found.calls == sum(found.counts) == 31
    assert [(outlier.duration_ns, outlier.start_ns) for outlier in found.outliers] == [(500_000, 9_000_000)]
    assert found.far_out == 1
    assert trace.events.duration[found.outliers[0].event] == 500_000
    assert found.median_ns == np.median(trace.events.duration)
