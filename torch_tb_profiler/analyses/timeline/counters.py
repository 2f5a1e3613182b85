"""Counters of the timeline as step functions: utilization and SM efficiency of devices, memory, the file's own.

A value holds from its sample to the next.
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.memory_curve import levels
from torch_tb_profiler.analyses.shared.utilization import sm_efficiency
from torch_tb_profiler.analyses.tracks.tracks import tracks
from torch_tb_profiler.base.intervals import merge
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.devices import device_ids, devices
from torch_tb_profiler.model.kinds import Kind, event_ends, rows_of_kind
from torch_tb_profiler.model.memory.events import memory_records
from torch_tb_profiler.model.trace import ABSENT, Float64, Int32, Int64, Trace, name_mask
from torch_tb_profiler.model.trainer import (
    MACHINE_MEMORY,
    MAX_MEMORY_GB,
    MEMORY_FIELDS,
    MachineMetric,
    machine_metric,
)


class Series(msgspec.Struct, frozen=True):
    """One counter.

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
        """Least and greatest value; (None, None) if no value is finite."""
        finite = self.values[np.isfinite(self.values)]
        return (float(finite.min()), float(finite.max())) if len(finite) else (None, None)


@derived
def all_series(trace: Trace) -> tuple[Series, ...]:
    """All counters: of each device, of the allocator, of the file."""
    return (*_of_devices(trace), *_of_memory(trace), *_of_file(trace))


@derived
def first_counter(trace: Trace) -> int:
    """Track id of the first counter: tracks of slices come before."""
    return len(tracks(trace).tracks)


def counter_id(trace: Trace, index: int) -> int:
    """Track id of a counter, by its index in `all_series`."""
    return first_counter(trace) + index


def _of_devices(trace: Trace) -> list[Series]:
    kernels = rows_of_kind(trace, Kind.KERNEL)
    owner = device_ids(trace)[kernels]
    blocks = trace.arg_float("blocks per SM", kernels)
    start, end = trace.events.start[kernels], event_ends(trace)[kernels]
    series = []
    for info in devices(trace):
        mine = owner == info.id
        if not mine.any():
            continue
        group = _group_of_device(trace, info.id)
        busy = merge(start[mine], end[mine])
        edges = np.stack([busy.starts, busy.ends], 1).ravel()
        times, values = _from_zero(edges, np.resize([1.0, 0.0], len(edges)))
        series.append(Series("utilization", "Utilization", group, info.id, "ratio", times, values))
        known = mine & (blocks > 0) & (end > start)
        if known.any():
            times, values = _from_zero(*_last(*sm_efficiency(start[known], end[known], blocks[known])))
            series.append(Series("sm_efficiency", "SM efficiency, est.", group, info.id, "ratio", times, values))
    return series


def _from_zero(times: Int64, values: Float64) -> tuple[Int64, Float64]:
    """A device that has not begun yet is idle, not unknown."""
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


def _group_of_process(trace: Trace, row: int) -> int | None:
    """The group of the process that an event belongs to."""
    pid = str(trace.threads[trace.events.thread[row]].pid)
    for i, group in enumerate(tracks(trace).groups):
        if group.kind == "process" and group.pid == pid:
            return i
    return None


def _of_memory(trace: Trace) -> list[Series]:
    """Allocated and reserved bytes per device, from the `[memory]` instants."""
    series = []
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
            suffix = "" if group is not None else f", {level.device.name}"
        for values, title in ((level.allocated, "Memory allocated"), (level.reserved, "Memory reserved")):
            known = values != ABSENT
            if known.any() and (not host or values[known].any()):
                samples = _last(level.time[known], values[known].astype(np.float64))
                device = None if host else level.device.id
                series.append(Series("memory", title + suffix, group, device, "bytes", *samples))
    return series


def _of_file(trace: Trace) -> list[Series]:
    """The counters of the "C" events: one per (pid, name, id, argument)."""
    events = trace.events
    rows = np.flatnonzero((events.phase == ord("C")) & (events.start != ABSENT)).astype(np.int32)
    if len(rows) == 0:
        return []
    pids = {pid: i for i, pid in enumerate(dict.fromkeys(thread.pid for thread in trace.threads))}
    process = np.array([pids[thread.pid] for thread in trace.threads])[events.thread[rows]]
    keys = np.stack([process, events.name[rows], events.id[rows]])
    _, counter = np.unique(keys, axis=1, return_inverse=True)
    counter = counter.ravel()
    misnamed = _misnamed(trace, rows)
    series = []
    for argument in trace.args:
        carriers = np.isin(rows, trace.args[argument].rows)
        for i in np.unique(counter[carriers]).tolist():
            first = int(rows[np.flatnonzero(counter == i)[0]])
            samples = _samples_of(trace, rows[carriers & (counter == i)], argument)
            name = int(trace.events.name[first])
            if samples is None:
                continue
            largest = float(samples[1].max())
            known = machine_metric(trace.strings[name], argument, largest, misnamed) if name >= 0 else None
            if known is not None:
                series += _of_machine(known, _group_of_process(trace, first), samples)
            else:
                group = _group_of_process(trace, first)
                title = _title(trace, first, argument, with_pid=group is None)
                unit = "bytes" if "bytes" in title.lower() else ""
                series.append(Series("", title, group, None, unit, *samples))
    return series


def _misnamed(trace: Trace, rows: Int32) -> bool:
    """Whether the memory of the machine is in the wrong scale, which is one for the whole file."""
    named = name_mask(trace.strings, lambda name: name in MACHINE_MEMORY)[trace.events.name[rows]]
    samples = [trace.arg_float(field, rows[named]) for field in MEMORY_FIELDS if field in trace.args]
    return any(bool((values > MAX_MEMORY_GB).any()) for values in samples)


def _of_machine(known: MachineMetric, group: int | None, samples: tuple[Int64, Float64]) -> list[Series]:
    """A sample of the machine; what only grows as a rate, from one sample to the next.

    A count that falls has begun again from 0 since.
    """
    times, values = samples[0], samples[1] * known.scale
    if known.grows:
        growth = np.diff(values)
        growth = np.where(growth < 0, values[1:], growth)
        times, values = times[:-1], growth / (np.diff(times) / 1e9)
    return [Series("", known.title, group, None, known.unit, times, values)] if len(times) else []


def _title(trace: Trace, row: int, argument: str, *, with_pid: bool) -> str:
    """Name, id, argument and process of the counter that an event is a sample of, as far as they say anything."""
    name, id = int(trace.events.name[row]), int(trace.events.id[row])
    title = trace.strings[name] if name >= 0 else "counter"
    title += f" {id}" if id != ABSENT else ""
    title += f" · {argument}" if argument not in (title, "value", "") else ""
    return title + (f", {trace.threads[trace.events.thread[row]].pid}" if with_pid else "")


def _samples_of(trace: Trace, rows: Int32, argument: str) -> tuple[Int64, Float64] | None:
    """(times, values) of an argument of these events, None if none of its values is a number."""
    values = trace.arg_float(argument, rows)
    known = np.isfinite(values)
    if not known.any():
        return None
    times, values = trace.events.start[rows[known]], values[known]
    order = np.argsort(times, kind="stable")
    return _last(times[order], values[order])
