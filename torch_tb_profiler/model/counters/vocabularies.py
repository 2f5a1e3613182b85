"""How CUPTI and rocprofv3 name the counters that tell FLOPs and bytes.

                NVIDIA                                         AMD
vector units    smsp__sass_thread_inst_executed_op_*_pred_on,  SQ_INSTS_VALU_{ADD,MUL,TRANS,FMA}_F{16,32,64}, of
                of threads, in half, single and double         waves: 64 lanes each, as ROCm Compute Profiler
matrix units    sm__ops_path_tensor_src_*, operations          SQ_INSTS_VALU_MFMA_MOPS_*, 512 operations each
bytes           dram__bytes_read, dram__bytes_write, or        FETCH_SIZE, WRITE_SIZE, in 1024 bytes
                dram__bytes
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from torch_tb_profiler.model.trace import Float64


class Vocabulary(NamedTuple):
    """Counters of a vendor; groups of the patterns: `fused` and `double` where that is what they count.

    vendor        as `tensor_cores.verdict` takes it
    instructions  of vector units; FLOPs are unknown unless all `all_instructions` of them are counted
    lanes         FLOPs of an instruction that is not fused
    matrix        floating-point operations of matrix units, in units of `matrix_flops`
    matrix_use    0 where they were not used
    moved         bytes are the sum of these counters times `moved_bytes`, or `moved_together`
    reasons       why something is unknown: instructions, matrix units, perhaps matrix units, bytes
    """

    vendor: str
    instructions: re.Pattern[str]
    all_instructions: int
    lanes: int
    matrix: re.Pattern[str]
    matrix_flops: int
    matrix_use: re.Pattern[str]
    moved: tuple[str, str]
    moved_bytes: int
    moved_together: str
    reasons: tuple[str, str, str, str]

    def traffic(self, values: Mapping[str, Float64], count: int) -> Float64:
        """Bytes of device memory; caches are not in them."""
        unknown = np.full(count, np.nan)
        read, written = (values.get(name, unknown) for name in self.moved)
        together = values.get(self.moved_together, unknown)
        return np.where(np.isnan(read + written), together, self.moved_bytes * (read + written))


def _no_traffic(read: str, written: str) -> str:
    return f"the traffic of device memory was not counted (`{read}`, `{written}`)"


_PERHAPS = "nothing tells whether it uses {units}, whose operations were not counted"

NVIDIA = Vocabulary(
    vendor="CUDA",
    instructions=re.compile(
        r"smsp?__sass_thread_inst_executed_op_(?:(?P<double>d)|[hf])(?:add|mul|(?P<fused>fma))_pred_on\.sum"
    ),
    all_instructions=9,
    lanes=1,
    matrix=re.compile(
        r"sm__ops_path_tensor_src_(?!int)(?:(?P<double>fp64)|\w)\w*?(?<!_sparsity_off)(?<!_sparsity_on)\.sum"
    ),
    matrix_flops=1,
    matrix_use=re.compile(r"sm__inst_executed_pipe_tensor\.sum"),
    moved=("dram__bytes_read.sum", "dram__bytes_write.sum"),
    moved_bytes=1,
    moved_together="dram__bytes.sum",
    reasons=(
        "its arithmetic instructions were not all counted (`kineto__cuda_core_flops`)",
        "it uses Tensor Cores, whose operations were not counted",
        _PERHAPS.format(units="Tensor Cores"),
        _no_traffic("dram__bytes_read.sum", "dram__bytes_write.sum"),
    ),
)

AMD = Vocabulary(
    vendor="ROCm",
    instructions=re.compile(r"SQ_INSTS_VALU_(?:ADD|MUL|TRANS|(?P<fused>FMA))_F(?:16|32|(?P<double>64))(?:_sum)?"),
    all_instructions=12,
    lanes=64,
    matrix=re.compile(r"SQ_INSTS_VALU_MFMA_MOPS_(?:B?F16|X?F32|(?P<double>F64)|F8|F6F4)(?:_sum)?"),
    matrix_flops=512,
    matrix_use=re.compile(r"SQ_INSTS_MFMA(?:_sum)?"),
    moved=("FETCH_SIZE", "WRITE_SIZE"),
    moved_bytes=1024,
    moved_together="",
    reasons=(
        "its arithmetic instructions were not all counted (`SQ_INSTS_VALU_ADD_F32` and the other eleven)",
        "it uses matrix cores, whose operations were not counted (`SQ_INSTS_VALU_MFMA_MOPS_F16` and others)",
        _PERHAPS.format(units="matrix cores"),
        _no_traffic("FETCH_SIZE", "WRITE_SIZE"),
    ),
)
