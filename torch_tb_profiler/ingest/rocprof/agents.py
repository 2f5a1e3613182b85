"""Agents as rocprofv3 describes them: the same object in JSON files and, as text, in databases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch_tb_profiler.ingest.rocprof.records import Agent

_GPU = 2
"""`type` of a GPU in JSON."""

_MEMORY = (1, 2)
"""`heap_type` of memory of a GPU: its own, public and private to the processors of the host."""


def agent_of(
    described: Mapping[str, Any], id: object = None, index: object = None, gpu: object = None
) -> Agent | None:
    """None if it has no id. `id`, `index` and `gpu` where a row of a table says them beside the object."""
    handle = described.get("id")
    own = handle.get("handle") if isinstance(handle, Mapping) else handle
    number = _whole(own if id is None else id)
    if number is None:
        return None
    place = _whole(described.get("logical_node_id") if index is None else index)
    name = described.get("product_name") or described.get("model_name") or described.get("name")
    return Agent(
        number,
        number if place is None else place,
        described.get("type") == _GPU if gpu is None else bool(gpu),
        name if isinstance(name, str) and name else None,
        _memory(described.get("mem_banks")),
        _whole(described.get("cu_count")),
        _whole(described.get("wave_front_size")),
    )


def _memory(banks: object) -> int | None:
    sizes = [
        size
        for bank in (banks if isinstance(banks, list) else ())
        if isinstance(bank, Mapping) and bank.get("heap_type") in _MEMORY
        if (size := _whole(bank.get("size_in_bytes"))) is not None
    ]
    return sum(sizes) or None


def _whole(value: object) -> int | None:
    return value if type(value) is int and -(2**63) < value < 2**63 else None
