"""Iterations of AORTA's metrics in a trace of the same process: joined by the number of their step.

ProfilerStep#4  |--------------------------------------|      step of the trace
iteration 4         |--------------------------|              from its first event record, as long as recorded
compute                [forward][backward ]                   ranges of its streams

The recorder counts iterations as the profiler counts steps, and both begin with the process. That they belong
together is checked: no iteration takes longer than its step. A recording of rocprofv3 without steps is joined by
the kernels of its collectives (`iteration_alignment`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from torch_tb_profiler.model.added_slices import AddedSlice, add_slices
from torch_tb_profiler.model.iteration_alignment import IterationPlaces, place_iterations
from torch_tb_profiler.model.iterations import SEGMENT_CATEGORY, iterations, stream_ranges
from torch_tb_profiler.model.kinds import Kind, event_ends, rows_of_kind
from torch_tb_profiler.model.origin_records import PlacedIterations
from torch_tb_profiler.model.ranks import split_trace
from torch_tb_profiler.model.steps import Steps, steps
from torch_tb_profiler.model.trace import ArgColumn, Int32, Thread, Trace, name_mask

ITERATION_CATEGORY = "iteration_metrics"
ITERATIONS_PROCESS = "AORTA"

_METRICS = ("loss", "lr", "grad_norm", "global_step", "epoch")
"""Metrics of an iteration, each an argument `iteration <metric>` of its slice."""

_COUNTS = ("global_step", "epoch")

_MAX_EXCESS_RATIO = 0.01
"""An iteration may take this much longer than its step: device and host have clocks of their own."""

_EVENT_RECORDS = ("cudaEventRecord", "hipEventRecord")


class JoinedIterations(NamedTuple):
    """A trace with iterations, or as it was with the reason.

    placed      the iterations that were joined; their `path` is empty
    slack_ns    how far an iteration may be from its place: the most that a step takes longer than its iteration
    kernels     number of kernels that place the iterations; 0 if the numbers of steps do
    """

    trace: Trace
    placed: PlacedIterations | None
    slack_ns: int
    reason: str | None
    kernels: int = 0


class _Pair(NamedTuple):
    """An iteration (its number in the recording) and when the step of its name runs on the host, ns."""

    iteration: int
    begin: int
    end: int


def join_iterations(trace: Trace, metrics: Trace) -> JoinedIterations:
    """Return the trace with the iterations of `metrics` in its steps.

    Of several recordings in the file it is the only one whose iterations fit into the steps.
    """
    spans = steps(trace)
    recordings = list(split_trace(metrics).values()) or [metrics]
    named = [(number, each, matches) for number, each in enumerate(recordings) if (matches := _match(spans, each))]
    fitting = [(number, each, matches) for number, each, matches in named if _fits(each, matches)]
    if not named:
        return JoinedIterations(trace, None, 0, "no iteration has the number of a step")
    if not fitting:
        return JoinedIterations(trace, None, 0, "an iteration takes longer than the step with its number")
    if len(fitting) > 1:
        return JoinedIterations(trace, None, 0, f"{len(fitting)} recordings of the file fit the steps")
    which, recording, matches = fitting[0]
    found = iterations(recording)
    slack = max(end - begin - int(found.totals[number]) for number, begin, end in matches)
    moves: list[tuple[int, int]] = []
    for number, begin, end in matches:
        start = _first_event_record(trace, begin, end - int(found.totals[number]))
        moves.append((number, (begin if start is None else start) - int(found.starts[number])))
    joined, placed = _place(trace, recording, which, moves)
    return JoinedIterations(joined, placed, max(slack, 0), None)


def join_by_kernels(trace: Trace, metrics: Trace) -> JoinedIterations:
    """Return a trace without steps with the iterations of `metrics` where the kernels of their collectives are.

    Of several recordings in the file it is the only one that has such a place.
    """
    recordings = list(split_trace(metrics).values()) or [metrics]
    places = [place_iterations(trace, each) for each in recordings]
    fitting = [(number, place) for number, place in enumerate(places) if isinstance(place, IterationPlaces)]
    if len(fitting) > 1:
        return JoinedIterations(trace, None, 0, f"{len(fitting)} recordings of the file fit the kernels")
    if not fitting:
        reasons = dict.fromkeys(place for place in places if isinstance(place, str))
        return JoinedIterations(trace, None, 0, "; ".join(reasons))
    which, place = fitting[0]
    moves = list(enumerate((place.starts - iterations(recordings[which]).starts).tolist()))
    joined, placed = _place(trace, recordings[which], which, moves)
    return JoinedIterations(joined, placed, place.slack_ns, None, place.kernels)


def _match(spans: Steps, recording: Trace) -> list[_Pair]:
    """Return the iterations of a recording that have a step of their name."""
    if not spans.recorded:
        return []
    at = {name: number for number, name in enumerate(spans.names)}
    return [
        _Pair(number, int(spans.host_starts[at[name]]), int(spans.host_ends[at[name]]))
        for number, name in enumerate(steps(recording).names)
        if name in at
    ]


def _fits(recording: Trace, matches: Sequence[_Pair]) -> bool:
    totals = iterations(recording).totals
    return all(totals[number] <= (1 + _MAX_EXCESS_RATIO) * (end - begin) for number, begin, end in matches)


def _place(
    trace: Trace, recording: Trace, which: int, moves: Sequence[tuple[int, int]]
) -> tuple[Trace, PlacedIterations]:
    """Return the trace with a slice per iteration and the ranges and segments of its streams, and where they are.

    which  number of the recording in its file
    moves  number of each iteration, and how much later than in the recording it is, ns
    """
    found, reach = iterations(recording), int(event_ends(trace).max(initial=0))
    bounds = np.append(found.begins, np.iinfo(np.int64).max)
    rows = [*stream_ranges(recording).values(), _segment_rows(recording)]
    parts = np.concatenate([np.empty(0, np.int32), *rows])
    owner = np.searchsorted(bounds, recording.events.start[parts], "right") - 1
    slices: list[AddedSlice] = []
    first_row, placed_rows = len(trace), list[int]()
    windows: list[tuple[int, int, int]] = []
    for number, shift in moves:
        placed_rows.append(first_row + len(slices))
        name = f"iteration {steps(recording).names[number]}"
        lane = Thread(ITERATIONS_PROCESS, "iterations")
        begin = int(found.starts[number]) + shift
        start_ns = max(begin, 0)
        end_ns = max(min(begin + int(found.totals[number]), reach), start_ns)
        slices.append(AddedSlice(ITERATION_CATEGORY, name, lane, start_ns, end_ns))
        windows.append((number, start_ns, end_ns))
        slices += _build_parts(recording, parts[owner == number], shift, reach)
    rows_of_iterations = found.row[[number for number, _ in moves]]
    joined = add_slices(trace, slices, dict(_metric_args(recording, rows_of_iterations, placed_rows)))
    return joined, PlacedIterations("", which, *zip(*windows, strict=True))


def _segment_rows(recording: Trace) -> Int32:
    is_segment = name_mask(recording.strings, SEGMENT_CATEGORY.__eq__)
    return np.flatnonzero(is_segment[recording.events.category]).astype(np.int32)


def _build_parts(recording: Trace, rows: Int32, shift: int, reach: int) -> Iterator[AddedSlice]:
    events, ends = recording.events, event_ends(recording)
    for row in rows.tolist():
        low, high = max(int(events.start[row]) + shift, 0), min(int(ends[row]) + shift, reach)
        if low <= high:
            lane = Thread(ITERATIONS_PROCESS, str(recording.threads[events.thread[row]].tid))
            name = recording.strings[events.name[row]]
            yield AddedSlice(ITERATION_CATEGORY, name, lane, low, high)


def _first_event_record(trace: Trace, begin: int, latest: int) -> int | None:
    """Return when the first event is recorded, as an iteration does when it starts; None if after `latest`."""
    rows = rows_of_kind(trace, Kind.RUNTIME)
    rows = rows[name_mask(trace.strings, lambda name: name.startswith(_EVENT_RECORDS))[trace.events.name[rows]]]
    starts = trace.events.start[rows]
    inside = starts[(starts >= begin) & (starts <= latest)]
    return int(inside.min()) if len(inside) else None


def _metric_args(recording: Trace, rows: Int32, placed: Sequence[int]) -> Iterator[tuple[str, ArgColumn]]:
    for name in _METRICS:
        values = recording.arg_float(name, rows)
        known = np.isfinite(values)
        if known.any():
            whole = name in _COUNTS
            column = ArgColumn(
                "int" if whole else "float",
                np.array(placed, np.int32)[known],
                values[known].astype(np.int64) if whole else values[known],
            )
            yield f"iteration {name.replace('_', ' ')}", column
