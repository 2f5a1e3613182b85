"""Nesting of intervals in C: what `model/calls/nesting.py` calls where a session tells it to."""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.ingest.kineto.native.library import load
from torch_tb_profiler.model.calls.nesting import Nest
from torch_tb_profiler.model.trace import Bool, Int64


def compiled_nest() -> Nest | None:
    """`model.calls.nesting.nest` as a function of the library: (begin, finish) in nesting order -> (parent, depth,
    fits). None where there is no library, or this process is not to use it."""
    library = load()
    if library is None:
        return None

    def nest(begin: Int64, finish: Int64) -> tuple[Int64, Int64, Bool]:
        begin, finish = (np.ascontiguousarray(times, np.int64) for times in (begin, finish))
        count = len(begin)
        if len(finish) != count:
            raise ValueError(f"{count} begins and {len(finish)} ends")
        parent, depth, stack = (np.empty(count, np.int64) for _ in range(3))
        fits = np.empty(count, np.bool_)
        library.reader_nest(
            begin.ctypes.data,
            finish.ctypes.data,
            count,
            parent.ctypes.data,
            depth.ctypes.data,
            fits.ctypes.data,
            stack.ctypes.data,
        )
        return parent, depth, fits

    return nest
