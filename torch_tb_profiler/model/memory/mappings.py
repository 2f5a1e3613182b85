"""Tensors in memory that is mapped, as those that workers of a DataLoader hand over.

PyTorch tells the profiler of a mapping with totals that are not its allocator's: 0 bytes allocated and the size of
the mapping itself reserved, and 0 of both when it goes (`MapAllocator.cpp`). Here these bytes are in use like any
others: the totals are the allocator's, plus what is mapped.
"""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.model.trace import ABSENT, Bool, Int64


def with_mappings(address: Int64, size: Int64, allocated: Int64, reserved: Int64) -> tuple[Int64, Int64]:
    """(allocated, reserved) of the events of the CPU by time, all int64[k] bytes, with mappings counted as in use.

    Bytes that are mapped when the recording begins are known by their release. A total that is ABSENT stays so;
    mappings add to the last one that is known.
    """
    mapping = _mappings(address, size, allocated, reserved)
    if not mapping.any():
        return allocated, reserved
    mapped = np.cumsum(np.where(mapping, size, 0))
    mapped -= min(int(mapped.min()), 0)
    own = np.flatnonzero(~mapping)
    if len(own) == 0:
        return mapped, np.zeros_like(reserved)
    known = own[allocated[own] != ABSENT]
    if len(known) == 0:
        return np.full_like(allocated, ABSENT), np.where(mapping, 0, reserved)
    # The allocator's last total; before its first one, what this began with.
    last = np.searchsorted(known, np.arange(len(size)), "right") - 1
    first = allocated[known[0]] - size[own[own <= known[0]]].sum()
    total = np.where(last >= 0, allocated[known[np.maximum(last, 0)]], first) + mapped
    return np.where(~mapping & (allocated == ABSENT), ABSENT, total), np.where(mapping, 0, reserved)


def _mappings(address: Int64, size: Int64, allocated: Int64, reserved: Int64) -> Bool:
    """bool[k]: events of mappings. One that goes is told from a block of the allocator by who gave its address."""
    mapping: Bool = (reserved > 0) & (allocated == 0) & (size == reserved)
    if not mapping.any():
        return mapping
    mapped: dict[int, bool] = {}
    total = None
    rows = zip(*(column.tolist() for column in (address, size, allocated, reserved, mapping)), strict=True)
    for at, (where, change, now, held, is_mapping) in enumerate(rows):
        if change > 0:
            mapped[where] = is_mapping
        elif now == 0 and held == 0:
            # From before the recording: the allocator's total would be another one.
            mapping[at] = mapped.pop(where, total is not None and total + change != 0)
        if not mapping[at]:
            total = None if now == ABSENT else now
    return mapping
