"""FLOPs and bytes from hardware counters: what was executed, not what the shapes say.

vector units  adds + multiplications + 2 fused multiply-adds of threads, in half, single and double precision
              (smsp__sass_thread_inst_executed_op_*), as Holistic Trace Analysis and Nsight Compute's roofline
Tensor Cores  sm__ops_path_tensor_src_*: operations by type of the inputs; those of integers are no FLOPs
bytes         dram__bytes_read + dram__bytes_write, or dram__bytes: traffic of device memory, not of caches

A part of these tells nothing: without all nine counters of instructions, or of a kernel that may use Tensor Cores
whose operations were not counted, FLOPs are unknown.
"""

from __future__ import annotations

import re

import msgspec
import numpy as np

from torch_tb_profiler.model.counters.ranges import MISSING, Ranges, ranges
from torch_tb_profiler.model.tensor_cores import NO, YES, verdict
from torch_tb_profiler.model.trace import Bool, Float64, Trace, derived

_INSTRUCTION = re.compile(r"^smsp?__sass_thread_inst_executed_op_([hfd](?:add|mul|fma))_pred_on\.sum$")
_TENSOR_FLOPS = re.compile(r"^sm__ops_path_tensor_src_(?!int)\w+?(?<!_sparsity_off)(?<!_sparsity_on)\.sum$")
_TENSOR_USE = re.compile(r"^sm__inst_executed_pipe_tensor\.sum$")

NO_INSTRUCTIONS = "its arithmetic instructions were not all counted (`kineto__cuda_core_flops`)"
TENSOR_CORES = "it uses Tensor Cores, whose operations were not counted"
PERHAPS_TENSOR_CORES = "nothing tells whether it uses Tensor Cores, whose operations were not counted"
NO_TRAFFIC = "the traffic of device memory was not counted (`dram__bytes_read.sum`, `dram__bytes_write.sum`)"


class Measures(msgspec.Struct, frozen=True):
    """Columns over the r ranges of `ranges`; NaN is unknown.

    names   of the counters, in order of the alphabet
    values  float64[c, r]
    flops   float64[r]
    bytes   float64[r]
    double  bool[r]  most of the FLOPs are in double precision
    reason  why FLOPs, or else bytes, are unknown; None if both are known
    """

    names: tuple[str, ...]
    values: Float64
    flops: Float64
    bytes: Float64
    double: Bool
    reason: tuple[str | None, ...]


@derived
def measures(trace: Trace) -> Measures:
    """What the counters of every range say."""
    found = ranges(trace)
    names = _names(trace, found)
    values = {name: trace.arg_float(name, found.rows) for name in names}
    vector, double = _vector(values, len(found))
    use, tensor = _sum(values, _TENSOR_USE, len(found)), _sum(values, _TENSOR_FLOPS, len(found))
    verdicts = _verdicts(trace, found)
    plain = (use == 0) | (np.isnan(use) & (verdicts == NO) & ~(tensor > 0))
    flops = vector + np.where(plain, 0.0, np.where(tensor > 0, tensor, np.nan))
    moved = _traffic(values, len(found))
    counted = np.vstack([*values.values()]) if values else np.empty((0, len(found)))
    reasons = [
        NO_INSTRUCTIONS if no_vector
        else (TENSOR_CORES if used else PERHAPS_TENSOR_CORES) if no_flops
        else NO_TRAFFIC if no_bytes
        else None
        for no_vector, used, no_flops, no_bytes in zip(
            np.isnan(vector).tolist(), ((use > 0) | (verdicts == YES)).tolist(),
            np.isnan(flops).tolist(), np.isnan(moved).tolist(), strict=True,
        )
    ]  # fmt: skip
    return Measures(tuple(names), counted, flops, moved, double > 0.5 * flops, tuple(reasons))


def _names(trace: Trace, found: Ranges) -> list[str]:
    """Numeric arguments that any range has."""
    if not len(found):
        return []
    return sorted(
        key
        for key, column in trace.args.items()
        if column.kind in ("int", "float") and np.isin(found.rows, column.rows).any()
    )


def _vector(values: dict[str, Float64], count: int) -> tuple[Float64, Float64]:
    """(FLOPs of the vector units, those in double precision); NaN unless all nine instructions are counted."""
    total, double, seen = np.zeros(count), np.zeros(count), set()
    for name, counted in values.items():
        match = _INSTRUCTION.match(name)
        if match is None or match[1] in seen:
            continue
        seen.add(match[1])
        flops = (2 if match[1].endswith("fma") else 1) * counted
        total += flops
        double += flops if match[1].startswith("d") else 0
    return (total, double) if len(seen) == 9 else (np.full(count, np.nan), double)


def _sum(values: dict[str, Float64], pattern: re.Pattern[str], count: int) -> Float64:
    """Of the counters of a pattern that a range has; NaN where it has none."""
    found = [counted for name, counted in values.items() if pattern.match(name)]
    if not found:
        return np.full(count, np.nan)
    total: Float64 = np.where(np.isnan(found).all(axis=0), np.nan, np.nansum(found, axis=0))
    return total


def _traffic(values: dict[str, Float64], count: int) -> Float64:
    unknown = np.full(count, np.nan)
    read, written = (values.get(f"dram__bytes_{way}.sum", unknown) for way in ("read", "write"))
    return np.where(np.isnan(read + written), values.get("dram__bytes.sum", unknown), read + written)


def _verdicts(trace: Trace, found: Ranges) -> np.ndarray:
    """Of every range whether its kernel uses Tensor Cores, by its name."""
    names = np.where(found.kernel >= 0, trace.events.name[found.kernel], trace.events.name[found.rows])
    verdicts = {
        code: verdict(trace.strings[code], "CUDA")[0]
        for code in np.unique(names).tolist()
        if code >= 0 and trace.strings[code] != MISSING
    }
    return np.array([verdicts.get(code, -1) for code in names.tolist()], np.int8)
