"""The calls of one module."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.modules.calls import calls
from torch_tb_profiler.analyses.modules.times import recomputed
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.model.kinds import event_ends
from torch_tb_profiler.model.modules.modules import Modules
from torch_tb_profiler.model.trace import Trace


class ModuleCall(msgspec.Struct, frozen=True):
    """A call: its row in the trace, code of its thread, ns; `recomputed` if backward made it."""

    event: int
    thread: int
    start: int
    duration: int
    device: int
    recomputed: bool


def module_calls(trace: Trace, model: Modules, place: int, rows: slice) -> tuple[int, list[ModuleCall]]:
    """(how many calls, a page of them, longest first). NotFoundError for an unknown place."""
    if not 0 <= place < len(model.names):
        raise NotFoundError(f"there is no module {place}", hint=f"places: 0 to {len(model.names) - 1}")
    events = model.calls[model.code[model.calls] == place]
    durations = (event_ends(trace) - trace.events.start)[events]
    order = np.lexsort((events, -durations))[rows]
    page = events[order]
    columns = (
        page,
        trace.events.thread[page],
        trace.events.start[page],
        durations[order],
        calls(trace).device[page],
        recomputed(trace, model)[page],
    )
    return len(events), [ModuleCall(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]
