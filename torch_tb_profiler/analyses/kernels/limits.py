"""What keeps more blocks of a kernel off a multiprocessor."""

from __future__ import annotations

from typing import Any

import numpy as np

from torch_tb_profiler.analyses.shared.grouping import Groups
from torch_tb_profiler.model.devices import device_ids
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Int32, Int64, Trace

LIMITERS = ("threads", "registers", "shared memory", "grid")


def limiters(trace: Trace, rows: Int32) -> Int32:
    """int32[k]: index into LIMITERS of what keeps more blocks off a multiprocessor; NO_CODE where not known.

    Blocks that fit by each resource of the device (`deviceProperties`) against the launch; "grid" where fewer
    blocks were launched than would fit. Granularity of allocation is left out.
    """
    limits = np.full(len(rows), NO_CODE, np.int32)
    block = _block_threads(trace, rows)
    registers = trace.arg_int("registers per thread", rows)
    shared = trace.arg_int("shared memory", rows)
    grid = trace.arg_float("blocks per SM", rows)
    device = device_ids(trace)[rows]
    for properties in _device_properties(trace):
        most = [properties.get(key) for key in ("maxThreadsPerMultiprocessor", "regsPerMultiprocessor")]
        memory = properties.get("sharedMemPerMultiprocessor")
        if not all(isinstance(value, int) and value > 0 for value in (*most, memory)):
            continue
        mine = (device == properties.get("id")) & (block > 0) & (registers > 0) & (shared != ABSENT)
        fits = np.stack(
            [
                most[0] // block[mine],
                most[1] // np.maximum(registers[mine] * block[mine], 1),
                np.where(shared[mine] > 0, memory // np.maximum(shared[mine], 1), np.iinfo(np.int32).max),
                np.where(np.isfinite(grid[mine]), np.ceil(grid[mine]), np.iinfo(np.int32).max),
            ]
        )
        limits[mine] = np.argmin(fits, axis=0)
    return limits


def _block_threads(trace: Trace, rows: Int32) -> Int64:
    codes, texts = trace.arg_codes("block")
    sizes = np.array([*map(_product, texts), 0], np.int64)
    return sizes[codes[rows]]


def _product(text: str) -> int:
    numbers = [int(part) for part in text.strip("[] ").split(",") if part.strip().isdigit()]
    return int(np.prod(numbers)) if len(numbers) == 3 else 0


def _device_properties(trace: Trace) -> list[dict[str, Any]]:
    listed = trace.metadata.get("deviceProperties")
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []


def common_code(groups: Groups, codes: Int32) -> Int32:
    """int32[g]: the code that all launches of a group share, else NO_CODE."""
    low = np.full(len(groups), np.iinfo(np.int32).max, np.int32)
    high = np.full(len(groups), NO_CODE, np.int32)
    np.minimum.at(low, groups.which, codes)
    np.maximum.at(high, groups.which, codes)
    return np.where(low == high, high, NO_CODE).astype(np.int32)
