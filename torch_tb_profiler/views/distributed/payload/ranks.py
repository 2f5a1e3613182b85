"""Payloads about ranks: clocks, devices, steps, kernel families, and how much the ranks differ."""

from __future__ import annotations

from typing import Literal

import msgspec

from torch_tb_profiler.analyses.distributed.steps import SpreadMeasure


class RankClockRow(msgspec.Struct, frozen=True):
    """How a rank's clock was aligned with the job's.

    method       reference: this rank sets the clock; base_time: by the time of day in the file
                 (`baseTimeNanoseconds`); clock_sync: by a barrier of the trainer (Composer's `clock_sync`);
                 collective_ends: by the ends of collectives shared with other ranks, on top of the time of day
                 if there is one; none: its times can't be compared
    offset_ns    correction of the time of day by that barrier or those ends; null if there was none to correct
    residual_ns  error of a comparison: how far the ends of shared collectives still lie apart (median). If the
                 rank shares none that end together, the error that the trainer notes, else null
    collectives  number of shared collectives that this is based on
    shift_ns     job time = time in the rank's trace + shift_ns; null with method none
    """

    method: str
    offset_ns: int | None
    residual_ns: int | None
    collectives: int
    shift_ns: int | None


class RankEntry(msgspec.Struct, frozen=True):
    """One worker of the run.

    reason    why it failed, or why a ready one is left out
    compared  it takes part in the comparison between ranks
    calls     its communication operations; null while it isn't ready
    recording_start_ns  job time of its first event; nothing before that is recorded
    """

    worker: str
    rank: int | None
    span: str
    state: Literal["waiting", "loading", "ready", "failed"]
    reason: str | None
    compared: bool
    backend: str | None
    world_size: int | None
    calls: int | None
    recording_start_ns: int | None
    recording_duration_ns: int | None
    clock: RankClockRow | None


class RankDevice(msgspec.Struct, frozen=True):
    """An accelerator used by a process."""

    id: int
    kind: str
    name: str | None
    memory_bytes: int | None
    compute_capability: str | None


class NodeProcess(msgspec.Struct, frozen=True):
    """A process of a node; `name` is its process id if that is known."""

    name: str
    worker: str
    rank: int | None
    devices: list[RankDevice]


class JobNode(msgspec.Struct, frozen=True):
    """A host and its processes."""

    name: str
    processes: list[NodeProcess]


class RankStepTimes(msgspec.Struct, frozen=True):
    """One step of one worker: duration = computation + overlap + exposed + other, to the ns.

    start_ns        in the worker's own trace
    computation_ns  compute kernels (without a GPU: CPU Exec of the overview) while nothing communicates
    overlap_ns      computation and communication at once
    exposed_ns      exposed communication: not overlapped with computation
    complete        False for a trailing step whose device work is missing; averages leave it out
    """

    worker: str
    rank: int | None
    step: str
    start_ns: int
    complete: bool
    duration_ns: int
    computation_ns: int
    overlap_ns: int
    exposed_ns: int
    other_ns: int


class AverageStepTimes(msgspec.Struct, frozen=True):
    """Mean over the typical steps of one worker (not rounded)."""

    worker: str
    rank: int | None
    steps: int
    duration_ns: float
    computation_ns: float
    overlap_ns: float
    exposed_ns: float
    other_ns: float


class RankFamily(msgspec.Struct, frozen=True):
    """Device work of one kernel family on one rank, over its entire trace.

    kind       computation, communication or memory (copies and memsets)
    device_ns  sum of the durations; share: of all device work of the rank, 0..1
    kernel     short name of the kernel (copy, memset) with the most time, and its ns
    """

    worker: str
    rank: int | None
    family: str
    kind: Literal["computation", "communication", "memory"]
    calls: int
    device_ns: int
    share: float
    kernel: str
    kernel_ns: int


class RankSpreadRow(msgspec.Struct, frozen=True):
    """One measure over all ranks that have it, ns per step; percentiles interpolate between the nearest ranks.

    measure  as in `JobRank`: duration, computation, overlap, exposed, other, transfer, waiting, cost
    least_worker, most_worker  the first rank with the minimum and with the maximum
    """

    measure: SpreadMeasure
    ranks: int
    mean_ns: float
    least_ns: float
    p10_ns: float
    median_ns: float
    p90_ns: float
    p99_ns: float
    most_ns: float
    least_worker: str
    most_worker: str
