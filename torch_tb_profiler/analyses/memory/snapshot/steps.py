"""The steps in the annotations of a memory snapshot, and the peaks inside and outside of them.

PyTorch records annotations with `_record_memory_history(global_record_annotations=True)`; `prof.step()` names them
`ProfilerStep#7`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from torch_tb_profiler.analyses.memory.snapshot.history import AllocatorHistory
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.model.snapshots import RecordedSnapshot

_STEP = lazy_regex(r"^(?:profiler|train(?:ing)?[ _]?)?step\s*[#_ ]?\s*\d+$", re.IGNORECASE)


@dataclass(frozen=True)
class SnapshotStep:
    """A step, and the entries [begin, end) of a device's history in it."""

    name: str
    begin: int
    end: int


@dataclass(frozen=True)
class HistoryPeak:
    """Most bytes in use in some entries, the first such entry, and its step ("" outside of steps)."""

    bytes: int
    entry: int
    step: str


@derived
def snapshot_steps(snapshot: RecordedSnapshot, device: int) -> tuple[SnapshotStep, ...]:
    """Return the steps whose beginning and end are recorded, in order; () if the file has no times or no steps."""
    from torch_tb_profiler.analyses.memory.snapshot.history import allocator_history

    history, notes = allocator_history(snapshot, device), snapshot.notes
    if not history.timed:
        return ()
    times = snapshot.history.time[history.rows]
    open_steps: dict[str, int] = {}
    found: dict[tuple[str, int, int], SnapshotStep] = {}
    for row in np.argsort(notes.time, kind="stable").tolist():
        name = str(snapshot.texts[int(notes.name[row])])
        if not _STEP.match(name):
            continue
        stage, time = str(snapshot.texts[int(notes.stage[row])]), int(notes.time[row])
        if stage == "START":
            open_steps.setdefault(name, time)
        elif stage == "END" and name in open_steps:
            begin = int(np.searchsorted(times, open_steps.pop(name), "left"))
            end = int(np.searchsorted(times, time, "right"))
            if end > begin:
                found[name, begin, end] = SnapshotStep(name, begin, end)
    return tuple(found.values())


def find_step_peaks(
    history: AllocatorHistory, steps: Iterable[SnapshotStep]
) -> tuple[HistoryPeak | None, HistoryPeak | None]:
    """Return the peak inside of steps and the one outside; None where there are no such entries."""
    ordered = sorted(steps, key=lambda step: step.begin)
    inside = [_find_peak(history, step.begin, step.end, step.name) for step in ordered]
    outside = [_find_peak(history, begin, end, "") for begin, end in _between(ordered, len(history))]
    return _find_highest(inside), _find_highest(outside)


def _between(steps: list[SnapshotStep], count: int) -> Iterator[tuple[int, int]]:
    done = 0
    for step in steps:
        if step.begin > done:
            yield done, step.begin
        done = max(done, step.end)
    if done < count:
        yield done, count


def _find_peak(history: AllocatorHistory, begin: int, end: int, step: str) -> HistoryPeak:
    entry = begin + int(history.in_use[begin:end].argmax())
    return HistoryPeak(int(history.in_use[entry]), entry, step)


def _find_highest(moments: list[HistoryPeak]) -> HistoryPeak | None:
    return max(moments, key=lambda moment: moment.bytes, default=None)
