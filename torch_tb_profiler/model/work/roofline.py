"""Shortest time that each call could take, by the roofline model (Williams, Waterman and Patterson, 2009).

compute = FLOPs / peak of their unit and type      memory = bytes / bandwidth      roofline = the longer of the two
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.base.arrays import distinct_numbers, lowest_by_number
from torch_tb_profiler.base.memo import derived, stored
from torch_tb_profiler.model.communication.events import is_communication_kernel
from torch_tb_profiler.model.devices import describe_device, device_ids, devices
from torch_tb_profiler.model.hardware.peaks import DeviceRates, find_peaks
from torch_tb_profiler.model.kinds import event_spans
from torch_tb_profiler.model.trace import ABSENT, Bool, Float64, Int32, Int64, Trace
from torch_tb_profiler.model.work.operator_work import operator_work
from torch_tb_profiler.model.work.ownership import WorkOwners


class RooflineTimes(msgspec.Struct, frozen=True):
    """Columns over the k calls of `operator_work`; times in ns, NaN is unknown.

    compute, memory   float64[k]  as above; memory is unknown of copies to or from the host
    roofline          float64[k]  the longer of those that are known: a lower bound where one is not
    device            int64[k]    device id, ABSENT if the trace does not contain it
    is_communication  bool[k]     the call has a communication kernel: the roofline does not apply
    idle_before       int64[k]    how long its device had been idle when it began
    peaks             rates of each device with work, by id
    """

    compute: Float64
    memory: Float64
    roofline: Float64
    device: Int64
    is_communication: Bool
    idle_before: Int64
    peaks: dict[int, DeviceRates]


@derived
def roofline_times(trace: Trace, requested: str) -> RooflineTimes:
    """Return the roofline times of all calls; `requested` and UsageError as in `find_peaks`."""
    return _compute_times(trace, device_peaks(trace, requested)) if requested else _default_times(trace)


@stored
def _default_times(trace: Trace) -> RooflineTimes:
    return _compute_times(trace, _default_peaks(trace))


def _compute_times(trace: Trace, peaks: dict[int, DeviceRates]) -> RooflineTimes:
    work = operator_work(trace)
    owners = work.owners
    count = len(owners.calls)
    is_owned = owners.call >= 0
    first = _find_first_events(trace, owners)
    device_of_event = device_ids(trace).take(owners.events)
    device = device_of_event.take(first)
    is_communication = np.zeros(count, np.bool_)
    is_communication[owners.call[is_owned & is_communication_kernel(trace).take(owners.events)]] = True
    rate, bandwidth = np.full(count, np.nan), np.full(count, np.nan)
    for id_, rates in peaks.items():
        on_device = device == id_
        bandwidth[on_device] = np.nan if rates.memory is None else rates.memory
        for matrix in (True, False):
            for code, type_ in enumerate(work.types):
                peak = rates.rate(matrix, type_)
                which = on_device & (work.matrix == matrix) & (work.type == code)
                rate[which] = np.nan if peak is None else peak
    compute = np.where(work.flops == 0, np.where(np.isnan(bandwidth), np.nan, 0.0), 1e9 * work.flops / rate)
    memory = np.where(work.host, np.nan, 1e9 * work.bytes / bandwidth)
    compute, memory = (np.where(is_communication | work.host, np.nan, times) for times in (compute, memory))
    idle = _measure_idle_before_events(trace, owners.events, device_of_event).take(first)
    return RooflineTimes(compute, memory, np.fmax(compute, memory), device, is_communication, idle, peaks)


@derived
def device_peaks(trace: Trace, requested: str) -> dict[int, DeviceRates]:
    """Return device id -> peak rates of every device with work; `requested` as in `find_peaks`."""
    return _find_peaks_of_devices(trace, requested) if requested else _default_peaks(trace)


@stored
def _default_peaks(trace: Trace) -> dict[int, DeviceRates]:
    return _find_peaks_of_devices(trace, "")


def _find_peaks_of_devices(trace: Trace, requested: str) -> dict[int, DeviceRates]:
    return {
        device.id: find_peaks(describe_device(trace, device.id) or device, requested, trace.catalog)
        for device in devices(trace)
    }


def _find_first_events(trace: Trace, owners: WorkOwners) -> Int64:
    """Return int64[k]: the position among all device events of the one of each call that begins first."""
    positions = np.flatnonzero(owners.call >= 0)
    call, start = owners.call.take(positions), trace.events.start.take(owners.events.take(positions))
    at_first = start == lowest_by_number(call, start, len(owners.calls)).take(call)
    first = np.zeros(len(owners.calls), np.int64)
    first[call[at_first]] = positions[at_first]  # the last write wins
    return first


def _measure_idle_before_events(trace: Trace, rows: Int32, device: Int64) -> Int64:
    """Return int64[m] ns: how long the device of each of these events had been idle when it began."""
    start, end = event_spans(trace, rows)
    idle = np.zeros(len(rows), np.int64)
    for id_ in distinct_numbers(device[device != ABSENT]):
        on_device = np.flatnonzero(device == id_)
        on_device = on_device[np.argsort(start[on_device], kind="stable")]
        reach = np.maximum.accumulate(end[on_device])
        idle[on_device[1:]] = np.maximum(start[on_device[1:]] - reach[:-1], 0)
    return idle
