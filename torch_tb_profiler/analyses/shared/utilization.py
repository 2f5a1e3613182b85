"""How well each device is used during the typical steps, estimated from what the driver records per kernel."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.typical_steps import typical_windows
from torch_tb_profiler.base.arrays import distinct_numbers
from torch_tb_profiler.base.format import format_ratio
from torch_tb_profiler.base.intervals import Intervals, covered_time, covered_time_between, intersect, total, union
from torch_tb_profiler.base.memo import stored
from torch_tb_profiler.model.calls.missing import missing_kernels_reason
from torch_tb_profiler.model.communication.events import is_communication_kernel
from torch_tb_profiler.model.devices import DeviceInfo, device_ids, devices, stream_ids
from torch_tb_profiler.model.engines import call_durations, deduplicate_executions
from torch_tb_profiler.model.kernels.tensor_cores import TC_NO, TC_UNKNOWN, TC_YES, uses_tensor_cores
from torch_tb_profiler.model.kinds import (
    DEVICE_KINDS,
    Kind,
    event_intervals,
    event_kinds,
    event_spans,
    rows_of_kind,
)
from torch_tb_profiler.model.steps import Steps, step_noun
from torch_tb_profiler.model.trace import ABSENT, Float64, Int32, Int64, Trace


class CoreTime(msgspec.Struct, frozen=True):
    """Kernel time in ns on Tensor (matrix) cores, off them, and of kernels whose names don't say."""

    used: int
    not_used: int
    unknown: int

    @property
    def total(self) -> int:
        return self.used + self.not_used + self.unknown

    @property
    def ratio(self) -> float | None:
        """Return the share known to run on them, at least; None if no kernel takes time or no name says."""
        return self.used / self.total if self.used + self.not_used > 0 else None


def core_time(trace: Trace, rows: Int32) -> CoreTime:
    """Sum the durations of kernels by where they ran."""
    length, uses = call_durations(trace, rows), uses_tensor_cores(trace)[rows]
    return CoreTime(*(int(length[uses == verdict].sum()) for verdict in (TC_YES, TC_NO, TC_UNKNOWN)))


class DeviceUtilization(msgspec.Struct, frozen=True):
    """One device in the typical steps.

    utilization         share of them with at least one kernel running; the device is busy with copies, too
    computing           the part of it in which a kernel runs that doesn't communicate; the rest is exposed
                        communication: data that moves, or waiting for other ranks
    sm_efficiency       mean over them of min(1, sum of `blocks per SM` of the running kernels)
    achieved_occupancy  mean of `est. achieved occupancy %` / 100 weighted by time in them
    cores               kernel time on Tensor Cores, over all kernels of the device, in and outside of steps
    tensor_core_ratio   the share of it on Tensor Cores, at least
    unknown             field -> why it is None, how it is uncertain, or what it doesn't count
    """

    device: DeviceInfo
    streams: int
    utilization: float | None
    computing: float | None
    sm_efficiency: float | None
    achieved_occupancy: float | None
    cores: CoreTime
    tensor_core_ratio: float | None
    unknown: Mapping[str, str]


@stored
def utilizations(trace: Trace) -> tuple[DeviceUtilization, ...]:
    """Compute the utilization of each device with work."""
    return tuple(_measure_device(trace, device) for device in devices(trace))


def complete_steps_window(spans: Steps) -> tuple[int, int]:
    """Return (start, end) in ns from the first to the last complete step; (0, 0) without steps."""
    complete = np.flatnonzero(spans.complete)
    return (int(spans.starts[complete[0]]), int(spans.ends[complete[-1]])) if len(complete) else (0, 0)


def _measure_device(trace: Trace, device: DeviceInfo) -> DeviceUtilization:
    during = typical_windows(trace)
    length = total(during)
    all_work = rows_of_kind(trace, *DEVICE_KINDS)
    mine = all_work[device_ids(trace)[all_work] == device.id]
    streams = stream_ids(trace)[mine]
    is_kernel = event_kinds(trace).take(mine) == Kind.KERNEL
    kernels = mine[is_kernel]
    start, finish = event_spans(trace, kernels)
    unknown: dict[str, str] = {}
    used = computing = None
    if (reason := missing_kernels_reason(trace)) is not None:
        unknown["utilization"] = unknown["computing"] = reason
    elif length:
        communicates = is_communication_kernel(trace).take(kernels)
        computes = event_intervals(trace, kernels[~communicates])
        works = union(computes, event_intervals(trace, kernels[communicates]))
        moves = union(works, event_intervals(trace, mine[~is_kernel]))
        used, computing, busy = (total(intersect(each, during)) / length for each in (works, computes, moves))
        if format_ratio(busy) != format_ratio(used):
            unknown["utilization"] = (
                f"it counts kernels only: with copies and memsets the device is busy for {format_ratio(busy)} of "
                "the same time"
            )
    else:
        unknown["utilization"] = unknown["computing"] = f"there is no {step_noun(trace)} to measure against"
    weight = covered_time(during, start, finish)
    blocks = _mean_sm_efficiency(start, finish, trace.arg_float("blocks per SM", kernels), weight, during)
    if blocks is None:
        unknown["sm_efficiency"] = "the trace has no `blocks per SM` for these kernels"
    occupancy = _average_occupancy(trace.arg_float("est. achieved occupancy %", kernels), weight)
    if occupancy is None:
        unknown["achieved_occupancy"] = "the trace has no `est. achieved occupancy %` for these kernels"
    cores = core_time(trace, deduplicate_executions(trace, kernels))
    if cores.ratio is None:
        unknown["tensor_core_ratio"] = (
            "kernel names don't show the use of Tensor Cores" if cores.unknown else "no kernel takes time"
        )
    elif cores.unknown:
        share = format_ratio(cores.unknown / cores.total)
        unknown["tensor_core_ratio"] = f"at least: for {share} of the kernel time the names don't show it"
    return DeviceUtilization(
        device=device,
        streams=len(distinct_numbers(streams[streams != ABSENT])),
        utilization=used,
        computing=computing,
        sm_efficiency=blocks,
        achieved_occupancy=occupancy,
        cores=cores,
        tensor_core_ratio=cores.ratio,
        unknown=unknown,
    )


def _mean_sm_efficiency(
    start: Int64, finish: Int64, blocks: Float64, weight: Int64, during: Intervals
) -> float | None:
    """Return the mean of min(1, sum of blocks per SM) over these times, None if none is recorded.

    weight  int64[k]  how much of each kernel lies in them
    """
    counted = (blocks > 0) & (weight > 0)
    if not counted.any():
        return None
    times, values = sm_efficiency_curve(start[counted], finish[counted], np.minimum(blocks[counted], 1e9))
    return float((values[:-1] * covered_time_between(during, times)).sum() / total(during))


def sm_efficiency_curve(start: Int64, end: Int64, blocks: Float64) -> tuple[Int64, Float64]:
    """Return (int64[2k] ns, float64[2k]) of min(1, sum of `blocks per SM` of the running kernels) from then on."""
    times = np.concatenate([start, end])
    order = np.argsort(times, kind="stable")
    change = np.concatenate([blocks, -blocks])[order]
    running = np.cumsum(np.where(order < len(start), np.int32(1), np.int32(-1)), dtype=np.int32)
    # Sums of floats leave a remainder where nothing runs.
    return times[order], np.where(running > 0, np.clip(np.cumsum(change), 0, 1), 0.0)


def _average_occupancy(percent: Float64, weight: Int64) -> float | None:
    counted = (percent >= 0) & (weight > 0)
    if not counted.any():
        return None
    return float((percent[counted] * weight[counted]).sum() / weight[counted].sum() / 100)
