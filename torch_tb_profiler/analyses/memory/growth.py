"""Memory that grows from step to step: what lives at the end of each, and which operators hold the growth."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.memory_curve import Levels
from torch_tb_profiler.model.memory.blocks import UNKNOWN, memory_blocks
from torch_tb_profiler.model.memory.events import memory_names, memory_records
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Int64, Trace

LEAST_STEPS = 3
"""Two ends of steps tell nothing: the first step may fill caches and optimizer state."""

LEAST_SHARE = 0.001
"""Growth over the steps below this share of the peak is none: a list of losses grows, too."""


class Holder(msgspec.Struct, frozen=True):
    """Blocks that one operator (code of `memory_names`) allocated.

    live      int64[s]  their bytes that live at the end of each step
    blocks    int64     positions in `memory_blocks`: live at the last end, allocated since the growth began
    """

    name: int
    live: Int64
    blocks: Int64


class Growth(msgspec.Struct, frozen=True):
    """Bytes of a device.

    live     int64[s]  at the end of each step
    since    index of the step from whose end on every end has more than the one before; the last step for none
    growing  that is so since the first step, or with four steps or more since the second (what the first leaves
             may go), and it is not negligible
    """

    live: Int64
    since: int
    growing: bool
    holders: tuple[Holder, ...]


def growth(trace: Trace, level: Levels) -> Growth | None:
    """None in a trace without steps. Holders, most growth first, only where memory grows."""
    found = steps(trace)
    if not found.recorded:
        return None
    # Index of the last record of the device at the end of each step; -1: before all of them.
    index = np.searchsorted(level.time, found.host_ends, "right") - 1
    start = level.allocated[0] - memory_records(trace).size[level.positions[0]]
    live = np.where(index >= 0, level.allocated[index], 0 if level.relative else start)
    known = bool((level.allocated != ABSENT).all())
    since = int(np.append(np.flatnonzero(np.diff(live) <= 0), -1).max()) + 1
    enough = live[-1] - live[since] > LEAST_SHARE * level.allocated.max()
    growing = known and since <= 1 and len(live) - since >= LEAST_STEPS and bool(enough)
    return Growth(live, since, growing, _holders(trace, level, index, since) if growing else ())


def _holders(trace: Trace, level: Levels, index: Int64, since: int) -> tuple[Holder, ...]:
    every, records = memory_blocks(trace), memory_records(trace)
    code = records.devices.index(level.device)
    counted = (every.allocation >= 0) & (every.state != UNKNOWN)
    counted[counted] = records.device[every.allocation[counted]] == code
    chosen = np.flatnonzero(counted)
    ends = np.where(index >= 0, level.positions[index], -1)
    # A block lives at the ends from the first one after its allocation to the last one before it is gone.
    born = np.searchsorted(ends, every.allocation[chosen], "left")
    dead = np.searchsorted(ends, every.gone[chosen], "left")
    codes, texts = memory_names(trace)
    name = codes[every.allocation[chosen]]
    table = np.zeros((len(texts) + 1, len(ends) + 1), np.int64)  # the last row is that of NO_CODE
    np.add.at(table, (name, born), every.size[chosen])
    np.add.at(table, (name, dead), -every.size[chosen])
    live = np.cumsum(table, axis=1)[:, :-1]
    grown = live[:, -1] - live[:, since]
    kept = (born > since) & (born < len(ends)) & (dead == len(ends))
    order = np.argsort(-grown, kind="stable")
    return tuple(
        Holder(NO_CODE if row == len(texts) else row, live[row], chosen[kept & _named(name, row, len(texts))])
        for row in order[grown[order] > 0].tolist()
    )


def _named(names: np.ndarray, row: int, outside: int) -> np.ndarray:
    same: np.ndarray = names == (NO_CODE if row == outside else row)
    return same
