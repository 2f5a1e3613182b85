"""What the parts of Idle time about launches, queues, copies and sequences answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from torch_tb_profiler.analyses.launches.bandwidth import Direction, HostMemory
from torch_tb_profiler.analyses.launches.calls import LONG_DELAY_NS, SLOW_CALL_NS
from torch_tb_profiler.views._shared.text import Text


class DeviceWorkParams(msgspec.Struct, frozen=True):
    """Device work launched in a step, on a device, on a stream; all of the trace by default."""

    step: str = ""
    device: int | None = None
    stream: int | None = None


class LaunchesParams(DeviceWorkParams, frozen=True):
    """`slow_call_ns`, `long_delay_ns`: from where on a call, and the delay of its work, are outliers."""

    slow_call_ns: Annotated[int, msgspec.Meta(ge=0)] = SLOW_CALL_NS
    long_delay_ns: Annotated[int, msgspec.Meta(ge=0)] = LONG_DELAY_NS


class CurveParams(DeviceWorkParams, frozen=True):
    """`points`: stretches of time of a curve."""

    points: Annotated[int, msgspec.Meta(ge=1, le=2000)] = 300


class LaunchRow(msgspec.Struct, frozen=True):
    """Calls of one API that put work on a device; times in ns.

    event    row of the longest call
    items    kernels, copies and memsets that they launched
    short    calls whose work takes less time than the call, which itself is no outlier
    slow     calls longer than `slow_call_ns`
    delayed  calls whose work starts more than `long_delay_ns` after their end
    """

    event: int
    name: str
    calls: int
    items: int
    call_ns: int
    median_call_ns: float
    work_ns: int
    median_work_ns: float
    delay_ns: int
    median_delay_ns: float
    short: int
    slow: int
    delayed: int


class LaunchesPayload(msgspec.Struct, frozen=True):
    """APIs, the most time in calls first.

    unlinked       work whose launch is not recorded
    blocked_calls  calls that waited for a full queue, `blocked_ns` longer than a median launch
    """

    rows: list[LaunchRow]
    unlinked: int
    blocked_calls: int
    blocked_ns: int
    slow_call_ns: int
    long_delay_ns: int


class QueueRow(msgspec.Struct, frozen=True):
    """The queue of a stream. `curve`: its greatest length in each stretch of `edges`."""

    device: int | None
    stream: int | None
    longest: int
    mean: float | None
    empty_ns: int
    duration_ns: int
    curve: list[int]


class QueuesPayload(msgspec.Struct, frozen=True):
    """Queues, longest first. `edges_ns`: borders of the stretches of all curves."""

    rows: list[QueueRow]
    edges_ns: list[int]


class BandwidthRow(msgspec.Struct, frozen=True):
    """Copies of one direction and kind of host memory.

    time_ns    in which at least one copy of known size runs
    bandwidth  bytes per second in that time
    curve      bytes moved in each stretch of `edges_ns`; they sum to `bytes`
    """

    direction: Direction
    memory: HostMemory | None
    event: int
    copies: int
    sized: int
    bytes: int | None
    time_ns: int
    bandwidth: float | None
    curve: list[int]


class BandwidthPayload(msgspec.Struct, frozen=True):
    """Copies, the most time first."""

    rows: list[BandwidthRow]
    edges_ns: list[int]


class SequenceItem(msgspec.Struct, frozen=True):
    """One item of a sequence in its first run. short_name: of a kernel as the Kernels view has it."""

    event: int
    name: str
    short_name: str
    duration_ns: int


class SequenceRow(msgspec.Struct, frozen=True):
    """Work that repeats in one order.

    around      what launches all of a run: module, operator, annotation or graph; null if nothing does
    time_ns     of all runs; share: of the durations of all work
    fusion_ns   at most what fusing neighboring elementwise kernels saves, over all runs
    capture_ns  at most what capturing it in a graph saves, over all complete steps; null, see `reasons`
    items       of the first run
    """

    runs: int
    length: int
    time_ns: int
    share: float
    around: str | None
    around_event: int | None
    fusion_ns: int
    capture_ns: int | None
    items: list[SequenceItem]


class SequencesPayload(msgspec.Struct, frozen=True):
    """Sequences without common work; together they cover `share` of the device time."""

    rows: list[SequenceRow]
    share: float | None
    time_ns: int
    reasons: Mapping[str, Text]


class SequencesParams(msgspec.Struct, frozen=True):
    """Of a device and stream; all by default."""

    device: int | None = None
    stream: int | None = None
