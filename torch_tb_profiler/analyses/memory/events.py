"""The blocks of a device as a table: filtered, searched, sorted, a page at a time."""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.memory_curve import Levels, in_range
from torch_tb_profiler.model.memory.blocks import STATES, Blocks, State, memory_blocks
from torch_tb_profiler.model.memory.events import memory_calls, memory_names, memory_records
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Int64, Trace, name_mask

SortBy = Literal["size", "operator", "allocated", "released", "duration"]


class Filter(msgspec.Struct, frozen=True):
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
    state: State | Literal[""] = ""


def chosen_blocks(trace: Trace, level: Levels, kept: Filter) -> Int64:
    """int64[b]: positions in `memory_blocks`."""
    records, every = memory_records(trace), memory_blocks(trace)
    code = records.devices.index(level.device)
    first = np.where(every.allocation >= 0, every.allocation, every.release)
    keep = records.device[first] == code
    if kept.begin is not None or kept.end is not None:
        begun, ended = times(trace, every)
        inside = (begun != ABSENT) & in_range(begun, kept.begin, kept.end)
        keep &= inside | ((ended != ABSENT) & in_range(ended, kept.begin, kept.end))
    if kept.at is not None:
        index = int(np.searchsorted(level.time, kept.at, "right")) - 1
        keep &= every.live_after(int(level.positions[index]) if index >= 0 else -1)
    if kept.operator or kept.search:
        keep &= _named(trace, every, kept)
    if kept.state:
        keep &= every.state == STATES.index(kept.state)
    return np.flatnonzero(keep)


def times(trace: Trace, every: Blocks) -> tuple[Int64, Int64]:
    """(allocated, released) ns of each block, ABSENT where it is not recorded."""
    at = np.append(memory_records(trace).time, ABSENT)  # the last answers for NO_CODE
    return at[every.allocation], at[every.release]


def _named(trace: Trace, every: Blocks, kept: Filter) -> Bool:
    codes, texts = memory_names(trace)
    name = np.where(every.allocation >= 0, codes[every.allocation], NO_CODE)
    wanted = np.array([kept.search.casefold() in text.casefold() for text in texts] + [not kept.search])
    keep: Bool = wanted[name]
    if kept.operator:
        spelled = name_mask(texts, kept.operator.__eq__)
        calls = memory_calls(trace)[every.allocation]
        called = name_mask(trace.strings, kept.operator.__eq__)
        own = (every.allocation >= 0) & (calls >= 0) & called[trace.events.name[calls]]
        keep = keep & (spelled[name] | own)
    return keep


def ordered(trace: Trace, chosen: Int64, sort: SortBy, descending: bool) -> Int64:
    """The blocks in order of a column, unknown values last, equal ones by time."""
    key, known = _key(trace, chosen, sort)
    order = np.argsort(-key if descending else key, kind="stable")
    order = order[np.argsort(~known[order], kind="stable")]
    return chosen[order]


def _key(trace: Trace, chosen: Int64, sort: SortBy) -> tuple[Int64, Bool]:
    every = memory_blocks(trace)
    if sort == "size":
        return every.size[chosen], np.ones(len(chosen), np.bool_)
    if sort == "operator":
        codes, texts = memory_names(trace)
        rank = (
            np.append(np.argsort(np.argsort(np.array(texts, object))), NO_CODE) if texts else np.array([NO_CODE])
        )
        allocation = every.allocation[chosen]
        key = rank[np.where(allocation >= 0, codes[allocation], NO_CODE)]
        return key, key >= 0
    begun, ended = (column[chosen] for column in times(trace, every))
    if sort == "duration":
        known = (begun != ABSENT) & (ended != ABSENT)
        return np.where(known, ended - begun, 0), known
    key = begun if sort == "allocated" else ended
    known = key != ABSENT
    return np.where(known, key, 0), known
