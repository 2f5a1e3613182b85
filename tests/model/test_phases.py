"""In which phase of training an event runs."""

from __future__ import annotations

from tests.support.traces import draw
from torch_tb_profiler.model.phases import PHASES, event_phases
from torch_tb_profiler.model.trace import Trace

ENGINE = "autograd::engine::evaluate_function:~"


def phase_of(trace: Trace) -> dict[str, str]:
    return {
        trace.strings[code]: PHASES[phase]
        for code, phase in zip(trace.events.name.tolist(), event_phases(trace).tolist(), strict=True)
    }


def test_every_phase_has_its_marks_and_what_runs_inside_them() -> None:
    trace = draw(f"""
    host   user_annotation  ProfilerStep#1                              0  400
    host   user_annotation  enumerate(DataLoader)#_Single.__next__     10   40
    host   cpu_op           aten::stack                                20   10
    host   user_annotation  Optimizer.zero_grad#SGD.zero_grad          60   30
    host   cpu_op           aten::zero_                                70   10
    host   cpu_op           aten::linear                              100   20
    host2  cpu_op           {ENGINE}Addmm                             150   50
    host2  cpu_op           aten::mm                                  160   10
    host   user_annotation  Optimizer.step#SGD.step                   300   50
    host   cpu_op           aten::add_                                310   10
    """)
    assert phase_of(trace) == {
        "ProfilerStep#1": "forward",
        "enumerate(DataLoader)#_Single.__next__": "data",
        "aten::stack": "data",
        "Optimizer.zero_grad#SGD.zero_grad": "optimizer",
        "aten::zero_": "optimizer",
        "aten::linear": "forward",
        f"{ENGINE.replace('~', ' ')}Addmm": "backward",
        "aten::mm": "backward",
        "Optimizer.step#SGD.step": "optimizer",
        "aten::add_": "optimizer",
    }


def test_device_work_has_the_phase_of_its_launch() -> None:
    """It runs while the host is in another phase; what has no launch counts as forward."""
    trace = draw("""
    host  user_annotation  Optimizer.step#SGD.step     0   50
    host  cuda_runtime     launch                     10    5  correlation=1
    host  cpu_op           aten::linear               60   50
    gpu0  kernel           update                     70   10  correlation=1 stream=7
    gpu0  kernel           lonely                      5    2  correlation=9 stream=7
    """)
    found = phase_of(trace)
    assert (found["update"], found["lonely"]) == ("optimizer", "forward")


def test_old_files_have_their_backward_pass_by_name() -> None:
    """They have neither operators of the engine nor links from forward to backward."""
    trace = draw("""
    host   cpu_op        aten::cudnn_convolution                    0   20
    host2  cpu_op        CudnnConvolutionBackward                  50   40
    host2  cpu_op        aten::cudnn_convolution_backward          52   30
    host2  cpu_op        aten::cudnn_convolution_backward_weight   54   20
    host2  cuda_runtime  cudaLaunchKernel                          55    5  correlation=1
    host2  cpu_op        aten::add                                 85    3
    host   cpu_op        RegisterPostBackwardFunction             100   10
    gpu0   kernel        wgrad                                     70   10  correlation=1 stream=7
    """)
    found = phase_of(trace)
    forward = {"aten::cudnn_convolution", "RegisterPostBackwardFunction"}
    assert {name for name, phase in found.items() if phase == "forward"} == forward
    assert {phase for name, phase in found.items() if name not in forward} == {"backward"}


def test_the_innermost_mark_counts() -> None:
    """Lightning runs the backward pass in the optimizer's closure; hooks run an optimizer in the backward pass."""
    trace = draw(f"""
    host  user_annotation  Optimizer.step#SGD.step          0  100
    host  cpu_op           {ENGINE}Addmm                   10   30
    host  cpu_op           aten::mm                        15   10
    host  cpu_op           aten::add_                      60   10
    host  cpu_op           {ENGINE}Conv                   200  100
    host  user_annotation  Optimizer.step#Adam.step       210   50
    host  cpu_op           aten::mul_                     220   10
    """)
    found = phase_of(trace)
    assert (found["aten::mm"], found["aten::add_"], found["aten::mul_"]) == ("backward", "optimizer", "optimizer")
