"""Input shapes of operators, as the file spells them."""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.trace import NO_CODE, Int32, Trace


@derived
def shapes(trace: Trace) -> Int32:
    """int32[n]: codes into `shape_texts` of the input shapes, NO_CODE where none are recorded."""
    codes, texts = trace.arg_codes("Input Dims")
    older, older_texts = trace.arg_codes("Input dims")
    if len(older_texts) == 0:
        return codes
    return np.where(codes >= 0, codes, np.where(older >= 0, older + len(texts), NO_CODE)).astype(np.int32)


@derived
def shape_texts(trace: Trace) -> list[str]:
    """Input shapes as the file spells them."""
    return [*trace.arg_codes("Input Dims")[1], *trace.arg_codes("Input dims")[1]]
