"""The ranks of the job: clocks, devices, steps."""

from __future__ import annotations

from typing import Literal

import msgspec


class Clock(msgspec.Struct, frozen=True):
    """How a rank's clock was aligned with the job's.

    method       reference: it sets the clock; base_time: by the time of day in the file (`baseTimeNanoseconds`);
                 clock_sync: by the moment at which a trainer let all ranks meet (Composer's `clock_sync`);
                 collective_ends: by the ends of collectives shared with other ranks, on top of the time of day
                 where there is one; none: its times cannot be compared
    offset_ns    by which that moment or the ends of collectives corrected the time of day; null where there was
                 none to correct
    residual_ns  how far the ends of shared collectives still lie apart (median): the error of a comparison; where
                 the rank shares none that end together, what the trainer notes as the error, else null
    collectives  how many shared collectives that is based on
    shift_ns     job time = time in the rank's trace + shift_ns; null with method none
    """

    method: str
    offset_ns: int | None
    residual_ns: int | None
    collectives: int
    shift_ns: int | None


class Rank(msgspec.Struct, frozen=True):
    """One worker of the run.

    reason    why it failed, or why a ready one is left out
    compared  it takes part in the comparison between ranks
    recording_start_ns  job time of its first event: what others did before, it did not record
    calls     its communication operations; null while it is not ready
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
    clock: Clock | None


class DeviceEntry(msgspec.Struct, frozen=True):
    """One accelerator that a process used."""

    id: int
    kind: str
    name: str | None
    memory_bytes: int | None
    compute_capability: str | None


class Process(msgspec.Struct, frozen=True):
    """One process of a node; `name` is its process id where that is known."""

    name: str
    worker: str
    rank: int | None
    devices: list[DeviceEntry]


class Node(msgspec.Struct, frozen=True):
    """One host and its processes."""

    name: str
    processes: list[Process]


class StepTimes(msgspec.Struct, frozen=True):
    """One step of one worker: duration = computation + overlap + exposed + other, to the ns.

    start_ns        in the worker's own trace
    computation_ns  kernels that do not communicate (without a GPU: CPU Exec of the overview) while nothing
                    communicates
    overlap_ns      both at once
    exposed_ns      exposed communication: no computation hides it
    complete        False for a trailing step whose device work is missing; in no average
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


class RankFamily(msgspec.Struct, frozen=True):
    """Device work of one family of kernels on one rank, over its whole trace.

    kind       computation, communication or memory (copies and memsets)
    device_ns  sum of the durations; share: of all device work of the rank, 0..1
    kernel     short name of the kernel (copy, memset) that takes most of it, and its ns
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


class AverageTimes(msgspec.Struct, frozen=True):
    """Mean over the complete steps of one worker (not rounded)."""

    worker: str
    rank: int | None
    steps: int
    duration_ns: float
    computation_ns: float
    overlap_ns: float
    exposed_ns: float
    other_ns: float
