"""What capturing a sequence in a graph would bring: the host takes no time from first to last launch of a run."""

from __future__ import annotations

from collections.abc import Sequence as Listed

import numpy as np

from torch_tb_profiler.analyses.launches.sequences import Sequence
from torch_tb_profiler.analyses.schedule.step_ends import recorded_spans
from torch_tb_profiler.analyses.schedule.targets import time_target
from torch_tb_profiler.analyses.schedule.what_if import unexplained, without
from torch_tb_profiler.base.intervals import merge
from torch_tb_profiler.model.kinds import event_ends
from torch_tb_profiler.model.schedule.schedule import schedule
from torch_tb_profiler.model.trace import NO_CODE, Trace


def captures(trace: Trace, sequences: Listed[Sequence]) -> list[int] | None:
    """ns by which the complete steps together would be shorter, per sequence, each alone; None where the schedule
    cannot tell. Waits in between stay."""
    if unexplained(trace) is not None:
        return None
    work = schedule(trace).items
    launch = np.full(len(trace), NO_CODE, np.int32)
    launch[work.row] = work.call
    parts = []
    for each in sequences:
        calls = launch[each.rows]
        calls = calls[(calls >= 0).all(axis=1)]
        first = trace.events.start[calls].min(axis=1, initial=np.iinfo(np.int64).max)
        parts.append(time_target(trace, merge(first, event_ends(trace)[calls].max(axis=1, initial=0))))
    if not parts:
        return []
    spans = recorded_spans(trace)
    saved: list[int] = ((spans.mean_ns[0] - without(trace, parts)) * spans.end.shape[1]).tolist()
    return saved
