"""Borders of the stretches of time that a curve is drawn of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from torch_tb_profiler.model.trace import Int64


def even_edges(times: Sequence[Int64], stretches: int) -> Int64:
    """int64[at most stretches + 1]: from before the first of the times to after the last, in even parts; whole ns.

    Empty without times.
    """
    known = [each for each in times if len(each)]
    if not known:
        return np.empty(0, np.int64)
    low, high = min(int(each.min()) for each in known), max(int(each.max()) for each in known) + 1
    count = min(stretches, high - low)
    return low + np.arange(count + 1) * (high - low) // count
