"""The places of a model in order of their first call."""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.model.modules.modules import Modules
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Int64, Trace

NEVER = int(np.iinfo(np.int64).max)
"""The first call of a place of which none is recorded."""


def first_calls(trace: Trace, model: Modules) -> Int64:
    """int64[m] ns: when each place, or one inside it, is first called; NEVER without a call forward."""
    first = np.full(len(model.names), NEVER)
    rows = np.flatnonzero((model.code >= 0) & ~model.backward & (trace.events.start != ABSENT))
    np.minimum.at(first, model.code[rows], trace.events.start[rows])
    for code in range(len(first) - 1, -1, -1):
        if model.parent[code] != NO_CODE:
            first[model.parent[code]] = min(first[model.parent[code]], first[code])
    return first


def call_order(trace: Trace, model: Modules) -> list[int]:
    """All places, each after the one around it."""
    order: list[int] = np.argsort(first_calls(trace, model), kind="stable").tolist()
    return order
