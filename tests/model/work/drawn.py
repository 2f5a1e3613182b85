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


VECTOR = [f"{width}{kind}" for width in "hfd" for kind in ("add", "mul", "fma")]
"""Instructions whose counters together tell the FLOPs of vector units."""


def instructions(**counts: int) -> dict[str, int]:
    """The counters of all arithmetic instructions, 0 of those that are not given."""
    return {f"smsp__sass_thread_inst_executed_op_{each}_pred_on.sum": counts.get(each, 0) for each in VECTOR}


def traffic(read: int, written: int) -> dict[str, int]:
    return {"dram__bytes_read.sum": read, "dram__bytes_write.sum": written}


def counted(name: str, at: float, counters: dict[str, Any], device: int = 0) -> dict[str, Any]:
    """A range of the range profiler, as PyTorch writes it: in the process of the device, without a correlation."""
    return {
        "ph": "X", "cat": "cuda_profiler_range", "name": name, "pid": device, "tid": 0, "ts": at, "dur": 10,
        "args": counters,
    }  # fmt: skip
