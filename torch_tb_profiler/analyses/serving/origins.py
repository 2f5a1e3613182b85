"""What of the model takes the time of an iteration: its kernels by module and operator, replayed ones too.

A kernel that a CUDA graph replays has the origin of the launch that was captured, so that the time of a decode
iteration is that of "attention in Layer_12", not of a kernel's name.
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.grouping import group
from torch_tb_profiler.model.kernels.families import FAMILIES, family_codes
from torch_tb_profiler.model.kinds import Kind, event_ends, event_kinds
from torch_tb_profiler.model.origins.origins import ORIGIN_SOURCES, origin_positions, origins
from torch_tb_profiler.model.serving.iterations import serving_iterations
from torch_tb_profiler.model.serving.kernels import serving_kernels
from torch_tb_profiler.model.trace import NO_CODE, Trace

SAMPLING = "sampling"


class IterationWork(msgspec.Struct, frozen=True):
    """Kernels of the iterations of one phase with one family and one origin.

    family    of the kernels; samplers are "sampling"
    module    path of the `nn.Module` call, outermost first, None if unknown
    operator, line  None if unknown
    how       what tells the origin, None if nothing does
    reason    why something of it is unknown
    kernels   how many
    time_ns   sum of their durations
    longest   row of the longest of them
    """

    family: str
    module: str | None
    operator: str | None
    line: str | None
    how: str | None
    reason: str | None
    kernels: int
    time_ns: int
    longest: int


def iteration_work(trace: Trace, phase: int) -> list[IterationWork]:
    """Return what the kernels of the iterations of a phase belong to, most time first."""
    found = serving_iterations(trace)
    if found is None:
        return []
    rows = np.flatnonzero((found.owner >= 0) & (event_kinds(trace) == Kind.KERNEL))
    rows = rows[found.phase[found.owner[rows]] == phase]
    if len(rows) == 0:
        return []
    table, position = origins(trace), origin_positions(trace)[rows]
    sampler = len(FAMILIES)
    family = np.where(serving_kernels(trace).sampler[rows], sampler, family_codes(trace)[rows])
    codes = [
        np.where(position >= 0, getattr(table, name)[position], NO_CODE)
        for name in ("modules", "operator", "lines", "how", "reason")
    ]
    length = event_ends(trace)[rows] - trace.events.start[rows]
    groups = group(family, *codes)
    times = groups.sums(length)
    by_length = np.lexsort((length, groups.which))
    last = np.searchsorted(groups.which[by_length], np.arange(len(groups)), "right") - 1
    longest, names = rows[by_length[last]], (*FAMILIES, SAMPLING)
    work = []
    for number in np.argsort(-times, kind="stable").tolist():
        first = int(groups.first[number])
        at = int(position[first])
        values = {name: table.value(name, at) if at >= 0 else None for name in ("modules", "operator", "lines")}
        how = int(codes[3][first])
        lines = values["lines"]
        work.append(
            IterationWork(
                family=names[int(family[first])],
                module=None if values["modules"] is None else "/".join(values["modules"]),
                operator=values["operator"],
                line=lines[0] if lines else None,
                how=ORIGIN_SOURCES[how] if how >= 0 else None,
                reason=table.value("reason", at) if at >= 0 else None,
                kernels=int(groups.counts[number]),
                time_ns=int(times[number]),
                longest=int(longest[number]),
            )
        )
    return work
