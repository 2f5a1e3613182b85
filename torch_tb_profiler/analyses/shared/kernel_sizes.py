"""How large the work of a kernel is, as far as a file records it: kernels of equal size compute as much."""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.analyses.shared.grouping import input_shape_codes, input_shape_texts
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.trace import NO_CODE, Int32, Int64, Trace

MAX_SIZE_LENGTH = 120
"""Characters of a grid or of input shapes in a size."""


def kernel_size_codes(trace: Trace, rows: Int32) -> tuple[Int64, Int64]:
    """Return int64[k] each for device work at `rows`: codes of the grid and of the operator's input shapes.

    NO_CODE where one isn't recorded.
    """
    grid = trace.arg_codes("grid", rows)[0].astype(np.int64)
    links = device_links(trace)
    operator = links.operator[np.searchsorted(links.rows, rows)]
    shape = np.where(operator >= 0, input_shape_codes(trace)[operator], NO_CODE).astype(np.int64)
    return grid, shape


def kernel_size_text(trace: Trace, row: int) -> str:
    """Return the size of one kernel as a sentence names it, such as "[100,1,1] [[32,64],[64,64]]"; "" if
    unknown."""
    rows = np.array([row], np.int32)
    grid, shape = kernel_size_codes(trace, rows)
    texts = trace.arg_codes("grid", rows)[1], input_shape_texts(trace)
    codes = int(grid[0]), int(shape[0])
    return " ".join(
        spelled[code][:MAX_SIZE_LENGTH] for spelled, code in zip(texts, codes, strict=True) if code >= 0
    )
