"""Device work that repeats in one order: the layers of a model, without being told where they begin.

The names on each stream, cut where a step begins, are a list of codes. The stretches that repeat are made as
long as they go; then, the best first, each takes the work that no other has taken.
"""

from __future__ import annotations

import re

import msgspec
import numpy as np

from torch_tb_profiler.analyses.launches.grams import maximal, repeats
from torch_tb_profiler.analyses.shared.device_work import chosen_work
from torch_tb_profiler.analyses.shared.grouping import launch_times
from torch_tb_profiler.model.devices import device_ids, stream_ids
from torch_tb_profiler.model.kinds import DEVICE_KINDS, event_ends, rows_of_kind
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Int32, Int64, Trace, derived, name_mask

# Kernels that read and write each element once: of PyTorch, of Triton's and NVFuser's code generators.
_ELEMENTWISE = re.compile(
    r"elementwise_kernel|^triton_poi_|CatArrayBatch|pointwise|^nvfuser_pointwise", re.IGNORECASE
)


class Sequence(msgspec.Struct, frozen=True):
    """A sequence of device work.

    rows       int32[runs, length]  its work, a line per run, in order of time
    time_ns    of all its runs together
    fusion_ns  at most what fusing its elementwise kernels, where some follow each other, can save: of each such
               group all but its longest, since a fused kernel reads and writes at least what that one does
    """

    rows: Int32
    time_ns: int
    fusion_ns: int

    @property
    def runs(self) -> int:
        return int(self.rows.shape[0])

    @property
    def length(self) -> int:
        return int(self.rows.shape[1])


class Sequences(msgspec.Struct, frozen=True):
    """Sequences without common work, in the order in which they were chosen.

    time_ns  durations of all work that was looked at
    """

    sequences: tuple[Sequence, ...]
    time_ns: int

    @property
    def covered_ns(self) -> int:
        return sum(sequence.time_ns for sequence in self.sequences)


@derived
def sequences(trace: Trace, device: int | None = None, stream: int | None = None, most: int = 8) -> Sequences:
    """At most `most` sequences of two and more, each run at least 3 times and twice per step."""
    work = chosen_work(trace, rows_of_kind(trace, *DEVICE_KINDS), "", device, stream)
    codes, rows = _codes(trace, work)
    duration = (event_ends(trace) - trace.events.start)[rows]
    cost = np.where(rows >= 0, duration, 0)
    before = np.append(0, np.cumsum(cost))
    spans = steps(trace)
    least = max(3, 2 * len(spans.names) if spans.recorded else 3)
    chosen = _cover(maximal(codes, repeats(codes, before, least)), before, len(codes), least, most)
    elementwise = name_mask(trace.strings, lambda name: _ELEMENTWISE.search(name) is not None)
    repeated = []
    for length, positions in chosen:
        mine = rows[positions[:, None] + np.arange(length)]
        time = int((before[positions + length] - before[positions]).sum())
        saved = _fusible(elementwise[trace.events.name[mine[0]]], duration_of(trace, mine))
        repeated.append(Sequence(mine, time, saved))
    return Sequences(tuple(repeated), int(cost.sum()))


def duration_of(trace: Trace, rows: Int32) -> Int64:
    """ns, in the shape of the rows."""
    lasting: Int64 = event_ends(trace)[rows] - trace.events.start[rows]
    return lasting


def _codes(trace: Trace, work: Int32) -> tuple[Int64, Int32]:
    """(names of the work as codes, -1 between streams and between steps; its rows, -1 likewise)."""
    stream = np.unique(np.stack([device_ids(trace)[work], stream_ids(trace)[work]]), axis=1, return_inverse=True)[
        1
    ]
    stream = stream.reshape(-1)
    order = np.lexsort((trace.events.start[work], stream))
    work, stream = work[order], stream[order]
    step = np.searchsorted(steps(trace).host_starts, launch_times(trace, work), "right")
    cut = np.flatnonzero((np.diff(stream) != 0) | (np.diff(step) != 0)) + 1
    codes = np.unique(trace.events.name[work], return_inverse=True)[1].reshape(-1).astype(np.int64)
    return np.insert(codes, cut, -1), np.insert(work, cut, -1)


def _worth(before: Int64, length: int, positions: Int64) -> float:
    """Time that the stretch covers; longer and more frequent ones are preferred, where it makes a difference."""
    covered = int((before[positions + length] - before[positions]).sum())
    return covered * (1 - 1 / length) * (1 - 1 / len(positions))


def _cover(
    stretches: list[tuple[int, Int64]], before: Int64, count: int, least: int, most: int
) -> list[tuple[int, Int64]]:
    """The most worthy first, without what is taken already; one that keeps less than half of its runs is left."""
    taken = np.zeros(count + 1, np.int64)
    so_far = np.zeros(count + 1, np.int64)
    chosen: list[tuple[int, Int64]] = []
    for length, positions in sorted(stretches, key=lambda each: -_worth(before, *each)):
        if len(chosen) == most:
            break
        free = positions[so_far[positions + length] == so_far[positions]]
        if len(free) < max(least, len(positions) / 2):
            continue
        np.add.at(taken, free, 1)
        np.add.at(taken, free + length, -1)
        so_far = np.append(0, np.cumsum(np.cumsum(taken[:-1]) > 0))
        chosen.append((length, free))
    return chosen


def _fusible(elementwise: np.ndarray, duration: Int64) -> int:
    """All but the longest of each group of neighboring elementwise kernels, over all runs."""
    saved, at = 0, 0
    while at < len(elementwise):
        end = at
        while end < len(elementwise) and elementwise[end]:
            end += 1
        if end - at > 1:
            group = duration[:, at:end]
            saved += int((group.sum(axis=1) - group.max(axis=1)).sum())
        at = end + 1
    return saved
