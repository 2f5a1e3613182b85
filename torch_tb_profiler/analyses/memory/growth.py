"""Memory that grows from step to step: what lives at the end of each, and which operators hold the growth."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.memory.blocks import blocks_of
from torch_tb_profiler.analyses.memory.live import allocated_before
from torch_tb_profiler.analyses.shared.memory_curve import Levels
from torch_tb_profiler.model.memory.blocks import UNKNOWN, memory_blocks
from torch_tb_profiler.model.memory.events import memory_names
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Int64, Trace

LEAST_STEPS = 3
"""The ends of two steps tell nothing: the first step may fill caches and optimizer state."""

LEAST_SHARE = 0.001
"""Growth over the steps below this share of the peak is none: a list of losses grows, too."""


class Holder(msgspec.Struct, frozen=True):
    """Blocks that one operator allocated.

    name    as `memory_names` spells it, None outside of operators
    live    int64[s]  their bytes that live at the end of each step
    growth  bytes: live at the last end minus at the end where the growth begins
    blocks  how many live at the last end and were allocated since the growth began
    latest  the last of these: position of its allocation in `memory_records`
    """

    name: str | None
    live: Int64
    growth: int
    blocks: int
    latest: int


class Growth(msgspec.Struct, frozen=True):
    """Bytes of a device.

    live      int64[s]  at the end of each step
    since     index of the step from whose end on every end has more than the one before; the last step for none
    growing   that is so since the first step, or with four steps or more since the second (what the first leaves
              may go), and it is not negligible; negligible: it would be, but for its size
    per_step  median change from one end to the next, since the growth began where it grows; None with one step
    """

    live: Int64
    since: int
    growing: bool
    negligible: bool
    per_step: int | None
    holders: tuple[Holder, ...]


def growth(trace: Trace, level: Levels) -> Growth | None:
    """None in a trace without steps, and where the first events of the device have no totals.

    Holders, most growth first, only where memory grows.
    """
    recorded = steps(trace)
    if not recorded.recorded or (level.allocated == ABSENT).any():
        return None
    # Index of the last record of the device at the end of each step; -1: before all of them.
    index = np.searchsorted(level.time, recorded.host_ends, "right") - 1
    before = 0 if level.relative else allocated_before(trace, level)
    live = np.where(index >= 0, level.allocated[index], before)
    since = int(np.append(np.flatnonzero(np.diff(live) <= 0), -1).max()) + 1
    steady = since <= 1 and len(live) - since >= LEAST_STEPS
    enough = bool(live[-1] - live[since] > LEAST_SHARE * level.allocated.max())
    growing = steady and enough
    changes = np.diff(live[since if growing else 0 :])
    return Growth(
        live=live,
        since=since,
        growing=growing,
        negligible=steady and not enough,
        per_step=int(np.median(changes)) if len(changes) else None,
        holders=_holders(trace, level, index, since) if growing else (),
    )


def _holders(trace: Trace, level: Levels, index: Int64, since: int) -> tuple[Holder, ...]:
    blocks = memory_blocks(trace)
    counted = blocks_of(trace, level) & (blocks.allocation >= 0) & (blocks.state != UNKNOWN)
    chosen = np.flatnonzero(counted)
    allocation = blocks.allocation[chosen]
    ends = np.where(index >= 0, level.positions[index], -1)
    # A block lives at the ends from the first one after its allocation to the last one before it is gone.
    born = np.searchsorted(ends, allocation, "left")
    dead = np.searchsorted(ends, blocks.gone[chosen], "left")
    codes, texts = memory_names(trace)
    outside = len(texts)  # the last row is that of NO_CODE
    name = np.where(codes[allocation] == NO_CODE, outside, codes[allocation])
    table = np.zeros((outside + 1, len(ends) + 1), np.int64)
    np.add.at(table, (name, born), blocks.size[chosen])
    np.add.at(table, (name, dead), -blocks.size[chosen])
    live = np.cumsum(table, axis=1)[:, :-1]
    grown = live[:, -1] - live[:, since]
    kept = (born > since) & (born < len(ends)) & (dead == len(ends))

    def holder(row: int) -> Holder:
        stayed = allocation[kept & (name == row)]
        return Holder(
            name=None if row == outside else texts[row],
            live=live[row],
            growth=int(grown[row]),
            blocks=len(stayed),
            latest=int(stayed[-1]),
        )

    order = np.argsort(-grown, kind="stable")
    return tuple(holder(row) for row in order[grown[order] > 0].tolist())
