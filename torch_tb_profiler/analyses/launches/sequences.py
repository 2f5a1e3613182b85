"""Sequences of device work that repeat in one order (the layers of a model), where they come from, and savings.

The kernel names on each stream, cut where a step begins, are a list of codes. Repeated stretches are made as long
as possible; then, best first, each takes the work that no better one has taken.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec
import numpy as np

from torch_tb_profiler.analyses.launches.repeats import extend_repeats, find_repeats
from torch_tb_profiler.analyses.schedule.step_spans import recorded_spans
from torch_tb_profiler.analyses.schedule.what_if import (
    host_time_target,
    replay_unavailable_reason,
    savings_in_steps,
)
from torch_tb_profiler.analyses.shared.grouping import dense_codes, launch_times, select_device_work, stable_order
from torch_tb_profiler.analyses.tracks.sources import name_of
from torch_tb_profiler.base.arrays import cells_of_rows
from torch_tb_profiler.base.intervals import merge
from torch_tb_profiler.base.markers import is_step
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.model.calls.calltree import call_tree
from torch_tb_profiler.model.calls.links import device_launches
from torch_tb_profiler.model.devices import device_ids, stream_ids
from torch_tb_profiler.model.kinds import DEVICE_KINDS, event_lengths, event_spans, rows_of_kind
from torch_tb_profiler.model.schedule.schedule import schedule
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int32, Int64, Trace, name_mask

# Kernels of PyTorch and of Triton's and NVFuser's code generators that read and write each element once.
_ELEMENTWISE = lazy_regex(
    r"elementwise_kernel|^triton_poi_|CatArrayBatch|pointwise|^nvfuser_pointwise", re.IGNORECASE
)

MIN_RUNS = 3
"""Fewest runs of a sequence."""


class WorkSequence(msgspec.Struct, frozen=True):
    """A sequence of device work that repeats.

    rows       int32[runs, length]  its work, one line per run, in order of time
    time_ns    of all runs together
    fusion_ns  estimate of what fusing neighboring elementwise kernels saves: all but the longest of each group. It
               is more where that one reads what the others wrote, which a fused kernel doesn't
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


class WorkSequences(msgspec.Struct, frozen=True):
    """Sequences without common work, best first. `time_ns`: duration of all work that was searched."""

    sequences: tuple[WorkSequence, ...]
    time_ns: int

    @property
    def covered_ns(self) -> int:
        return sum(sequence.time_ns for sequence in self.sequences)


@derived
def work_sequences(
    trace: Trace, device: int | None = None, stream: int | None = None, max_sequences: int = 8
) -> WorkSequences:
    """Return the best sequences of two and more items, each with at least MIN_RUNS runs and two per step."""
    work = select_device_work(trace, rows_of_kind(trace, *DEVICE_KINDS), "", device, stream)
    codes, rows = _build_name_codes(trace, work)
    duration = event_lengths(trace, rows)
    cost = np.where(rows >= 0, duration, 0)
    before = np.append(0, np.cumsum(cost))
    spans = steps(trace)
    min_runs = max(MIN_RUNS, 2 * len(spans.names) if spans.recorded else MIN_RUNS)
    repeats = extend_repeats(codes, find_repeats(codes, before, min_runs))
    elementwise = name_mask(trace.strings, lambda name: _ELEMENTWISE.search(name) is not None)
    sequences = []
    for length, positions in _choose_disjoint(repeats, before, len(codes), min_runs, max_sequences):
        mine = rows[positions[:, None] + np.arange(length)]
        time = int((before[positions + length] - before[positions]).sum())
        durations = cost[positions[:, None] + np.arange(length)]
        saved = _estimate_fusion_saving(elementwise[trace.events.name[mine[0]]], durations)
        sequences.append(WorkSequence(mine, time, saved))
    return WorkSequences(tuple(sequences), int(cost.sum()))


def _build_name_codes(trace: Trace, work: Int32) -> tuple[Int64, Int32]:
    """Return (codes of the work's names, its rows); both are -1 between streams and between steps."""
    stream, _ = dense_codes(device_ids(trace)[work], stream_ids(trace)[work])
    order = np.argsort(trace.events.start[work], kind="stable")  # they nearly ascend
    order = order[stable_order(stream[order])]
    work, stream = work[order], stream[order]
    step = np.searchsorted(steps(trace).host_starts, launch_times(trace, work), "right")
    borders = np.flatnonzero((np.diff(stream) != 0) | (np.diff(step) != 0)) + 1
    codes, _ = dense_codes(trace.events.name[work])
    return np.insert(codes, borders, -1), np.insert(work, borders, -1)


def _score(before: Int64, length: int, positions: Int64) -> float:
    """Return the time that a repeat covers, with a small preference for longer and more frequent ones."""
    time = int((before[positions + length] - before[positions]).sum())
    return time * (1 - 1 / length) * (1 - 1 / len(positions))


def _choose_disjoint(
    repeats: list[tuple[int, Int64]], before: Int64, count: int, min_runs: int, max_sequences: int
) -> list[tuple[int, Int64]]:
    """Choose repeats by score, without work already taken; one that loses more than half its runs is skipped."""
    changes = np.zeros(count + 1, np.int64)
    used_before = np.zeros(count + 1, np.int64)
    chosen: list[tuple[int, Int64]] = []
    for length, positions in sorted(repeats, key=lambda each: -_score(before, *each)):
        if len(chosen) == max_sequences:
            break
        free = positions[used_before[positions + length] == used_before[positions]]
        if len(free) < max(min_runs, len(positions) / 2):
            continue
        np.add.at(changes, free, 1)
        np.add.at(changes, free + length, -1)
        used_before = np.append(0, np.cumsum(np.cumsum(changes[:-1]) > 0))
        chosen.append((length, free))
    return chosen


def _estimate_fusion_saving(elementwise: Bool, duration: Int64) -> int:
    """Return the time of all but the longest of each group of neighboring elementwise kernels, over all runs."""
    saved, begin = 0, 0
    while begin < len(elementwise):
        end = begin
        while end < len(elementwise) and elementwise[end]:
            end += 1
        if end - begin > 1:
            neighbors = duration[:, begin:end]
            saved += int((neighbors.sum(axis=1) - neighbors.max(axis=1)).sum())
        begin = end + 1
    return saved


def graph_capture_savings(trace: Trace, sequences: Sequence[WorkSequence]) -> list[int] | None:
    """Return ns by which capturing each sequence in a graph would shorten the complete steps together.

    Each is captured alone: the host takes no time from the first to the last launch of a run; waits remain.
    None where a replay can't estimate it.
    """
    if replay_unavailable_reason(trace) is not None:
        return None
    items = schedule(trace).items
    launch = np.full(len(trace), NO_CODE, np.int32)
    launch[items.row] = items.call
    parts = []
    for sequence in sequences:
        calls = launch[sequence.rows]
        calls = calls[(calls >= 0).all(axis=1)]
        start, end = event_spans(trace, calls.reshape(-1))
        first = start.reshape(calls.shape).min(axis=1, initial=np.iinfo(np.int64).max)
        last = end.reshape(calls.shape).max(axis=1, initial=0)
        parts.append(host_time_target(trace, merge(first, last)))
    if not parts:
        return []
    return savings_in_steps(trace, parts, np.ones(recorded_spans(trace).end.shape[1], np.bool_))


def common_slice(trace: Trace, work: Int32) -> int:
    """Return the row of the innermost module, operator, annotation, or frame that launched all of some work.

    NO_CODE if none did. A call that launched all of it (a graph) is itself that slice. A step doesn't count: it
    launches everything.
    """
    rows, launch = device_launches(trace)
    calls = cells_of_rows(rows, launch, work, NO_CODE)
    if len(calls) == 0 or (calls < 0).any():
        return NO_CODE
    tree = call_tree(trace)
    common = _find_enclosing_slices(tree.parent, int(calls[0]))
    for call in np.unique(calls[1:]).tolist():
        enclosing = set(_find_enclosing_slices(tree.parent, call))
        common = [row for row in common if row in enclosing]
    while common and is_step(name_of(trace, common[0])):
        common = common[1:]
    return common[0] if common else NO_CODE


def _find_enclosing_slices(parent: Int32, row: int) -> list[int]:
    """Return a slice and those around it, innermost first."""
    chain = []
    while row != NO_CODE:
        chain.append(row)
        row = int(parent[row])
    return chain
