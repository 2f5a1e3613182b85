"""Events of operators with recorded inputs, launches, kernels and counter ranges, to build traces of."""

from __future__ import annotations

from typing import Any

from tests.support.traces import read
from torch_tb_profiler.model.costs.call import Cost, read_call
from torch_tb_profiler.model.costs.models import built_in_cost_model
from torch_tb_profiler.model.work.operator_work import OperatorWork, operator_work

FLOAT, BF16, SCALAR, LIST = "float", "c10::BFloat16", "Scalar", "ScalarList"


def formula_cost(
    name: str,
    dims: list[Any],
    types: list[str],
    values: list[str] | None = None,
    strides: list[Any] | None = None,
    kernel: str = "kernel",
) -> Cost:
    """Compute the cost of an operator by its formula, or raise UnknownCostError."""
    from json import dumps

    model = built_in_cost_model(name)
    assert model is not None, name
    texts = [dumps(dims), dumps(types), dumps(strides) if strides else None, dumps(values) if values else None]
    return model.cost(read_call(name, texts, kernel))


def operator(name: str, start: float, duration: float, **inputs: Any) -> dict[str, Any]:
    """Return an operator; `inputs` are dims, types, values, strides, and further arguments by their names."""
    keys = {
        "dims": "Input Dims",
        "types": "Input type",
        "values": "Concrete Inputs",
        "strides": "Input Strides",
    }
    args = {keys.get(key, key): value for key, value in inputs.items()}
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


def work_of(*events: dict[str, Any]) -> tuple[OperatorWork, list[str]]:
    """Return (the work, the names of the owners) of a trace of these events."""
    trace = read([*events])
    done = operator_work(trace)
    return done, [trace.strings[code] for code in trace.events.name[done.owners.calls]]


VECTOR = [f"{width}{kind}" for width in "hfd" for kind in ("add", "mul", "fma")]
"""Instructions whose counters together give the FLOPs of vector units."""


def instruction_counters(**counts: int) -> dict[str, int]:
    """Return the counters of all arithmetic instructions, 0 for those that are not given."""
    return {f"smsp__sass_thread_inst_executed_op_{each}_pred_on.sum": counts.get(each, 0) for each in VECTOR}


def traffic_counters(read: int, written: int) -> dict[str, int]:
    return {"dram__bytes_read.sum": read, "dram__bytes_write.sum": written}


def counter_range(name: str, at: float, counters: dict[str, Any], device: int = 0) -> dict[str, Any]:
    """Return a range as PyTorch writes it: in the process of the device, without a correlation id."""
    return {
        "ph": "X", "cat": "cuda_profiler_range", "name": name, "pid": device, "tid": 0, "ts": at, "dur": 10,
        "args": counters,
    }  # fmt: skip
