"""Counters of the timeline: utilization and SM efficiency of devices, memory, and the counters of the file.

Counters are step functions: a value holds from its sample to the next. Samples of a window are merged below a
pixel so that no peak is lost at any zoom.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.memory_curve import memory_levels
from torch_tb_profiler.analyses.shared.utilization import sm_efficiency_curve
from torch_tb_profiler.analyses.timeline.boxes import Grid
from torch_tb_profiler.analyses.tracks.tracks import tracks
from torch_tb_profiler.base.arrays import distinct_numbers
from torch_tb_profiler.base.intervals import merge
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.model.devices import device_ids, devices
from torch_tb_profiler.model.kinds import Kind, event_spans, rows_of_kind
from torch_tb_profiler.model.memory.events import memory_records
from torch_tb_profiler.model.trace import ABSENT, Float64, Int32, Int64, Trace, name_mask
from torch_tb_profiler.model.trainer import (
    MACHINE_MEMORY,
    MAX_MEMORY_GB,
    MEMORY_FIELDS,
    MachineMetric,
    machine_metric,
)

_DEVICE_COUNTERS = lazy_regex(r"^GPU (\d{1,4}) Counters$")
"""Process under which PyTorch 2.15 writes the counters of a GPU: power, temperature, and clocks."""


class CounterSeries(msgspec.Struct, frozen=True):
    """One counter of the timeline.

    role    "utilization" | "sm_efficiency" | "memory" | "" (a counter of the file)
    group   index into the groups of `tracks`, None if it belongs to none
    unit    "ratio" | "bytes" | "bytes/s" | "/s" | ""
    times   int64[k] ns, ascending, distinct
    values  float64[k]
    """

    role: str
    name: str
    group: int | None
    device: int | None
    unit: str
    times: Int64
    values: Float64

    @property
    def range(self) -> tuple[float, float] | tuple[None, None]:
        """Return the smallest and largest value, or (None, None) if no value is finite."""
        finite = self.values[np.isfinite(self.values)]
        return (float(finite.min()), float(finite.max())) if len(finite) else (None, None)


@derived
def all_series(trace: Trace) -> tuple[CounterSeries, ...]:
    """Return all counters: those of each device, of the allocator, and of the file."""
    return (*_build_device_series(trace), *_build_memory_series(trace), *_build_file_series(trace))


@derived
def first_counter(trace: Trace) -> int:
    """Return the track id of the first counter, which follows those of slice tracks."""
    return len(tracks(trace).tracks)


def counter_id(trace: Trace, index: int) -> int:
    """Return the track id of a counter, by its index in `all_series`."""
    return first_counter(trace) + index


def _build_device_series(trace: Trace) -> list[CounterSeries]:
    kernels = rows_of_kind(trace, Kind.KERNEL)
    owner = device_ids(trace)[kernels]
    blocks = trace.arg_float("blocks per SM", kernels)
    start, end = event_spans(trace, kernels)
    series = []
    for info in devices(trace):
        on_device = owner == info.id
        if not on_device.any():
            continue
        group = _group_of_device(trace, info.id)
        busy = merge(start[on_device], end[on_device])
        edges = np.stack([busy.starts, busy.ends], 1).ravel()
        times, values = _start_at_zero(edges, np.resize([1.0, 0.0], len(edges)))
        series.append(CounterSeries("utilization", "Utilization", group, info.id, "ratio", times, values))
        measured = on_device & (blocks > 0) & (end > start)
        if measured.any():
            times, values = _start_at_zero(
                *_last_of_each_time(*sm_efficiency_curve(start[measured], end[measured], blocks[measured]))
            )
            series.append(
                CounterSeries("sm_efficiency", "SM efficiency, est.", group, info.id, "ratio", times, values)
            )
    return series


def _start_at_zero(times: Int64, values: Float64) -> tuple[Int64, Float64]:
    """Prepend a zero at time 0: a device that hasn't started yet is idle, not unknown."""
    if len(times) and times[0] > 0:
        return np.append(0, times), np.append(0.0, values)
    return times, values


def _last_of_each_time(times: Int64, values: Float64) -> tuple[Int64, Float64]:
    """Keep only the last of several samples at the same time."""
    if len(times) == 0:
        return times, values
    is_last = np.append(times[1:] != times[:-1], True)
    return times[is_last], values[is_last]


def _group_of_device(trace: Trace, device: int) -> int | None:
    for i, group in enumerate(tracks(trace).groups):
        if group.kind == "device" and group.device == device:
            return i
    return None


def _group_of_process(trace: Trace, row: int) -> int | None:
    """Return the group of the process that an event belongs to, if it has one."""
    pid = str(trace.threads[trace.events.thread[row]].pid)
    for i, group in enumerate(tracks(trace).groups):
        if group.kind == "process" and group.pid == pid:
            return i
    return None


def _device_of_counters(trace: Trace, row: int) -> int | None:
    """Return the device whose power, temperature or clock an event samples, by its process; None for others."""
    match = _DEVICE_COUNTERS.match(str(trace.threads[trace.events.thread[row]].pid))
    return int(match[1]) if match else None


def _build_memory_series(trace: Trace) -> list[CounterSeries]:
    """Return allocated and reserved bytes per device, from the `[memory]` instants."""
    series = []
    for level in memory_levels(trace):
        host = level.device.name == "CPU"
        if level.relative:
            continue
        if host:
            first = int(memory_records(trace).rows[level.positions[0]])
            group, suffix = _group_of_process(trace, first), ", CPU"
        else:
            group = _group_of_device(trace, level.device.id)
            # Under HIP_VISIBLE_DEVICES the allocator's numbers are not those of the kernels.
            suffix = "" if group is not None else f", {level.device.name}"
        for values, title in ((level.allocated, "Memory allocated"), (level.reserved, "Memory reserved")):
            known = values != ABSENT
            if known.any() and (not host or values[known].any()):
                samples = _last_of_each_time(level.time[known], values[known].astype(np.float64))
                device = None if host else level.device.id
                series.append(CounterSeries("memory", title + suffix, group, device, "bytes", *samples))
    return series


def _build_file_series(trace: Trace) -> list[CounterSeries]:
    """Return the counters of the "C" events, one per (pid, name, id, argument)."""
    events = trace.events
    rows = np.flatnonzero((events.phase == ord("C")) & (events.start != ABSENT)).astype(np.int32)
    if len(rows) == 0:
        return []
    pids = {pid: i for i, pid in enumerate(dict.fromkeys(thread.pid for thread in trace.threads))}
    process = np.array([pids[thread.pid] for thread in trace.threads])[events.thread[rows]]
    keys = np.stack([process, events.name[rows], events.id[rows]])
    _, counter = np.unique(keys, axis=1, return_inverse=True)
    counter = counter.ravel()
    wrong_scale = _has_wrong_memory_scale(trace, rows)
    series = []
    for argument in trace.args:
        carriers = np.isin(rows, trace.args[argument].rows)
        for i in distinct_numbers(counter[carriers]):
            first = int(rows[np.flatnonzero(counter == i)[0]])
            samples = _read_argument_samples(trace, rows[carriers & (counter == i)], argument)
            name = int(trace.events.name[first])
            if samples is None:
                continue
            largest = float(samples[1].max())
            metric = machine_metric(trace.strings[name], argument, largest, wrong_scale) if name >= 0 else None
            if metric is not None:
                series += _build_machine_series(metric, _group_of_process(trace, first), samples)
            else:
                device = _device_of_counters(trace, first)
                group = _group_of_process(trace, first) if device is None else _group_of_device(trace, device)
                title = _format_counter_title(trace, first, argument, with_pid=group is None)
                unit = "bytes" if "bytes" in title.lower() else ""
                series.append(CounterSeries("", title, group, device, unit, *samples))
    return series


def _has_wrong_memory_scale(trace: Trace, rows: Int32) -> bool:
    """Return whether the file records the machine's memory in the wrong scale."""
    named = name_mask(trace.strings, lambda name: name in MACHINE_MEMORY)[trace.events.name[rows]]
    samples = [trace.arg_float(field, rows[named]) for field in MEMORY_FIELDS if field in trace.args]
    return any(bool((values > MAX_MEMORY_GB).any()) for values in samples)


def _build_machine_series(
    metric: MachineMetric, group: int | None, samples: tuple[Int64, Float64]
) -> list[CounterSeries]:
    """Return the counter of a machine metric; a running total becomes the rate between samples.

    A total that falls was reset to 0 in between.
    """
    times, values = samples[0], samples[1] * metric.scale
    if metric.grows:
        growth = np.diff(values)
        growth = np.where(growth < 0, values[1:], growth)
        times, values = times[:-1], growth / (np.diff(times) / 1e9)
    return [CounterSeries("", metric.title, group, None, metric.unit, times, values)] if len(times) else []


def _format_counter_title(trace: Trace, row: int, argument: str, *, with_pid: bool) -> str:
    """Return the title of an event's counter: its name, id, argument and process, as far as they add anything."""
    name, id = int(trace.events.name[row]), int(trace.events.id[row])
    title = trace.strings[name] if name >= 0 else "counter"
    title += f" {id}" if id != ABSENT else ""
    title += f" · {argument}" if argument not in (title, "value", "") else ""
    return title + (f", {trace.threads[trace.events.thread[row]].pid}" if with_pid else "")


def _read_argument_samples(trace: Trace, rows: Int32, argument: str) -> tuple[Int64, Float64] | None:
    """Return (times, values) of an argument of these events, or None if no value is a number."""
    values = trace.arg_float(argument, rows)
    known = np.isfinite(values)
    if not known.any():
        return None
    times, values = trace.events.start[rows[known]], values[known]
    order = np.argsort(times, kind="stable")
    return _last_of_each_time(times[order], values[order])


class MergedSamples(msgspec.Struct, frozen=True):
    """The samples of a window, merged by bucket.

    time   int64[k]    ns of the first sample in the bucket (the window's begin for the value held there)
    low, high, mean, last  float64[k]: during the bucket; `last` holds until the next entry
    """

    time: Int64
    low: Float64
    high: Float64
    mean: Float64
    last: Float64


def merge_samples(series: CounterSeries, begin: int, end: int, resolution: int) -> MergedSamples:
    """Merge the samples of a counter in [begin, end) into buckets (time // resolution)."""
    first, last = np.searchsorted(series.times, [begin, end], "left").tolist()
    times, values = series.times[first:last], series.values[first:last]
    value_before = series.values[first - 1] if first else np.nan
    if first and (len(times) == 0 or times[0] > begin):
        times, values = np.append(begin, times), np.append(value_before, values)
    if len(times) == 0:
        no_values = np.empty(0)
        return MergedSamples(times, no_values, no_values, no_values, no_values)
    bucket = times // resolution
    firsts = np.flatnonzero(np.append(True, bucket[1:] != bucket[:-1]))
    lasts = np.append(firsts[1:], len(times)) - 1
    low, high = np.minimum.reduceat(values, firsts), np.maximum.reduceat(values, firsts)
    # The value that held before the first sample of a bucket belongs to the bucket as well.
    held = np.append(value_before, values[lasts[:-1]])
    held_for = np.where(np.isnan(held), 0, times[firsts] - bucket[firsts] * resolution)
    low, high = np.where(held_for > 0, np.fmin(low, held), low), np.where(held_for > 0, np.fmax(high, held), high)
    until = np.minimum(np.append(times[1:], np.iinfo(np.int64).max), (bucket + 1) * resolution)
    covered = np.add.reduceat(until - times, firsts) + held_for
    area = np.add.reduceat(values * (until - times), firsts) + np.where(held_for > 0, held, 0) * held_for
    return MergedSamples(times[firsts], low, high, area / covered, values[lasts])


class PackedCounters(msgspec.Struct, frozen=True):
    """Merged samples by counter; columns are little-endian arrays, one entry per bucket with a new value.

    series_first            counter `series_track[i]` holds the entries series_first[i]..series_first[i + 1]
    start                   int32, in units of the grid
    low, high, mean, last   float64
    """

    series_track: list[int]
    series_first: list[int]
    start: bytes
    low: bytes
    high: bytes
    mean: bytes
    last: bytes


def pack_counters(trace: Trace, grid: Grid, tracks: Sequence[int]) -> PackedCounters:
    """Merge and pack the counters among some tracks for a grid."""
    wanted = set(tracks)
    chosen = {
        counter_id(trace, i): merge_samples(series, grid.begin, grid.end, grid.resolution)
        for i, series in enumerate(all_series(trace))
        if counter_id(trace, i) in wanted
    }

    def pack(name: str) -> bytes:
        columns = [np.empty(0), *(getattr(samples, name) for samples in chosen.values())]
        return np.concatenate(columns).astype("<f8").tobytes()

    times = np.concatenate([np.empty(0, np.int64), *(samples.time for samples in chosen.values())])
    return PackedCounters(
        series_track=list(chosen),
        series_first=[0, *np.cumsum([len(samples.time) for samples in chosen.values()]).tolist()],
        start=grid.pack_times(times),
        low=pack("low"),
        high=pack("high"),
        mean=pack("mean"),
        last=pack("last"),
    )
