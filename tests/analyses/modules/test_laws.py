"""Module times add up in any generated trace."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.support.traces import read
from torch_tb_profiler.analyses.modules.flame import build_module_flame
from torch_tb_profiler.analyses.modules.times import device_times_by_family, module_times
from torch_tb_profiler.model.kinds import DEVICE_KINDS, event_ends, rows_of_kind
from torch_tb_profiler.model.modules import modules

ENGINE = "autograd::engine::evaluate_function: "
NAMES = {
    "python_function": ["nn.Module: A_0", "nn.Module: A_1", "nn.Module: B_0", "f.py(1): g"],
    "cpu_op": ["aten::mm", f"{ENGINE}MmBackward0", "MmBackward0", f"{ENGINE}torch::autograd::AccumulateGrad"],
    "cuda_runtime": ["cudaLaunchKernel"],
    "kernel": ["gemm", "softmax_warp_forward"],
}


@st.composite
def events(draw: Any) -> dict[str, Any]:
    category = draw(st.sampled_from(list(NAMES)))
    args: dict[str, Any] = {}
    if category in ("cuda_runtime", "kernel"):
        args["correlation"] = draw(st.integers(1, 6))
    if category == "cpu_op":
        args |= {"Sequence number": draw(st.integers(0, 3)), "Fwd thread id": draw(st.integers(0, 2))}
    return {
        "ph": "X",
        "cat": category,
        "name": draw(st.sampled_from(NAMES[category])),
        "pid": 0 if category == "kernel" else 1,
        "tid": draw(st.integers(1, 2)),
        "ts": draw(st.integers(0, 30)),
        "dur": draw(st.integers(-1, 20)),
        "args": args,
    }


@given(st.lists(events(), min_size=1, max_size=25))
def test_times_add_up_in_any_trace(generated: list[dict[str, Any]]) -> None:
    trace = read(generated)
    model = modules(trace)
    times = module_times(trace, model)
    durations = event_ends(trace) - trace.events.start
    assert times.device_time == durations[rows_of_kind(trace, *DEVICE_KINDS)].sum()
    assert (device_times_by_family(trace, model).sum(axis=1) == times.forward_self + times.backward_self).all()
    inside = np.zeros(len(model.names), np.int64)
    rows = model.nesting.rows
    rows = rows[np.isin(model.nesting.parent[rows], model.calls)]
    np.add.at(inside, model.code[model.nesting.parent[rows]], durations[rows])
    assert (times.host_self + times.operators_time + inside == times.host_total).all()
    assert (model.parent < np.arange(len(model.names))).all()
    assert int(times.calls.sum()) == len(model.calls)
    for time in ("host", "device"):
        flame = build_module_flame(trace, model, "host" if time == "host" else "device")
        assert (flame.value > 0).all()
        assert (flame.parent < np.arange(len(flame.names))).all()
