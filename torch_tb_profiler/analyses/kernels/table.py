"""The kernel table: device work by name, or by launch parameters, and what limits its occupancy."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.grouping import Groups, group, in_step, launch_times, named
from torch_tb_profiler.model.calls.operators import operators
from torch_tb_profiler.model.devices import device_of, stream_of
from torch_tb_profiler.model.kinds import Kind, of_kind
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Float64, Int32, Int64, Trace

GroupBy = Literal["name", "launch"]
"""name; name + operator + grid + block + registers + shared memory."""


class Filter(msgspec.Struct, frozen=True):
    """Which launches count; "" and None are no filter."""

    step: str = ""
    device: int | None = None
    stream: int | None = None
    operator: str = ""


class Table(msgspec.Struct, frozen=True):
    """Groups of kernels; `rows` int32[k] are their rows in the trace."""

    rows: Int32
    groups: Groups


def kernel_table(trace: Trace, group_by: GroupBy, kept: Filter) -> Table:
    """Raises NotFoundError for an unknown step."""
    rows = filtered(trace, of_kind(trace, Kind.KERNEL), kept)
    keys: list[Any] = [trace.events.name[rows]]
    if group_by == "launch":
        keys += [
            operator_name(trace, rows),
            trace.arg_codes("grid", rows)[0],
            trace.arg_codes("block", rows)[0],
            trace.arg_int("registers per thread", rows),
            trace.arg_int("shared memory", rows),
        ]
    return Table(rows, group(*keys))


def filtered(trace: Trace, rows: Int32, kept: Filter) -> Int32:
    """The device work that a filter keeps."""
    keep = np.ones(len(rows), np.bool_)
    if kept.step:
        keep &= in_step(trace, launch_times(trace, rows), kept.step)
    if kept.device is not None:
        keep &= device_of(trace)[rows] == kept.device
    if kept.stream is not None:
        keep &= stream_of(trace)[rows] == kept.stream
    if kept.operator:
        found = operators(trace)
        wanted = np.append(named(trace, found.rows, kept.operator), False)
        keep &= wanted[found.owner[rows]]
    chosen: Int32 = rows[keep]
    return chosen


def operator_name(trace: Trace, rows: Int32) -> Int32:
    """int32[k]: code of the name of the operator that launched each, NO_CODE if not linked."""
    found = operators(trace)
    owner = found.owner[rows]
    names = trace.events.name[found.rows]
    return np.where(owner >= 0, names[owner] if len(names) else NO_CODE, NO_CODE).astype(np.int32)


def weighted_means(groups: Groups, values: Float64, weights: Int64) -> Float64:
    """float64[g]: mean of the known values weighted by duration, NaN where none is known."""
    known = np.isfinite(values)
    sums = np.bincount(groups.which[known], values[known] * weights[known], minlength=len(groups))
    total = np.bincount(groups.which[known], weights[known].astype(np.float64), minlength=len(groups))
    plain = np.bincount(groups.which[known], values[known], minlength=len(groups))
    count = np.bincount(groups.which[known], minlength=len(groups))
    with np.errstate(invalid="ignore", divide="ignore"):
        # Kernels of no length weigh nothing; alone in their group they count alike.
        return np.where(total > 0, sums / total, plain / count)


LIMITERS = ("threads", "registers", "shared memory", "grid")


def limiters(trace: Trace, rows: Int32) -> Int32:
    """int32[k]: index into LIMITERS of what keeps more blocks off a multiprocessor; NO_CODE where not known.

    Blocks that fit by each resource of the device (`deviceProperties`) against the launch; "grid" where fewer
    blocks were launched than would fit. Granularity of allocation is left out.
    """
    found = np.full(len(rows), NO_CODE, np.int32)
    block = _block_threads(trace, rows)
    registers = trace.arg_int("registers per thread", rows)
    shared = trace.arg_int("shared memory", rows)
    grid = trace.arg_float("blocks per SM", rows)
    device = device_of(trace)[rows]
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
        found[mine] = np.argmin(fits, axis=0)
    return found


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


def memory_operations(trace: Trace, kept: Filter) -> Table:
    """Copies and fills by name."""
    rows = filtered(trace, of_kind(trace, Kind.MEMCPY, Kind.MEMSET), kept)
    return Table(rows, group(trace.events.name[rows]))


def moved(trace: Trace, rows: Int32) -> tuple[Int64, Bool]:
    """(bytes, which are known) of copies and fills."""
    size = trace.arg_int("bytes", rows)
    known: Bool = size != ABSENT
    return np.where(known, size, 0), known
