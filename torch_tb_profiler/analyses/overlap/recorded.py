"""What the recorder itself says of its iterations."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.model.trace import NO_CODE, Float64, Int32, Trace

_NAMES = {
    "compute_comm": "overlap",
    "compute_allreduce": "allreduce_overlap",
    "compute_reducescatter": "reducescatter_overlap",
    "idle": "idle",
}
"""A total of the recorder -> what it is called here."""

STREAM = "stream "
"""Followed by the name of the stream whose busy time it is."""


def recorded_times(trace: Trace, row: Int32) -> dict[str, Float64]:
    """name -> float64[k] ns of the iterations in `row`; NaN where the recorder said nothing at all.

    It leaves out what is 0: a name that is missing beside others counts as 0.
    """
    streams, present = _totals(trace, "per_stream_ms", row)
    overlaps, _ = _totals(trace, "overlap_ms", row)
    named = {f"{STREAM}{name}": values for name, values in streams.items()}
    nothing = np.zeros(len(row))
    named |= {ours: overlaps.get(theirs, nothing) for theirs, ours in _NAMES.items()}
    return {name: np.where(present, values, np.nan) for name, values in named.items()}


def _totals(trace: Trace, key: str, row: Int32) -> tuple[dict[str, Float64], np.ndarray]:
    codes, texts = trace.arg_codes(key, row)
    decoded = [msgspec.json.decode(text, type=dict[str, float]) for text in texts]
    names = sorted({name for each in decoded for name in each})
    table = {name: np.array([*(each.get(name, 0.0) for each in decoded), np.nan]) * 1e6 for name in names}
    return {name: values[codes] for name, values in table.items()}, codes != NO_CODE
