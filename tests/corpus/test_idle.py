"""Idle time on real traces: its laws to the nanosecond, and HTA's breakdowns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.corpus import hta, real_traces
from torch_tb_profiler.analyses.idle.device_time import (
    WORK_CATEGORIES,
    DeviceStepTimes,
    device_step_times,
    device_time,
)
from torch_tb_profiler.analyses.idle.table import idle_gains, idle_table
from torch_tb_profiler.analyses.overview.idle import idle_times as overview_idle
from torch_tb_profiler.analyses.schedule.causes import CAUSE_NAMES
from torch_tb_profiler.analyses.schedule.gaps import ItemsByStart, items_by_start
from torch_tb_profiler.analyses.schedule.segments import idle_segments
from torch_tb_profiler.analyses.schedule.what_if import replay_unavailable_reason
from torch_tb_profiler.analyses.shared.typical_steps import step_kinds
from torch_tb_profiler.base.intervals import merge, subtract, total
from torch_tb_profiler.model.devices import device_ids, stream_ids
from torch_tb_profiler.model.kinds import (
    DEVICE_KINDS,
    Kind,
    event_intervals,
    event_kinds,
    rows_of_kind,
)
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Int64, Trace

pytestmark = real_traces.MARKS


def parts_tile_the_steps(trace: Trace, device: int, times: DeviceStepTimes, name: str) -> None:
    """Check that what a device's time goes to covers each instant of the complete steps once, in the same sums."""
    found, whole = device_time(trace, device), times.complete
    assert (found.length > 0).all(), name
    assert (found.begin[1:] >= found.end[:-1]).all(), name
    sums = np.bincount(
        np.minimum(found.category, len(WORK_CATEGORIES)), found.length, len(WORK_CATEGORIES) + 1
    ).astype(np.int64)
    expected = [int(part[whole].sum()) for part in (times.compute, times.communication, times.copies, times.idle)]
    assert sums.tolist() == expected, name


def test_every_idle_nanosecond_has_one_cause_and_the_parts_sum_to_the_step(corpus: Path) -> None:
    looked_at = 0
    for name, trace in real_traces.recordings(corpus):
        rows = rows_of_kind(trace, *DEVICE_KINDS)
        for device in np.unique(device_ids(trace)[rows]).tolist():
            mine = rows[device_ids(trace)[rows] == device]
            for stream in [None, *np.unique(stream_ids(trace)[mine]).tolist()[:3]]:
                times, found = device_step_times(trace, device, stream), idle_segments(trace, device, stream)
                parts = times.compute + times.communication + times.copies + times.idle
                assert (parts == times.duration).all(), name
                assert (np.stack([times.compute, times.communication, times.copies, times.idle]) >= 0).all(), name
                assert (found.length > 0).all(), name
                assert (found.begin[1:] >= found.end[:-1]).all(), name
                idle_times = np.zeros(len(times.names), np.int64)
                np.add.at(idle_times, found.step, found.length)
                assert (idle_times[times.complete] == times.idle[times.complete]).all(), name
                if stream is None:
                    parts_tile_the_steps(trace, device, times, name)
                    in_typical = found.length[step_kinds(trace).typical[found.step]].sum()
                    for by in ("cause", "emptied_by"):
                        assert idle_table(trace, device, None, by).time.sum() == in_typical, name
                looked_at += 1
            spans = steps(trace)
            windows = merge(spans.starts[spans.complete], spans.ends[spans.complete])
            another_way = total(subtract(windows, event_intervals(trace, mine)))
            assert int(idle_segments(trace, device).length.sum()) == another_way, name
        if len(np.unique(device_ids(trace)[rows])) == 1:
            found = idle_segments(trace, device)
            in_typical = found.length[step_kinds(trace).typical[found.step]].sum()
            assert total(overview_idle(trace)) == int(in_typical), name
    assert looked_at > 150


@pytest.mark.parametrize(
    ("run", "idle_ms", "window_ms", "shares"),
    [
        ("kineto2021_resnet50_v100_nw0", 462.0, 1065.6, {"data_loading": 76, "operator": 16}),
        ("hta_nccl_data", 509.6, 667.1, {"operator": 78, "annotation": 15, "launch_call": 3}),
        ("tl_h100_owlv2", 644.4, 1211.2, {"data_loading": 96}),
        ("tl_mi300_xdit_sd35", 482.7, 1195.1, {"python": 73, "operator": 15, "launch_latency": 5}),
        ("torchrec_sst_4rank_b", 206.8, 3668.6, {"allocator": 93}),
    ],
)
def test_what_known_runs_wait_for(
    corpus: Path, run: str, idle_ms: float, window_ms: float, shares: dict[str, int]
) -> None:
    trace = real_traces.of_run(corpus, run)
    (device,) = np.unique(device_ids(trace)[rows_of_kind(trace, *DEVICE_KINDS)]).tolist()
    times, found = device_step_times(trace, device), idle_segments(trace, device)
    assert times.idle[times.complete].sum() / 1e6 == pytest.approx(idle_ms, abs=0.05)
    assert times.duration[times.complete].sum() / 1e6 == pytest.approx(window_ms, abs=0.05)
    sums = np.bincount(found.cause, found.length, len(CAUSE_NAMES))
    for cause, percent in shares.items():
        assert 100 * sums[CAUSE_NAMES.index(cause)] / sums.sum() == pytest.approx(percent, abs=0.6), cause
    table = idle_table(trace, device, None, "cause")
    gains = idle_gains(trace, table)
    assert bool(gains.rows) == (replay_unavailable_reason(trace) is None)
    rounding = int(times.complete.sum())  # the mean step is in whole ns
    for row, gain in gains.rows.items():
        whole = gains.causes[int(table.cause[row])]
        assert 0 <= gain <= table.time[row] + rounding, table.subject[row]
        assert gain - rounding <= whole <= sums[table.cause[row]] + rounding, table.subject[row]


@pytest.mark.parametrize(
    ("run", "span", "last_step", "temporal", "stream", "waits"),
    [
        ("kineto2021_resnet50_v100_nw0", 0, False, (327463, 492891, 10140, 830494), 7, (318934, 8529, 0)),
        ("kineto2021_resnet50_v100_nw0", 1, False, (219798, 492770, 9033, 721601), 7, (211365, 8433, 0)),
        ("hta_nccl_data", 0, False, (338781, 75169, 21636, 435586), 7, (357247, 2155, 0)),
        ("hta_trace_diff_control_a100", 0, True, (76007, 281336, 107251, 464594), 7, (133311, 17152, 32751)),
        ("kineto2021_autograd_api_nw4", 0, True, (4718433, 968129, 21368, 5707930), 7, (2630655, 15157, 2135816)),
        ("hta_ns_resolution_v100", 0, False, (10113, 372150, 2371, 384634), 7, (1709, 8404, 0)),
    ],
)
def test_temporal_and_idle_time_breakdown_of_hta(
    corpus: Path,
    run: str,
    span: int,
    last_step: bool,
    temporal: tuple[int, ...],
    stream: int,
    waits: tuple[int, ...],
) -> None:
    """Microseconds; the window is from the first item to the last, without the time of none."""
    trace = real_traces.of_run(corpus, run, span)
    trace = hta.filter_as_hta(trace, last_step)
    (device,) = np.unique(device_ids(trace)[rows_of_kind(trace, *DEVICE_KINDS)]).tolist()
    work = items_by_start(trace, device)
    compute = total(merge(work.start[work.compute], work.end[work.compute]))
    whole = int(work.end.max() - work.start.min())
    busy = total(merge(work.start, work.end))
    found = whole - busy, compute, busy - compute, whole
    assert tuple(ns // 1000 for ns in found) == temporal
    assert idle_time(trace, items_by_start(trace, device, stream)) == waits


def test_hta_gives_the_idle_time_more_where_its_rounding_makes_work_shorter_than_nothing(corpus: Path) -> None:
    """77 memsets and copies last -1 us there, and nothing here; that much less is busy, all else is equal."""
    recorded = real_traces.of_run(corpus, "tl_h100_owlv2")
    below, trace = hta.below_zero(recorded), hta.filter_as_hta(recorded)
    (device,) = np.unique(device_ids(trace)[rows_of_kind(trace, *DEVICE_KINDS)]).tolist()
    work = items_by_start(trace, device)
    assert np.unique(below[work.row], return_counts=True)[1].tolist() == [len(work.row) - 77, 77]
    less = int(below[work.row].sum())
    assert less == 77_000
    compute = total(merge(work.start[work.compute], work.end[work.compute]))
    whole = int(work.end.max() - work.start.min())
    busy = total(merge(work.start, work.end)) - less
    assert [ns // 1000 for ns in (whole - busy, compute, busy - compute, whole)] == [
        516680,
        547123,
        14484,
        1078287,
    ]
    stream = items_by_start(trace, device, 7)
    assert idle_time(trace, stream, below[stream.row]) == (504953, 11727, 0)


def idle_time(trace: Trace, work: ItemsByStart, less: Int64 | int = 0) -> tuple[int, ...]:
    """Return HTA's host wait (launched after the previous work ended), kernel wait (under 30 us) and other, in us.

    less  what ends so many ns earlier there
    """
    end = (work.end - less)[:-1]
    gap = work.start[1:] - end
    called = trace.events.start[work.call[1:]]
    host = (work.call[1:] >= 0) & (called > end)
    kernel = ~host & (gap < 30_000)
    return tuple(int(gap[which].sum()) // 1000 for which in (host, kernel, ~host & ~kernel))


def test_copies_are_no_compute(corpus: Path) -> None:
    trace = real_traces.of_run(corpus, "kineto2021_resnet50_v100_nw0")
    work = items_by_start(trace, 0)
    assert set(np.unique(event_kinds(trace)[work.row[work.compute]]).tolist()) == {Kind.KERNEL}
