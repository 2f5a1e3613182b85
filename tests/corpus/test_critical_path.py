"""Critical paths of real traces: they tile their steps, have no slack, and their curves begin at the step."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from tests.corpus import real_traces
from torch_tb_profiler.analyses.critical_path.candidates import speedup_candidates
from torch_tb_profiler.analyses.critical_path.slack import slack
from torch_tb_profiler.analyses.critical_path.slices import path_groups
from torch_tb_profiler.analyses.schedule.causes import Cause, split_by_state
from torch_tb_profiler.analyses.schedule.path import PathSegmentKind, critical_path, path_between, path_times
from torch_tb_profiler.analyses.schedule.places import PlaceKind
from torch_tb_profiler.analyses.schedule.step_spans import recorded_spans
from torch_tb_profiler.analyses.schedule.what_if import what_if_curves
from torch_tb_profiler.base.intervals import covered_time, merge
from torch_tb_profiler.model.communication.events import is_communication_kernel
from torch_tb_profiler.model.kinds import Kind, event_ends, rows_of_kind
from torch_tb_profiler.model.schedule.schedule import schedule
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.views._shared.availability import critical_path_reason as unavailable

pytestmark = real_traces.MARKS

NAMED = 3
"""Targets with most time on the path of which the curve is looked at, too."""


def test_every_path_tiles_its_steps_and_every_curve_falls(corpus: Path) -> None:
    paths = 0
    for path, trace in real_traces.whole_files(corpus):
        if unavailable(trace) is not None:
            continue
        spans, pieces = recorded_spans(trace), critical_path(trace)
        assert path_times(trace).sum(axis=1).tolist() == (spans.end - spans.begin)[0].tolist(), path
        for step, (begin, end) in enumerate(zip(spans.begin[0], spans.end[0], strict=True)):
            mine = pieces.step == step
            if end > begin:
                assert pieces.begin[mine][0] == begin, path
                assert pieces.end[mine][-1] == end, path
                assert (pieces.begin[mine][1:] == pieces.end[mine][:-1]).all(), path
        for by in get_args(PlaceKind):
            total = spans.durations[0][spans.typical].sum()
            assert path_groups(trace, by).times.sum() == total, path
        room = slack(trace)
        assert min(room.items.min(initial=0), room.points.min(initial=0)) >= 0, path
        assert (room.items[pieces.ref[pieces.kind == PathSegmentKind.DEVICE]] == 0).all(), path
        computes = not is_communication_kernel(trace)[schedule(trace).items.row].all()
        targets = ["host", *(["device"] if computes else [])]
        targets += [each.target for each in speedup_candidates(trace)[:NAMED]]
        for times in what_if_curves(trace, tuple(dict.fromkeys(targets))).tolist():
            assert times[0] == spans.mean_ns[0], path
            assert (np.diff(times) <= 0).all(), path
        paths += 1
    assert paths > 60


@pytest.mark.parametrize(
    ("run", "mark", "host", "device"),
    [
        ("hta_critical_path_alexnet", "[param|pytorch.model.alex_net|0|0|0|measure|forward]", 0.894, 0.104),
        ("hta_nccl_data", "ProfilerStep#5", 1.0, 0.0),
    ],
)
def test_shares_of_host_and_device_are_within_3_points_of_holistic_trace_analysis(
    corpus: Path, run: str, mark: str, host: float, device: float
) -> None:
    """Its `bound_by` CPU and GPU of the last annotation of a name; traces without Python, which it ignores."""
    trace = real_traces.of_run(corpus, run)
    row = [row for row in rows_of_kind(trace, Kind.ANNOTATION) if trace.strings[trace.events.name[row]] == mark][
        -1
    ]
    path = path_between(trace, int(trace.events.start[row]), int(event_ends(trace)[row]))
    time = np.bincount(path.kind, weights=path.end - path.begin, minlength=len(PathSegmentKind))
    assert time[PathSegmentKind.HOST] / time.sum() == pytest.approx(host, abs=0.03)
    assert time[PathSegmentKind.DEVICE] / time.sum() == pytest.approx(device, abs=0.03)


def test_a_path_without_the_gaps_between_operators_has_the_shares_of_holistic_trace_analysis(corpus: Path) -> None:
    """It gives no weight to what passes between operators of the top level: annotated or unrecorded time here.

    That time passes: no operator and no call runs on the thread then, as the file itself says, and 16.9 of
    the step's 76.2 ms go by without one on any thread. A path without it is shorter than the step.
    """
    trace = real_traces.of_run(corpus, "hta_trace_diff_control_a100")
    spans = steps(trace)
    path = path_between(trace, int(spans.starts[2]), int(spans.host_ends[2]))
    length, host = path.end - path.begin, path.kind == PathSegmentKind.HOST
    pieces = split_by_state(trace, path.ref[host].astype(np.int32), path.begin[host], path.end[host])
    between = np.isin(pieces.cause, (Cause.ANNOTATION, Cause.UNRECORDED))
    work = rows_of_kind(trace, Kind.CPU_OP, Kind.RUNTIME)
    start, finish, on = trace.events.start[work], event_ends(trace)[work], trace.events.thread[work]
    threads = path.ref[host][pieces.window]
    inside = 0  # of marks inside of operators
    for thread in np.unique(threads[between]).tolist():
        mine, busy = between & (threads == thread), merge(start[on == thread], finish[on == thread])
        inside += int(covered_time(busy, pieces.begin[mine], pieces.end[mine]).sum())
    assert (int((pieces.end - pieces.begin)[between].sum()), inside) == (12_415_000, 65_000)
    begin, end = int(spans.starts[2]), int(spans.host_ends[2])
    without = end - begin - int(covered_time(merge(start, finish), np.array([begin]), np.array([end]))[0])
    assert (end - begin, without) == (76_212_000, 16_929_000)
    left = int(length.sum() - (pieces.end - pieces.begin)[between].sum())
    assert left / length.sum() == pytest.approx(0.837, abs=0.01)
    device = length[path.kind == PathSegmentKind.DEVICE].sum()
    assert (pieces.end - pieces.begin)[~between].sum() / left == pytest.approx(0.666, abs=0.03)
    assert device / left == pytest.approx(0.315, abs=0.03)
