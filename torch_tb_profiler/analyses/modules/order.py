"""The places of a model in order of their first call."""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.model.modules.modules import Modules
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Trace


def call_order(trace: Trace, model: Modules) -> list[int]:
    """All places, each after the one around it."""
    first = np.full(len(model.names), np.iinfo(np.int64).max)
    rows = np.flatnonzero((model.code >= 0) & ~model.backward & (trace.events.start != ABSENT))
    np.minimum.at(first, model.code[rows], trace.events.start[rows])
    for code in range(len(first) - 1, -1, -1):
        if model.parent[code] != NO_CODE:
            first[model.parent[code]] = min(first[model.parent[code]], first[code])
    order: list[int] = np.argsort(first, kind="stable").tolist()
    return order
