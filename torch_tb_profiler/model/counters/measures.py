"""FLOPs and bytes from hardware counters: what was executed, not what the shapes imply.

CUPTI and rocprofv3 name the counters that give them so:

                NVIDIA                                         AMD
vector units    smsp__sass_thread_inst_executed_op_*_pred_on,  SQ_INSTS_VALU_{ADD,MUL,TRANS,FMA}_F{16,32,64}, of
                of threads, in half, single and double         waves: 64 lanes each, as ROCm Compute Profiler
matrix units    sm__ops_path_tensor_src_*, operations          SQ_INSTS_VALU_MFMA_MOPS_*, 512 operations each
bytes           dram__bytes_read, dram__bytes_write, or        FETCH_SIZE, WRITE_SIZE, in 1024 bytes
                dram__bytes

A subset of them isn't enough: FLOPs are unknown unless all counters of instructions were recorded, and for a
kernel that may use matrix units whose operations were not counted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec
import numpy as np

from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.model.counters.ranges import LOST_KERNEL, CounterRanges, counter_ranges
from torch_tb_profiler.model.kernels.tensor_cores import TC_NO, TC_YES, tensor_core_verdict
from torch_tb_profiler.model.trace import Bool, Float64, Trace


class CounterVocabulary(msgspec.Struct, frozen=True):
    """Counters of a vendor. Groups of the patterns: `fused` and `double` where that is what they count.

    vendor            as `tensor_cores.verdict` takes it
    instructions      of vector units; FLOPs are unknown unless all `all_instructions` of them are counted
    lanes             FLOPs of an instruction that is not fused
    matrix            floating-point operations of matrix units, in units of `matrix_flops`
    matrix_use        0 where matrix units were not used
    read_and_written  bytes are the sum of these counters times `traffic_unit`, else the counter `total_traffic`
    reasons           why something is unknown: instructions, matrix units, perhaps matrix units, bytes
    """

    vendor: str
    instructions: re.Pattern[str]
    all_instructions: int
    lanes: int
    matrix: re.Pattern[str]
    matrix_flops: int
    matrix_use: re.Pattern[str]
    read_and_written: tuple[str, str]
    traffic_unit: int
    total_traffic: str
    reasons: tuple[str, str, str, str]

    def traffic(self, values: Mapping[str, Float64], count: int) -> Float64:
        """Return bytes of device memory read and written, without those served by caches."""
        unknown = np.full(count, np.nan)
        read, written = (values.get(name, unknown) for name in self.read_and_written)
        total = values.get(self.total_traffic, unknown)
        return np.where(np.isnan(read + written), total, self.traffic_unit * (read + written))


def _missing_traffic(read: str, written: str) -> str:
    return f"device memory traffic was not counted (`{read}`, `{written}`)"


_MAY_USE_MATRIX_UNITS = "it may use {units}, whose operations were not counted"

NVIDIA = CounterVocabulary(
    vendor="CUDA",
    instructions=lazy_regex(
        r"smsp?__sass_thread_inst_executed_op_(?:(?P<double>d)|[hf])(?:add|mul|(?P<fused>fma))_pred_on\.sum"
    ),
    all_instructions=9,
    lanes=1,
    matrix=lazy_regex(
        r"sm__ops_path_tensor_src_(?!int)(?:(?P<double>fp64)|\w)\w*?(?<!_sparsity_off)(?<!_sparsity_on)\.sum"
    ),
    matrix_flops=1,
    matrix_use=lazy_regex(r"sm__inst_executed_pipe_tensor\.sum"),
    read_and_written=("dram__bytes_read.sum", "dram__bytes_write.sum"),
    traffic_unit=1,
    total_traffic="dram__bytes.sum",
    reasons=(
        "not all of its arithmetic instructions were counted (`kineto__cuda_core_flops`)",
        "it uses Tensor Cores, whose operations were not counted",
        _MAY_USE_MATRIX_UNITS.format(units="Tensor Cores"),
        _missing_traffic("dram__bytes_read.sum", "dram__bytes_write.sum"),
    ),
)

AMD = CounterVocabulary(
    vendor="ROCm",
    instructions=lazy_regex(r"SQ_INSTS_VALU_(?:ADD|MUL|TRANS|(?P<fused>FMA))_F(?:16|32|(?P<double>64))(?:_sum)?"),
    all_instructions=12,
    lanes=64,
    matrix=lazy_regex(r"SQ_INSTS_VALU_MFMA_MOPS_(?:B?F16|X?F32|(?P<double>F64)|F8|F6F4)(?:_sum)?"),
    matrix_flops=512,
    matrix_use=lazy_regex(r"SQ_INSTS_MFMA(?:_sum)?"),
    read_and_written=("FETCH_SIZE", "WRITE_SIZE"),
    traffic_unit=1024,
    total_traffic="",
    reasons=(
        "not all of its arithmetic instructions were counted (`SQ_INSTS_VALU_ADD_F32` and the other eleven)",
        "it uses matrix cores, whose operations were not counted (`SQ_INSTS_VALU_MFMA_MOPS_F16` and others)",
        _MAY_USE_MATRIX_UNITS.format(units="matrix cores"),
        _missing_traffic("FETCH_SIZE", "WRITE_SIZE"),
    ),
)


class CounterWork(msgspec.Struct, frozen=True):
    """FLOPs and bytes of the r ranges of `counter_ranges`; NaN is unknown.

    names   of the counters, sorted
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
def counter_work(trace: Trace) -> CounterWork:
    """Return the FLOPs and bytes that the counters of every range measured."""
    ranges = counter_ranges(trace)
    vocabulary = AMD if ranges.amd else NVIDIA
    values = {name: trace.arg_float(key, ranges.rows) for name, key in ranges.counters.items()}
    vector, double = _vector_flops(values, vocabulary, len(ranges))
    use, _ = _sum_counters(values, vocabulary.matrix_use, len(ranges))
    operations, in_double = _sum_counters(values, vocabulary.matrix, len(ranges))
    matrix = vocabulary.matrix_flops * operations
    verdicts = _matrix_verdicts(trace, ranges, vocabulary.vendor)
    is_vector_only = (use == 0) | (np.isnan(use) & (verdicts == TC_NO) & ~(matrix > 0))
    flops = vector + np.where(is_vector_only, 0.0, np.where(matrix > 0, matrix, np.nan))
    double += np.where(is_vector_only, 0.0, vocabulary.matrix_flops * in_double)
    traffic = vocabulary.traffic(values, len(ranges))
    table = np.vstack([*values.values()]) if values else np.empty((0, len(ranges)))
    no_instructions, uses_matrix, may_use_matrix, no_traffic = vocabulary.reasons
    reasons = [
        no_instructions if unknown_vector
        else (uses_matrix if is_used else may_use_matrix) if unknown_flops
        else no_traffic if unknown_bytes
        else None
        for unknown_vector, is_used, unknown_flops, unknown_bytes in zip(
            np.isnan(vector).tolist(), ((use > 0) | (verdicts == TC_YES)).tolist(),
            np.isnan(flops).tolist(), np.isnan(traffic).tolist(), strict=True,
        )
    ]  # fmt: skip
    return CounterWork(tuple(values), table, flops, traffic, double > 0.5 * flops, tuple(reasons))


def _vector_flops(
    values: Mapping[str, Float64], vocabulary: CounterVocabulary, count: int
) -> tuple[Float64, Float64]:
    """Return (FLOPs of the vector units, those in double precision); NaN unless all instructions are counted."""
    total, double, seen = np.zeros(count), np.zeros(count), set()
    for name, executed in values.items():
        match = vocabulary.instructions.fullmatch(name)
        if match is None or (instruction := _instruction(name)) in seen:
            continue
        seen.add(instruction)
        flops = (2 if match["fused"] else 1) * vocabulary.lanes * executed
        total += flops
        double += flops if match["double"] else 0
    return (total, double) if len(seen) == vocabulary.all_instructions else (np.full(count, np.nan), double)


def _instruction(name: str) -> str:
    """Return the common name of a counter that may occur twice: of a part of the device, and summed over it."""
    return name.replace("smsp__", "sm__").removesuffix("_sum")


def _sum_counters(values: Mapping[str, Float64], pattern: re.Pattern[str], count: int) -> tuple[Float64, Float64]:
    """Return (sums of the counters that match, those in double precision); NaN where a range has none."""
    matches = [(match, values[name]) for name in values if (match := pattern.fullmatch(name))]
    if not matches:
        return np.full(count, np.nan), np.zeros(count)
    table = np.array([column for _, column in matches])
    total: Float64 = np.where(np.isnan(table).all(axis=0), np.nan, np.nansum(table, axis=0))
    double = [column for match, column in matches if match.groupdict().get("double")]
    return total, np.nansum(double, axis=0) if double else np.zeros(count)


def _matrix_verdicts(trace: Trace, ranges: CounterRanges, vendor: str) -> np.ndarray:
    """Return for every range whether its kernel uses matrix units, by its name."""
    names = np.where(ranges.kernel >= 0, trace.events.name[ranges.kernel], trace.events.name[ranges.rows])
    verdicts = {
        code: tensor_core_verdict(trace.strings[code], vendor)[0]
        for code in np.unique(names).tolist()
        if code >= 0 and trace.strings[code] != LOST_KERNEL
    }
    return np.array([verdicts.get(code, -1) for code in names.tolist()], np.int8)
