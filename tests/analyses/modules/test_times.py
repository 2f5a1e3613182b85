"""Host and device time per module and per class, and their flame graph."""

from __future__ import annotations

import numpy as np

from tests.support.recordings import TRAINING
from tests.support.traces import draw
from torch_tb_profiler.analyses.modules.flame import build_module_flame
from torch_tb_profiler.analyses.modules.times import (
    ClassTimes,
    call_order,
    class_times,
    module_times,
    recomputed_calls,
)
from torch_tb_profiler.model.modules import modules
from torch_tb_profiler.model.trace import Trace


def by_name(trace: Trace, field: str) -> dict[str, float]:
    """Return a field of the times by module, times in us."""
    model = modules(trace)
    values = getattr(module_times(trace, model), field)
    unit = 1 if field in ("calls", "operators") else 1000
    return {name: int(value) / unit for name, value in zip(model.names, values, strict=True)}


def test_a_call_is_the_sum_of_self_operators_and_modules_inside() -> None:
    trace = draw(TRAINING)
    assert by_name(trace, "calls") == {"Net_0": 1, "Linear_0": 1}
    assert by_name(trace, "operators") == {"Net_0": 1, "Linear_0": 1}
    assert by_name(trace, "host_total") == {"Net_0": 100, "Linear_0": 40}
    assert by_name(trace, "operators_time") == {"Net_0": 10, "Linear_0": 30}
    assert by_name(trace, "host_self") == {"Net_0": 100 - 10 - 40, "Linear_0": 10}


def test_backward_has_columns_of_its_own() -> None:
    trace = draw(TRAINING)
    assert by_name(trace, "backward_host_self") == {"Net_0": 0, "Linear_0": 80}
    assert by_name(trace, "backward_host_total") == {"Net_0": 80, "Linear_0": 80}
    assert by_name(trace, "forward_self") == {"Net_0": 7, "Linear_0": 50}
    assert by_name(trace, "forward_total") == {"Net_0": 57, "Linear_0": 50}
    assert by_name(trace, "backward_self") == {"Net_0": 0, "Linear_0": 60}
    assert by_name(trace, "backward_total") == {"Net_0": 60, "Linear_0": 60}


def test_all_device_time_is_in_a_module_outside_or_unlinked() -> None:
    trace = draw(TRAINING)
    times = module_times(trace, modules(trace))
    assert (times.outside.events, times.outside.time) == (1, 3_000)
    assert (times.unlinked.events, times.unlinked.time) == (1, 2_000)
    assert times.device_time == (50 + 7 + 3 + 60 + 2) * 1000


def test_an_operator_counts_without_the_module_calls_inside_it() -> None:
    trace = draw("""
    host  python_function  nn.Module:~Net_0             0  100
    host  cpu_op           CheckpointFunction          10   60
    host  cpu_op           aten::inner                 15   50
    host  python_function  nn.Module:~Linear_0         20   30
    host  cpu_op           aten::mm                    25   20
    """)
    assert by_name(trace, "operators") == {"Net_0": 1, "Linear_0": 1}
    assert by_name(trace, "operators_time") == {"Net_0": 30, "Linear_0": 20}
    assert by_name(trace, "host_self") == {"Net_0": 40, "Linear_0": 10}


def test_operators_of_scripted_models_count_without_those_of_inner_modules() -> None:
    def draw_scripted(name: str, start: float, duration: float, hierarchy: str) -> dict[str, object]:
        times = {"ts": start, "dur": duration, "args": {"Module Hierarchy": hierarchy}}
        return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, **times}

    trace = draw(
        "",
        draw_scripted("forward", 0, 100, "TOP(Net)::forward."),
        draw_scripted("aten::detach", 5, 10, "TOP(Net)::forward."),
        draw_scripted("aten::linear", 20, 60, "TOP(Net)::forward.0(Linear)::forward."),
        draw_scripted("aten::addmm", 30, 40, "TOP(Net)::forward.0(Linear)::forward."),
    )
    assert by_name(trace, "operators") == {"Net": 1, "0 (Linear)": 1}
    assert by_name(trace, "operators_time") == {"Net": 40, "0 (Linear)": 60}
    assert by_name(trace, "host_total") == {"Net": 100, "0 (Linear)": 60}
    assert frames(trace, "host")["forward"] == ("Net", 40)


def test_python_frames_that_overlap_an_operator_take_nothing_from_it() -> None:
    trace = draw("""
    host  python_function  nn.Module:~Net_0    0  100
    host  python_function  helper             10   30
    host  cpu_op           Torch-Compiled     20   50
    host  cpu_op           aten::mm           45   10
    """)
    assert by_name(trace, "operators") == {"Net_0": 1}
    assert by_name(trace, "host_self") == {"Net_0": 50}


def test_an_operator_that_overlaps_another_without_nesting_counts_once() -> None:
    """The time of the second operator already counts for the first, or for none."""
    trace = draw("""
    host  python_function  nn.Module:~Net_0    0  100
    host  cpu_op           aten::mm           10   40
    host  cpu_op           late               40   20
    """)
    assert by_name(trace, "operators_time") == {"Net_0": 40}
    assert by_name(trace, "host_self") == {"Net_0": 60}
    assert frames(trace, "host") == {"Net_0": (None, 100), "aten::mm": ("Net_0", 40)}


def test_backward_inside_a_module_call_is_not_its_self_time() -> None:
    trace = draw("""
    host  python_function  nn.Module:~Wrapper_0   0  100
    host  python_function  nn.Module:~Linear_0    5   20
    host  cpu_op           aten::addmm           10   10  Sequence number=1
    host  cpu_op           AddmmBackward0        50   30  Sequence number=1 Fwd thread id=1
    """)
    assert by_name(trace, "host_self") == {"Wrapper_0": 100 - 20 - 30, "Linear_0": 10}
    assert by_name(trace, "backward_host_self") == {"Wrapper_0": 0, "Linear_0": 30}


def test_recomputed_calls_count_as_calls_and_are_marked() -> None:
    trace = draw(
        TRAINING
        + """
    host2  python_function  nn.Module:~Linear_0  460  10  Python module id=0
    """
    )
    assert by_name(trace, "calls")["Linear_0"] == 2
    assert by_name(trace, "host_total")["Linear_0"] == 50
    assert by_name(trace, "backward_host_self")["Linear_0"] == 70
    recomputed = recomputed_calls(trace, modules(trace))
    assert trace.events.start[np.flatnonzero(recomputed)].tolist() == [460_000]


def frames(trace: Trace, time: str) -> dict[str, tuple[str | None, float]]:
    """Return (parent, us) by frame."""
    flame = build_module_flame(trace, modules(trace), "device" if time == "device" else "host")
    return {
        name: (flame.names[parent] if parent >= 0 else None, value / 1000)
        for name, parent, value in zip(flame.names, flame.parent, flame.value, strict=True)
    }


def test_flame_graph_of_host_time() -> None:
    assert frames(draw(TRAINING), "host") == {
        "Net_0": (None, 180),
        "Linear_0": ("Net_0", 120),
        "aten::view": ("Net_0", 10),
        "aten::linear": ("Linear_0", 30),
        "backward": ("Linear_0", 80),
    }


def test_flame_frames_record_when_they_are_first_called() -> None:
    again = """
    host  python_function  nn.Module:~Linear_0  700  10  Python module id=0
    host  cpu_op           aten::linear         702   5
    """
    for time in ("host", "device"):
        trace = draw(TRAINING + again)
        flame = build_module_flame(trace, modules(trace), "host" if time == "host" else "device")
        first = dict(zip(flame.names, (flame.first // 1000).tolist(), strict=True))
        expected = {"Net_0": 0, "Linear_0": 20, "aten::linear": 25, "backward": 400}
        assert {name: first[name] for name in expected} == expected, time


def test_an_operator_without_a_name_has_a_frame_in_its_module() -> None:
    nameless = {"ph": "X", "cat": "cpu_op", "pid": 1, "tid": 1, "ts": 22, "dur": 1}
    found = frames(draw(TRAINING, nameless), "host")
    assert found[""] == ("Linear_0", 1) and found["aten::view"] == ("Net_0", 10)


def test_flame_graph_of_device_time() -> None:
    assert frames(draw(TRAINING), "device") == {
        "Net_0": (None, 117),
        "Linear_0": ("Net_0", 110),
        "aten::linear": ("Linear_0", 50),
        "backward": ("Linear_0", 60),
    }


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
