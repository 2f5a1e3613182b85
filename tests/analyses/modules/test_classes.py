from __future__ import annotations

from tests.support.recordings import TRAINING
from tests.support.traces import draw
from torch_tb_profiler.analyses.modules.classes import ClassTimes, class_times
from torch_tb_profiler.analyses.modules.order import call_order
from torch_tb_profiler.analyses.modules.times import module_times
from torch_tb_profiler.model.modules.modules import modules
from torch_tb_profiler.model.trace import Trace


def classes(trace: Trace) -> dict[str, ClassTimes]:
    model = modules(trace)
    return {row.name: row for row in class_times(model, module_times(trace, model), call_order(trace, model))}


def test_sums_by_class_count_nothing_twice() -> None:
    again = """
    host   python_function  nn.Module:~Linear_1  800   30  Python module id=1
    host   cpu_op           aten::mm             805   20
    host   cuda_runtime     cudaLaunchKernel     810    5  correlation=9
    gpu0   kernel           gemm                 900   80  correlation=9 stream=7
    """
    trace = draw(TRAINING + again)
    linear = classes(trace)["Linear"]
    assert (len(linear.places), linear.calls, linear.operators) == (2, 2, 2)
    assert (linear.forward, linear.backward, linear.device) == (130_000, 60_000, 190_000)
    assert (linear.host, linear.backward_host) == (40_000 + 30_000, 80_000)
    assert list(classes(trace)) == ["Net", "Linear"]
    total = sum(row.device for row in classes(trace).values())
    times = module_times(trace, modules(trace))
    assert total + times.outside.time + times.unlinked.time == times.device_time


def test_the_place_of_a_class_is_the_one_with_the_most_device_time_else_host_time() -> None:
    on_host = """
    host  python_function  nn.Module:~ReLU_0   0  10  Python module id=0
    host  python_function  nn.Module:~ReLU_1  20  30  Python module id=1
    host  python_function  nn.Module:~ReLU_2  60  20  Python module id=2
    """
    trace = draw(on_host)
    assert modules(trace).names[classes(trace)["ReLU"].longest] == "ReLU_1"
    device = """
    host  cuda_runtime  cudaLaunchKernel  65  5  correlation=1
    gpu0  kernel        relu              70  1000  correlation=1 stream=7
    """
    trace = draw(on_host + device)
    assert modules(trace).names[classes(trace)["ReLU"].longest] == "ReLU_2"


def test_places_are_listed_by_their_first_call_after_the_one_around_them() -> None:
    trace = draw("""
    host  python_function  nn.Module:~B_0  50  40  Python module id=0
    host  python_function  nn.Module:~A_0   0  40  Python module id=0
    host  python_function  nn.Module:~C_0  10  10  Python module id=0
    """)
    model = modules(trace)
    assert [model.names[code] for code in call_order(trace, model)] == ["A_0", "C_0", "B_0"]
