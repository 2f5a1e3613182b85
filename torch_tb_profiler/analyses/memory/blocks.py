"""The blocks of a device as a table: filtered, searched, sorted."""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.memory_curve import Levels, in_range
from torch_tb_profiler.model.memory.blocks import BLOCK_STATES, BlockState, MemoryBlocks, memory_blocks
from torch_tb_profiler.model.memory.events import memory_calls, memory_names, memory_records
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Int64, Trace, name_mask

SortBy = Literal["size", "operator", "allocated", "released", "duration"]


class BlockFilter(msgspec.Struct, frozen=True):
    """Which blocks count; None and "" are no filter.

    begin, end  allocated or released in [begin, end] (ns)
    at          living at this time
    operator    allocated by it: its own name, or as `memory_names` spells it
    search      part of that spelling, whatever the case
    """

    begin: int | None = None
    end: int | None = None
    at: int | None = None
    operator: str = ""
    search: str = ""
    state: BlockState | Literal[""] = ""


class Block(msgspec.Struct, frozen=True):
    """A block with its life in ns; positions in `memory_records`, None where the event is not recorded.

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
        """ns, None unless both ends are recorded."""
        return None if self.allocated is None or self.released is None else self.released - self.allocated


def blocks_of(trace: Trace, level: Levels) -> Bool:
    """bool[b]: which of `memory_blocks` are on the device of these levels."""
    records, blocks = memory_records(trace), memory_blocks(trace)
    first = np.where(blocks.allocation >= 0, blocks.allocation, blocks.release)
    on_device: Bool = records.device[first] == records.devices.index(level.device)
    return on_device


def filtered_blocks(trace: Trace, level: Levels, wanted: BlockFilter) -> Int64:
    """int64[k]: positions in `memory_blocks`."""
    blocks = memory_blocks(trace)
    keep = blocks_of(trace, level)
    if wanted.begin is not None or wanted.end is not None:
        allocated, released = _lifetimes(trace, blocks)
        keep &= ((allocated != ABSENT) & in_range(allocated, wanted.begin, wanted.end)) | (
            (released != ABSENT) & in_range(released, wanted.begin, wanted.end)
        )
    if wanted.at is not None:
        index = int(np.searchsorted(level.time, wanted.at, "right")) - 1
        keep &= blocks.live_after(int(level.positions[index]) if index >= 0 else -1)
    if wanted.operator or wanted.search:
        keep &= _allocated_by(trace, blocks, wanted)
    if wanted.state:
        keep &= blocks.state == BLOCK_STATES.index(wanted.state)
    return np.flatnonzero(keep)


def _lifetimes(trace: Trace, blocks: MemoryBlocks) -> tuple[Int64, Int64]:
    """(allocated, released) ns of each block, ABSENT where it is not recorded."""
    times = np.append(memory_records(trace).time, ABSENT)  # the last cell answers for NO_CODE
    return times[blocks.allocation], times[blocks.release]


def _allocated_by(trace: Trace, blocks: MemoryBlocks, wanted: BlockFilter) -> Bool:
    codes, texts = memory_names(trace)
    name = np.where(blocks.allocation >= 0, codes[blocks.allocation], NO_CODE)
    matches = np.array([wanted.search.casefold() in text.casefold() for text in texts] + [not wanted.search])
    keep: Bool = matches[name]
    if wanted.operator:
        spelled = name_mask(texts, wanted.operator.__eq__)
        calls = memory_calls(trace)[blocks.allocation]
        called = name_mask(trace.strings, wanted.operator.__eq__)
        by_call = (blocks.allocation >= 0) & (calls >= 0) & called[trace.events.name[calls]]
        keep = keep & (spelled[name] | by_call)
    return keep


def block_page(trace: Trace, chosen: Int64, sort: SortBy, descending: bool, rows: slice) -> list[Block]:
    """A page of the chosen blocks in order of a column: unknown values last, equal ones by time."""
    key, known = _sort_key(trace, chosen, sort)
    order = np.argsort(-key if descending else key, kind="stable")
    order = order[np.argsort(~known[order], kind="stable")]
    page = chosen[order[rows]]
    blocks = memory_blocks(trace)
    columns = (blocks.allocation, blocks.release, blocks.size, *_lifetimes(trace, blocks), blocks.state)
    return [
        Block(
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


def total_bytes(trace: Trace, chosen: Int64) -> int:
    """Sum of the sizes of the chosen blocks."""
    return int(memory_blocks(trace).size[chosen].sum())


def _sort_key(trace: Trace, chosen: Int64, sort: SortBy) -> tuple[Int64, Bool]:
    """(values to sort by, which of them are known)."""
    blocks = memory_blocks(trace)
    if sort == "size":
        return blocks.size[chosen], np.ones(len(chosen), np.bool_)
    if sort == "operator":
        codes, texts = memory_names(trace)
        # The last rank answers for NO_CODE.
        rank = np.append(np.argsort(np.argsort(np.array(texts, object))) if texts else [], NO_CODE).astype(
            np.int64
        )
        allocation = blocks.allocation[chosen]
        key = rank[np.where(allocation >= 0, codes[allocation], NO_CODE)]
        return key, key >= 0
    allocated, released = (column[chosen] for column in _lifetimes(trace, blocks))
    if sort == "duration":
        known = (allocated != ABSENT) & (released != ABSENT)
        return np.where(known, released - allocated, 0), known
    key = allocated if sort == "allocated" else released
    known = key != ABSENT
    return np.where(known, key, 0), known
