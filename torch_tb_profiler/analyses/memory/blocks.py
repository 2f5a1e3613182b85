"""Memory blocks of a device: filtered, sorted and paged as a table, and which code allocated each.

Positions are those in `memory_records`.
"""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.call_stacks import DistinctStacks, distinct_stacks
from torch_tb_profiler.analyses.shared.memory_curve import MemoryLevels, device_block_mask, time_mask
from torch_tb_profiler.model.memory.blocks import BLOCK_STATES, BlockState, MemoryBlocks, memory_blocks
from torch_tb_profiler.model.memory.events import memory_calls, memory_names, memory_records
from torch_tb_profiler.model.modules import modules
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Int32, Int64, Trace, name_mask

BlockOrder = Literal["size", "operator", "allocated", "released", "duration"]
"""The columns that a table of blocks can be sorted by."""


class BlockFilter(msgspec.Struct, frozen=True):
    """Conditions on blocks; None and "" are no condition.

    begin, end  allocated or released in [begin, end] (ns)
    at          live at this time
    operator    that allocated it: its name, or as `memory_names` spells it
    search      part of that spelling, ignoring case
    """

    begin: int | None = None
    end: int | None = None
    at: int | None = None
    operator: str = ""
    search: str = ""
    state: BlockState | Literal[""] = ""


class BlockLifetime(msgspec.Struct, frozen=True):
    """A block and when it was allocated and released (ns); None where the event is not recorded.

    first  position of its allocation, else of its release
    """

    first: int
    allocation: int | None
    release: int | None
    size: int
    allocated: int | None
    released: int | None
    state: BlockState

    @property
    def duration(self) -> int | None:
        """Return the ns from allocation to release, None unless both are recorded."""
        return None if self.allocated is None or self.released is None else self.released - self.allocated


def filter_blocks(trace: Trace, level: MemoryLevels, conditions: BlockFilter) -> Int64:
    """Return int64[k]: indices into `memory_blocks` of the device's blocks that meet the conditions."""
    blocks = memory_blocks(trace)
    keep = device_block_mask(trace, level)
    if conditions.begin is not None or conditions.end is not None:
        allocated, released = _read_lifetimes(trace, blocks)
        keep &= ((allocated != ABSENT) & time_mask(allocated, conditions.begin, conditions.end)) | (
            (released != ABSENT) & time_mask(released, conditions.begin, conditions.end)
        )
    if conditions.at is not None:
        index = int(np.searchsorted(level.time, conditions.at, "right")) - 1
        keep &= blocks.live_after(int(level.positions[index]) if index >= 0 else -1)
    if conditions.operator or conditions.search:
        keep &= _allocation_mask(trace, blocks, conditions)
    if conditions.state:
        keep &= blocks.state == BLOCK_STATES.index(conditions.state)
    return np.flatnonzero(keep)


def _read_lifetimes(trace: Trace, blocks: MemoryBlocks) -> tuple[Int64, Int64]:
    """Return (allocated, released): ns of each block, ABSENT where the event is not recorded."""
    times = np.append(memory_records(trace).time, ABSENT)  # NO_CODE (-1) indexes the last cell
    return times[blocks.allocation], times[blocks.release]


def _allocation_mask(trace: Trace, blocks: MemoryBlocks, conditions: BlockFilter) -> Bool:
    codes, texts = memory_names(trace)
    name = np.where(blocks.allocation >= 0, codes[blocks.allocation], NO_CODE)
    matches = np.array(
        [conditions.search.casefold() in text.casefold() for text in texts] + [not conditions.search]
    )
    keep: Bool = matches[name]
    if conditions.operator:
        spelled = name_mask(texts, conditions.operator.__eq__)
        calls = memory_calls(trace)[blocks.allocation]
        called = name_mask(trace.strings, conditions.operator.__eq__)
        by_call = (blocks.allocation >= 0) & (calls >= 0) & called[trace.events.name[calls]]
        keep = keep & (spelled[name] | by_call)
    return keep


def build_block_page(
    trace: Trace, chosen: Int64, sort: BlockOrder, descending: bool, rows: slice
) -> list[BlockLifetime]:
    """Sort the chosen blocks by a column and return the page `rows`: unknown values last, equal ones by time."""
    key, known = _sort_key(trace, chosen, sort)
    order = np.argsort(-key if descending else key, kind="stable")
    order = order[np.argsort(~known[order], kind="stable")]
    page = chosen[order[rows]]
    blocks = memory_blocks(trace)
    columns = (blocks.allocation, blocks.release, blocks.size, *_read_lifetimes(trace, blocks), blocks.state)
    return [
        BlockLifetime(
            first=release if allocation == NO_CODE else allocation,
            allocation=None if allocation == NO_CODE else allocation,
            release=None if release == NO_CODE else release,
            size=size,
            allocated=None if allocated == ABSENT else allocated,
            released=None if released == ABSENT else released,
            state=BLOCK_STATES[state],
        )
        for allocation, release, size, allocated, released, state in zip(
            *(column[page].tolist() for column in columns), strict=True
        )
    ]


def sum_block_sizes(trace: Trace, chosen: Int64) -> int:
    """Return the total size in bytes of the chosen blocks."""
    return int(memory_blocks(trace).size[chosen].sum())


def _sort_key(trace: Trace, chosen: Int64, sort: BlockOrder) -> tuple[Int64, Bool]:
    """Return (values to sort by, which of them are known)."""
    blocks = memory_blocks(trace)
    if sort == "size":
        return blocks.size[chosen], np.ones(len(chosen), np.bool_)
    if sort == "operator":
        codes, texts = memory_names(trace)
        # NO_CODE (-1) indexes the last rank.
        rank = np.append(np.argsort(np.argsort(np.array(texts, object))) if texts else [], NO_CODE).astype(
            np.int64
        )
        allocation = blocks.allocation[chosen]
        key = rank[np.where(allocation >= 0, codes[allocation], NO_CODE)]
        return key, key >= 0
    allocated, released = (column[chosen] for column in _read_lifetimes(trace, blocks))
    if sort == "duration":
        known = (allocated != ABSENT) & (released != ABSENT)
        return np.where(known, released - allocated, 0), known
    key = allocated if sort == "allocated" else released
    known = key != ABSENT
    return np.where(known, key, 0), known


def event_row(trace: Trace, position: int) -> int:
    """Return the row of a memory event in the trace."""
    return int(memory_records(trace).rows[position])


def allocating_operator(trace: Trace, position: int) -> str | None:
    """Return the operator that allocated a block, as `memory_names` spells it; None outside operators."""
    codes, texts = memory_names(trace)
    code = codes[position]
    return None if code == NO_CODE else texts[code]


def allocating_call(trace: Trace, position: int) -> int | None:
    """Return the row of the operator call that allocated a block, None outside operators."""
    call = int(memory_calls(trace)[position])
    return None if call == NO_CODE else call


def module_path(trace: Trace, position: int) -> str | None:
    """Return the module around an allocation, "Net_0 > Linear_0"; None outside modules."""
    code = int(modules(trace).code[event_row(trace, position)])
    return None if code == NO_CODE else " > ".join(modules(trace).path(code))


def allocation_stacks(trace: Trace, positions: Int32) -> DistinctStacks:
    """Return the Python stacks of allocations: recorded with the operators, else the frames around the events."""
    rows, calls = memory_records(trace).rows[positions], memory_calls(trace)[positions]
    recorded = trace.arg_codes("Call stack", calls)[0] >= 0
    return distinct_stacks(trace, np.where(recorded, calls, rows).astype(np.int32))


def allocation_stack(trace: Trace, position: int) -> tuple[str, ...]:
    """Return the Python stack of one allocation, innermost frame first."""
    return allocation_stacks(trace, np.array([position], np.int32)).frames[0]
