"""What copies and memsets move, and which way: CUDA, ROCm and XPU name it, MTIA says it in arguments."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from torch_tb_profiler.model.trace import ABSENT, Int32, Int64, Trace


def moved_bytes(trace: Trace, rows: Int32) -> Int64:
    """int64[k]: bytes of copies and memsets (arg `bytes`, of DMA of MTIA `size`); ABSENT where not recorded."""
    size = trace.arg_int("bytes", rows)
    return np.where(size == ABSENT, trace.arg_int("size", rows), size)


def copy_directions(trace: Trace, rows: Int32) -> tuple[Int32, Sequence[str]]:
    """int32[k] codes and texts of the argument `direction` ("DEVICE_TO_HOST"); NO_CODE where there is none."""
    return trace.arg_codes("direction", rows)
