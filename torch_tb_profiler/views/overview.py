"""Overview: how an average step is spent, on what device, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch_tb_profiler.model.health import Note


@dataclass(frozen=True)
class Categories:
    """Time per category, ns; the eight sum to the step. None: not known, see `reasons`."""

    kernel: float | None
    memcpy: float | None
    memset: float | None
    communication: float | None
    runtime: float | None
    dataloader: float | None
    cpu_exec: float | None
    other: float | None


@dataclass(frozen=True)
class Step:
    """One step. `complete` is False where its device work is missing; such steps are in no average."""

    name: str
    start_ns: int
    duration_ns: int
    complete: bool
    categories: Categories


@dataclass(frozen=True)
class Average:
    """Mean over the complete steps, ns (not rounded)."""

    duration_ns: float
    categories: Categories
    steps: int


@dataclass(frozen=True)
class Device:
    """One accelerator with work in this trace. Ratios are 0..1; None is explained in `reasons`."""

    id: int
    kind: str
    name: str | None
    memory_bytes: int | None
    compute_capability: str | None
    multiprocessors: int | None
    streams: int
    utilization: float | None
    sm_efficiency: float | None
    achieved_occupancy: float | None
    tensor_core_ratio: float | None
    reasons: Mapping[str, str]


@dataclass(frozen=True)
class Configuration:
    """What was recorded, and how."""

    workers: int
    device_type: str
    rank: int | None
    world_size: int | None
    backend: str | None
    recorded: Mapping[str, bool]


@dataclass(frozen=True)
class Recommendation:
    """`link` is a view with parameters (`operators?tc=eligible`) that proves the advice, or None.

    `gain_ns` is the most a step can get shorter by following it, None where it cannot be told.
    """

    id: str
    severity: str
    title: str
    text: str
    rule: str
    link: str | None
    gain_ns: float | None


@dataclass(frozen=True)
class Payload:
    trace_start_ns: int
    base_ns: int
    steps: list[Step]
    average: Average | None
    steps_recorded: bool
    devices: list[Device]
    configuration: Configuration
    recommendations: list[Recommendation]
    reasons: Mapping[str, str]
    health: list[Note]
