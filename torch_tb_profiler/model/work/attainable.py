"""The least time that each call could take, by the roofline (Williams, Waterman and Patterson, 2009).

compute = FLOPs / peak of their unit and type      memory = bytes / bandwidth      roof = the longer of the two
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.communication.events import communication_kernels
from torch_tb_profiler.model.devices import describe_device, device_ids, devices
from torch_tb_profiler.model.hardware.peaks import DeviceRates, find_peaks
from torch_tb_profiler.model.kinds import event_ends
from torch_tb_profiler.model.trace import ABSENT, Bool, Float64, Int64, Trace
from torch_tb_profiler.model.work.calls import work


class Attainable(msgspec.Struct, frozen=True):
    """Columns over the k calls of `work`; times in ns, NaN is unknown.

    compute, memory  float64[k]  as above; memory is unknown of copies to or from the host
    roof             float64[k]  the longer of those that are known: a lower bound where one is not
    device           int64[k]    device id, ABSENT if the trace does not say
    communicates     bool[k]     a communication kernel: neither roof applies
    idle             int64[k]    how long its device had idled when it began
    peaks            of each device with work, by id
    """

    compute: Float64
    memory: Float64
    roof: Float64
    device: Int64
    communicates: Bool
    idle: Int64
    peaks: dict[int, DeviceRates]


@derived
def attainable(trace: Trace, given: str) -> Attainable:
    """`given`: as `find_peaks` takes it. Raises UsageError if it is neither a device nor figures."""
    done = work(trace)
    own = done.owners
    count = len(own.calls)
    owned = own.call >= 0
    first = _first_events(trace, own.events[owned], own.call[owned], count)
    device = device_ids(trace)[first]
    peaks = device_peaks(trace, given)
    communicates = np.zeros(count, np.bool_)
    communicates[own.call[owned][communication_kernels(trace)[own.events[owned]]]] = True
    rate, bandwidth = np.full(count, np.nan), np.full(count, np.nan)
    for id_, each in peaks.items():
        mine = device == id_
        bandwidth[mine] = np.nan if each.memory is None else each.memory
        for matrix in (True, False):
            for code, kind in enumerate(done.types):
                known = each.rate(matrix, kind)
                rate[mine & (done.matrix == matrix) & (done.type == code)] = np.nan if known is None else known
    compute = np.where(done.flops == 0, np.where(np.isnan(bandwidth), np.nan, 0.0), 1e9 * done.flops / rate)
    memory = np.where(done.host, np.nan, 1e9 * done.bytes / bandwidth)
    compute, memory = (np.where(communicates | done.host, np.nan, times) for times in (compute, memory))
    roof = np.fmax(compute, memory)
    return Attainable(compute, memory, roof, device, communicates, _idle(trace)[first], peaks)


@derived
def device_peaks(trace: Trace, given: str) -> dict[int, DeviceRates]:
    """Device id -> its peaks, of every device with work."""
    peaks = {}
    for worked in devices(trace):
        peaks[worked.id] = find_peaks(describe_device(trace, worked.id) or worked, given, trace.catalog)
    return peaks


def _first_events(trace: Trace, rows: np.ndarray, call: np.ndarray, count: int) -> Int64:
    """int64[k]: the device event of each call that begins first."""
    order = np.lexsort((-trace.events.start[rows], call))
    first = np.zeros(count, np.int64)
    first[call[order]] = rows[order]  # the last write wins
    return first


def _idle(trace: Trace) -> Int64:
    """int64[n]: of device events how long their device had done nothing when they began, 0 elsewhere."""
    rows = work(trace).owners.events
    device, start, end = device_ids(trace)[rows], trace.events.start[rows], event_ends(trace)[rows]
    idle = np.zeros(len(trace), np.int64)
    for id_ in np.unique(device[device != ABSENT]).tolist():
        mine = np.flatnonzero(device == id_)
        mine = mine[np.argsort(start[mine], kind="stable")]
        reach = np.maximum.accumulate(end[mine])
        idle[rows[mine[1:]]] = np.maximum(start[mine[1:]] - reach[:-1], 0)
    return idle
