from __future__ import annotations

from typing import Any

import numpy as np

from tests.support.traces import draw
from torch_tb_profiler.model.modules import module_calls, modules
from torch_tb_profiler.model.trace import Trace


def owners(trace: Trace) -> dict[str, str]:
    """Return event name -> path of its module, "<-" before that of backward work; without events of no module."""
    found = modules(trace)
    return {
        trace.strings[trace.events.name[row]]: ("<-" if found.backward[row] else "")
        + "/".join(found.path(int(found.code[row])))
        for row in np.flatnonzero(found.code >= 0).tolist()
    }


FORWARD = """
    host  python_function  train.py(1):~step        0  200
    host  python_function  nn.Module:~Net_0        10  100  Python module id=0
    host  python_function  net.py(3):~forward      12   90
    host  python_function  nn.Module:~Linear_0     20   40  Python module id=0
    host  cpu_op           aten::addmm             25   30  Sequence number=1
    host  cuda_runtime     cudaLaunchKernel        30    5  correlation=1
    host  python_function  nn.Module:~Linear_1     65   30  Python module id=1
    host  cpu_op           aten::relu             115   10  Sequence number=2
    gpu0  kernel           gemm                   300   50  correlation=1 stream=7
    """


def test_events_belong_to_the_innermost_call_around_their_start() -> None:
    assert owners(draw(FORWARD)) == {
        "nn.Module: Net_0": "Net_0",
        "net.py(3): forward": "Net_0",
        "nn.Module: Linear_0": "Net_0/Linear_0",
        "aten::addmm": "Net_0/Linear_0",
        "cudaLaunchKernel": "Net_0/Linear_0",
        "nn.Module: Linear_1": "Net_0/Linear_1",
        "gemm": "Net_0/Linear_0",
    }


def test_two_calls_of_an_instance_are_one_place_and_two_instances_two() -> None:
    trace = draw("""
    host  python_function  nn.Module:~Conv2d   0  10  Python module id=0
    host  python_function  nn.Module:~Conv2d  20  10  Python module id=1
    host  python_function  nn.Module:~Conv2d  40  10  Python module id=0
    """)
    found = modules(trace)
    assert found.code.tolist() == [0, 1, 0]
    assert (found.names, found.ids) == (("Conv2d", "Conv2d"), (0, 1))


def test_a_frame_with_a_module_id_is_a_call_whatever_its_name() -> None:
    trace = draw("host  python_function  Odd  0  10  Python module id=4")
    assert module_calls(trace).tolist() == [0]
    assert modules(trace).names == ("Odd",)


def test_an_operator_that_begins_with_a_module_call_and_outlasts_it_is_outside() -> None:
    trace = draw("""
    host  python_function  nn.Module:~Net_0       0  100
    host  cpu_op           CheckpointFunction    10   50
    host  python_function  nn.Module:~Linear_0   10   20
    host  cpu_op           aten::mm              10    5
    """)
    assert owners(trace)["CheckpointFunction"] == "Net_0"
    assert owners(trace)["aten::mm"] == "Net_0/Linear_0"


def test_other_threads_have_no_part_in_a_call() -> None:
    trace = draw("""
    host   python_function  nn.Module:~Net_0    0  100
    host2  cpu_op           aten::mm           10   20
    """)
    assert owners(trace) == {"nn.Module: Net_0": "Net_0"}


def test_slices_in_side_lanes_have_their_module() -> None:
    """`record_function` begins inside a Python frame and outlasts it."""
    trace = draw("""
    host  python_function  nn.Module:~Net_0    0  100
    host  python_function  __enter__          10   10
    host  user_annotation  region             15   40
    host  cpu_op           aten::mm           30   10
    """)
    assert owners(trace)["region"] == "Net_0"
    assert owners(trace)["aten::mm"] == "Net_0"


def test_memory_events_have_the_module_that_runs() -> None:
    memory = {"ph": "i", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": 25.0, "args": {"Bytes": 4}}
    assert owners(draw(FORWARD, memory))["[memory]"] == "Net_0/Linear_0"


ENGINE = "autograd::engine::evaluate_function:~"

BACKWARD = f"""
    host2  cpu_op        {ENGINE}AddmmBackward0                   400  80
    host2  cpu_op        AddmmBackward0       410  40  Sequence number=1 Fwd thread id=1
    host2  cpu_op        aten::mm             415  30
    host2  cuda_runtime  cudaLaunchKernelExC  420  10  correlation=2
    host2  cpu_op        aten::add_           460  10
    host2  cpu_op        {ENGINE}torch::autograd::AccumulateGrad  490  20
    host2  cpu_op        aten::detach         495   5
    host2  cpu_op        {ENGINE}ReluBackward0                    520  20
    host2  cpu_op        ReluBackward0        525  10  Sequence number=2 Fwd thread id=1
    host2  cpu_op        {ENGINE}Other                            550  20
    host2  cpu_op        aten::sub            555  10
    gpu0   kernel        gemm_backward        600  70  correlation=2 stream=7
    """


def test_backward_work_belongs_to_the_module_of_its_forward_operator() -> None:
    found = owners(draw(FORWARD + BACKWARD))
    assert {name: path for name, path in found.items() if path.startswith("<-")} == {
        "autograd::engine::evaluate_function: AddmmBackward0": "<-Net_0/Linear_0",
        "AddmmBackward0": "<-Net_0/Linear_0",
        "aten::mm": "<-Net_0/Linear_0",
        "cudaLaunchKernelExC": "<-Net_0/Linear_0",
        "aten::add_": "<-Net_0/Linear_0",
        "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad": "<-Net_0/Linear_0",
        "aten::detach": "<-Net_0/Linear_0",
        "gemm_backward": "<-Net_0/Linear_0",
    }
    # Their forward operators ran outside of any module, or are not known.
    assert found.keys().isdisjoint({"ReluBackward0", "aten::sub"})


def test_backward_without_the_engines_operators() -> None:
    trace = draw(
        FORWARD
        + """
    host2  cpu_op  AddmmBackward0                  410  40  Sequence number=1 Fwd thread id=1
    host2  cpu_op  aten::mm                        415  30
    host2  cpu_op  torch::autograd::AccumulateGrad 460  10
    """
    )
    found = owners(trace)
    assert found["aten::mm"] == found["torch::autograd::AccumulateGrad"] == "<-Net_0/Linear_0"


def test_backward_of_backward_belongs_to_the_same_module() -> None:
    trace = draw(
        FORWARD
        + """
    host2  cpu_op  AddmmBackward0   410  40  Sequence number=1 Fwd thread id=1
    host2  cpu_op  aten::mm         415  30  Sequence number=3
    host2  cpu_op  MmBackward0      500  40  Sequence number=3 Fwd thread id=2
    host2  cpu_op  aten::twice      510  10
    """
    )
    assert owners(trace)["aten::twice"] == "<-Net_0/Linear_0"


def test_modules_that_backward_computes_again_keep_their_place() -> None:
    trace = draw(
        FORWARD
        + BACKWARD
        + """
    host2  python_function  nn.Module:~Linear_1  411  3  Python module id=1
    host2  cpu_op           aten::again          412  1
    host2  python_function  nn.Module:~Free_0    560  5  Python module id=0
    """
    )
    found = owners(trace)
    assert found["aten::again"] == "Net_0/Linear_1"
    assert found["nn.Module: Free_0"] == "Free_0"
    assert found["aten::mm"] == "<-Net_0/Linear_0"


def test_unlinked_device_work_belongs_to_no_module() -> None:
    trace = draw(
        FORWARD
        + """
    gpu0  kernel  stray   20  10  stream=7
    gpu0  kernel  orphan  30  10  correlation=99 stream=7
    """
    )
    assert owners(trace).keys().isdisjoint({"stray", "orphan"})


def draw_scripted(name: str, start: float, hierarchy: str) -> dict[str, Any]:
    return {
        "ph": "X",
        "cat": "cpu_op",
        "name": name,
        "pid": 1,
        "tid": 1,
        "ts": start,
        "dur": 8.0,
        "args": {"Module Hierarchy": hierarchy},
    }


def test_modules_of_scripted_models_come_from_the_hierarchy() -> None:
    trace = draw(
        """
    host  cuda_runtime  cudaLaunchKernel  2  1  correlation=1
    gpu0  kernel        gemm             20  5  correlation=1 stream=7
    """,
        draw_scripted("aten::sub", 0, "TOP(C)::forward.A0(A)::forward."),
        draw_scripted("aten::mul", 10, "TOP(C)::forward.A0(A)::forward.SELF(A)::forward_impl_.SELF(A)::helper."),
        draw_scripted("aten::add", 20, "TOP(C)::forward.SELF(C)::call_b.B0(B)::forward."),
        draw_scripted("aten::neg", 30, ""),
    )
    assert owners(trace) == {
        "aten::sub": "C/A0 (A)",
        "cudaLaunchKernel": "C/A0 (A)",
        "gemm": "C/A0 (A)",
        "aten::mul": "C/A0 (A)",
        "aten::add": "C/B0 (B)",
    }


def test_optimized_graphs_take_the_name_of_the_model_and_functions_are_no_modules() -> None:
    trace = draw(
        "",
        draw_scripted("forward", 0, "TOP(Net)::forward."),
        draw_scripted("aten::addmm", 10, "TOP()::<forward op>.0(Linear)::forward."),
        draw_scripted("aten::relu", 20, "TOP(Net)::forward.1(ReLU)::forward.::relu."),
        draw_scripted("defaults", 30, "TOP()::defaults."),
    )
    assert owners(trace) == {"forward": "Net", "aten::addmm": "Net/0 (Linear)", "aten::relu": "Net/1 (ReLU)"}


def test_a_trace_without_modules_has_no_places() -> None:
    found = modules(draw("host  cpu_op  aten::mm  0  10"))
    assert found.names == () and (found.code == -1).all() and not found.backward.any()


def test_device_work_without_a_launch_goes_to_the_module_of_its_operator() -> None:
    """Whatever the last event of the file belongs to."""
    trace = draw("""
    host  python_function  nn.Module:~Net_0      0  100  Python module id=0
    host  cpu_op           aten::mm             10   20  External id=4
    gpu0  kernel           by_id               200   10  correlation=98 stream=7 External id=4
    gpu0  kernel           lonely              220   10  correlation=99 stream=7
    host  cpu_op           aten::relu           50   10
    """)
    assert owners(trace) == dict.fromkeys(("nn.Module: Net_0", "aten::mm", "by_id", "aten::relu"), "Net_0")
