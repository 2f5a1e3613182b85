"""Counters of the timeline as step functions: utilization and SM efficiency of devices, memory, the file's own.

A value holds from its sample to the next. Below a pixel samples are merged into their least, greatest, mean
over time and last value, so that no peak is lost at any zoom.
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.memory_curve import levels
from torch_tb_profiler.analyses.shared.utilization import sm_efficiency
from torch_tb_profiler.analyses.tracks.tracks import tracks
from torch_tb_profiler.base.intervals import merge
from torch_tb_profiler.model.devices import device_of, devices
from torch_tb_profiler.model.kinds import Kind, ends, of_kind
from torch_tb_profiler.model.memory.events import memory_records
from torch_tb_profiler.model.trace import ABSENT, Float64, Int32, Int64, Trace, derived


class Series(msgspec.Struct, frozen=True):
    """One counter.

    role    "utilization" | "sm_efficiency" | "memory" | "" (a counter of the file)
    group   index into the groups of `tracks`, None if it belongs to none
    unit    "ratio" | "bytes" | ""
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


@derived
def all_series(trace: Trace) -> tuple[Series, ...]:
    """Every counter: of each device, of the allocator, of the file."""
    return (*_of_devices(trace), *_of_memory(trace), *_of_file(trace))


def count_counters(trace: Trace) -> int:
    """How many counter events ("C") the file has."""
    return int((trace.events.phase == ord("C")).sum())


def _of_devices(trace: Trace) -> list[Series]:
    kernels = of_kind(trace, Kind.KERNEL)
    owner = device_of(trace)[kernels]
    blocks = trace.arg_float("blocks per SM", kernels)
    start, end = trace.events.start[kernels], ends(trace)[kernels]
    made = []
    for info in devices(trace):
        mine = owner == info.id
        if not mine.any():
            continue
        group = _group_of_device(trace, info.id)
        busy = merge(start[mine], end[mine])
        edges = np.stack([busy.starts, busy.ends], 1).ravel()
        times, values = _from_zero(edges, np.resize([1.0, 0.0], len(edges)))
        made.append(Series("utilization", "Utilization", group, info.id, "ratio", times, values))
        known = mine & (blocks > 0) & (end > start)
        if known.any():
            times, values = _from_zero(*_last(*sm_efficiency(start[known], end[known], blocks[known])))
            made.append(Series("sm_efficiency", "SM efficiency, est.", group, info.id, "ratio", times, values))
    return made


def _from_zero(times: Int64, values: Float64) -> tuple[Int64, Float64]:
    """A device that has not yet begun is idle, not unknown."""
    if len(times) and times[0] > 0:
        return np.append(0, times), np.append(0.0, values)
    return times, values


def _last(times: Int64, values: Float64) -> tuple[Int64, Float64]:
    """Of samples at the same time only the last counts."""
    if len(times) == 0:
        return times, values
    kept = np.append(times[1:] != times[:-1], True)
    return times[kept], values[kept]


def _group_of_device(trace: Trace, device: int) -> int | None:
    for i, group in enumerate(tracks(trace).groups):
        if group.kind == "device" and group.device == device:
            return i
    return None


def _of_memory(trace: Trace) -> list[Series]:
    """Allocated and reserved bytes per device, from the `[memory]` instants."""
    made = []
    for level in levels(trace):
        host = level.device.name == "CPU"
        if level.relative:
            continue
        if host:
            first = int(memory_records(trace).rows[level.positions[0]])
            group, suffix = _group_of_process(trace, first), ", CPU"
        else:
            group = _group_of_device(trace, level.device.id)
            # Under HIP_VISIBLE_DEVICES the allocator's numbers are not those of the kernels.
            suffix = "" if group is not None else f", device {level.device.id}"
        for values, title in ((level.allocated, "Memory allocated"), (level.reserved, "Memory reserved")):
            known = values != ABSENT
            if known.any() and (not host or values[known].any()):
                series = _last(level.time[known], values[known].astype(np.float64))
                place = None if host else level.device.id
                made.append(Series("memory", title + suffix, group, place, "bytes", *series))
    return made


def _group_of_process(trace: Trace, row: int) -> int | None:
    """The group of the process that an event belongs to."""
    pid = str(trace.threads[trace.events.thread[row]].pid)
    for i, group in enumerate(tracks(trace).groups):
        if group.kind == "process" and group.pid == pid:
            return i
    return None


def _of_file(trace: Trace) -> list[Series]:
    """Every series of every "C" event: one per (pid, name, id, argument)."""
    events = trace.events
    rows = np.flatnonzero((events.phase == ord("C")) & (events.start != ABSENT)).astype(np.int32)
    if len(rows) == 0:
        return []
    pids = {pid: i for i, pid in enumerate(dict.fromkeys(thread.pid for thread in trace.threads))}
    process = np.array([pids[thread.pid] for thread in trace.threads])[events.thread[rows]]
    key = np.stack([process, events.name[rows], events.id[rows]])
    distinct, which = np.unique(key, axis=1, return_inverse=True)
    made = []
    for argument in trace.args:
        carriers = np.isin(rows, trace.args[argument].rows)
        for i in np.unique(which.ravel()[carriers]).tolist():
            series = _series_of(trace, rows[carriers & (which.ravel() == i)], argument)
            if series is None:
                continue
            _, name, id = distinct[:, i].tolist()
            first = int(rows[np.flatnonzero(which.ravel() == i)[0]])
            group = _group_of_process(trace, first)
            title = trace.strings[name] if name >= 0 else "counter"
            title += f" {id}" if id != ABSENT else ""
            title += f" · {argument}" if argument not in (title, "value") else ""
            title += f", {trace.threads[trace.events.thread[first]].pid}" if group is None else ""
            made.append(Series("", title, group, None, _unit(title), *series))
    return made


def _unit(name: str) -> str:
    return "bytes" if "bytes" in name.lower() else ""


def _series_of(trace: Trace, rows: Int32, argument: str) -> tuple[Int64, Float64] | None:
    values = trace.arg_float(argument, rows)
    known = np.isfinite(values)
    if not known.any():
        return None
    times, values = trace.events.start[rows[known]], values[known]
    order = np.argsort(times, kind="stable")
    return _last(times[order], values[order])


class Samples(msgspec.Struct, frozen=True):
    """Merged samples of a window, by bucket.

    time   int64[k]    ns of the first sample of the bucket (of the window's begin for what holds before it)
    low, high, mean, last  float64[k]: during the bucket; `last` holds until the next entry
    """

    time: Int64
    low: Float64
    high: Float64
    mean: Float64
    last: Float64


def sample(series: Series, begin: int, end: int, resolution: int) -> Samples:
    """The counter in [begin, end) merged into buckets (time // resolution)."""
    first, last = np.searchsorted(series.times, [begin, end], "left").tolist()
    times, values = series.times[first:last], series.values[first:last]
    before = series.values[first - 1] if first else np.nan
    if first and (len(times) == 0 or times[0] > begin):
        times, values = np.append(begin, times), np.append(before, values)
    if len(times) == 0:
        none = np.empty(0)
        return Samples(times, none, none, none, none)
    bucket = times // resolution
    at = np.flatnonzero(np.append(True, bucket[1:] != bucket[:-1]))
    closing = np.append(at[1:], len(times)) - 1
    low, high = np.minimum.reduceat(values, at), np.maximum.reduceat(values, at)
    # What held before the first sample of a bucket belongs to the bucket as well.
    held = np.append(before if first else np.nan, values[closing[:-1]])
    opening = bucket[at] * resolution
    waited = np.where(np.isnan(held), 0, times[at] - opening)
    low, high = np.where(waited > 0, np.fmin(low, held), low), np.where(waited > 0, np.fmax(high, held), high)
    until = np.minimum(np.append(times[1:], np.iinfo(np.int64).max), (bucket + 1) * resolution)
    covered = np.add.reduceat(until - times, at) + waited
    area = np.add.reduceat(values * (until - times), at) + np.where(waited > 0, held, 0) * waited
    return Samples(times[at], low, high, area / covered, values[closing])
