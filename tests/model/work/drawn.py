"""Calls of operators with recorded inputs, each launching kernels of its own."""

from __future__ import annotations

from typing import Any

from tests.support.traces import read
from torch_tb_profiler.model.work.calls import Work, work
from torch_tb_profiler.model.work.cost import Cost
from torch_tb_profiler.model.work.formulas.registry import model_of
from torch_tb_profiler.model.work.tensors import read_call

FLOAT, BF16, SCALAR, LIST = "float", "c10::BFloat16", "Scalar", "ScalarList"


def cost(
    name: str,
    dims: list[Any],
    types: list[str],
    values: list[str] | None = None,
    strides: list[Any] | None = None,
    kernel: str = "kernel",
) -> Cost:
    """What the formula of an operator answers; `Unknown` where it cannot."""
    from json import dumps

    model = model_of(name)
    assert model is not None, name
    texts = [dumps(dims), dumps(types), dumps(strides) if strides else None, dumps(values) if values else None]
    return model.cost(read_call(name, texts, kernel))


def operator(name: str, start: float, duration: float, **inputs: Any) -> dict[str, Any]:
    """An operator; `inputs` are dims, types, values and further arguments by their names in a trace."""
    spelled = {
        "dims": "Input Dims",
        "types": "Input type",
        "values": "Concrete Inputs",
        "strides": "Input Strides",
    }
    args = {spelled.get(key, key): value for key, value in inputs.items()}
    return {
        "ph": "X",
        "cat": "cpu_op",
        "name": name,
        "pid": 1,
        "tid": 1,
        "ts": start,
        "dur": duration,
        "args": args,
    }


def launch(at: float, correlation: int) -> dict[str, Any]:
    return {
        "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": at, "dur": 1,
        "args": {"correlation": correlation},
    }  # fmt: skip


def kernel(name: str, start: float, duration: float, correlation: int, cat: str = "kernel", **args: Any) -> Any:
    return {
        "ph": "X", "cat": cat, "name": name, "pid": 0, "tid": 7, "ts": start, "dur": duration,
        "args": {"correlation": correlation, "device": 0, "stream": 7, **args},
    }  # fmt: skip


def work_of(*events: dict[str, Any]) -> tuple[Work, list[str]]:
    """(the work, the names of the owners) of a trace of these events."""
    trace = read([*events])
    done = work(trace)
    return done, [trace.strings[code] for code in trace.events.name[done.owners.calls]]
