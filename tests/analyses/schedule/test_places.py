"""Operator, module and source line that a slice belongs to."""

from __future__ import annotations

import numpy as np

from tests.support.traces import draw
from torch_tb_profiler.analyses.schedule.places import PlaceKind, program_places
from torch_tb_profiler.model.trace import Trace

TRAINING = """
host   python_function  train.py(10):~step                  0  600
host   python_function  nn.Module:~Net_0                   10  200
host   python_function  model.py(5):~forward               20  180
host   python_function  torch/nn/functional.py(8):~linear  30  100
host   cpu_op           aten::linear                       40   80  Sequence number=1
host   cuda_runtime     cudaLaunchKernel                   50   10  correlation=1
gpu0   kernel           gemm                               70   50  correlation=1
host   user_annotation  log                               650   40
host2  cpu_op           AddmmBackward0                    300   60  Sequence number=1 Fwd thread id=1
host2  cpu_op           aten::mm                          310   40
host2  cuda_runtime     cudaLaunchKernelExC               320   10  correlation=2
gpu0   kernel           gemm_backward                     340   50  correlation=2
host2  cpu_op           aten::copy_                       400   20
gpu0   kernel           alone                             500   50
"""


def find_places(trace: Trace, by: PlaceKind) -> dict[str, str | None]:
    """Return event name -> where it belongs."""
    rows = np.arange(len(trace), dtype=np.int32)
    codes, texts = program_places(trace, rows, by)
    names = [trace.strings[code] for code in trace.events.name.tolist()]
    where = [texts[code] if code >= 0 else None for code in codes.tolist()]
    return dict(zip(names, where, strict=True))


def test_a_line_is_the_innermost_frame_of_the_users_code() -> None:
    forward = "model.py(5): forward"
    assert find_places(draw(TRAINING), "line") == {
        "train.py(10): step": "train.py(10): step",
        "nn.Module: Net_0": "train.py(10): step",
        forward: forward,
        "torch/nn/functional.py(8): linear": forward,
        "aten::linear": forward,
        "cudaLaunchKernel": forward,
        "gemm": forward,
        "log": None,
        "AddmmBackward0": forward,  # what it differentiates was called there
        "aten::mm": forward,
        "cudaLaunchKernelExC": forward,
        "gemm_backward": forward,
        "aten::copy_": None,
        "alone": None,
    }


def test_a_line_is_also_the_recorded_stack_of_the_operator() -> None:
    stack = "torch/nn/functional.py(8): linear;model.py(5): forward;train.py(10): step"
    timed = {"ph": "X", "pid": 1, "tid": 1}
    trace = draw(
        "gpu0 kernel gemm 70 50 correlation=1",
        {**timed, "cat": "cpu_op", "name": "aten::mm", "ts": 0, "dur": 50, "args": {"Call stack": stack}},
        {
            **timed,
            "cat": "cpu_op",
            "name": "aten::empty",
            "ts": 60,
            "dur": 5,
            "args": {"Call stack": "<string>(1): x"},
        },
        {**timed, "cat": "cuda_runtime", "name": "launch", "ts": 20, "dur": 9, "args": {"correlation": 1}},
    )
    forward = "model.py(5): forward"
    assert find_places(trace, "line") == {
        "gemm": forward,
        "aten::mm": forward,
        "aten::empty": None,
        "launch": forward,
    }


def test_operator_and_module_are_the_innermost_of_host_and_device() -> None:
    trace = draw(TRAINING)
    operators, modules = find_places(trace, "operator"), find_places(trace, "module")
    for name, operator, module in (
        ("train.py(10): step", None, None),
        ("aten::linear", "aten::linear", "Net_0"),
        ("cudaLaunchKernel", "aten::linear", "Net_0"),
        ("gemm", "aten::linear", "Net_0"),
        ("AddmmBackward0", "AddmmBackward0", "Net_0"),
        ("gemm_backward", "aten::mm", "Net_0"),
        ("aten::copy_", "aten::copy_", None),
        ("alone", None, None),
    ):
        assert (operators[name], modules[name]) == (operator, module), name
