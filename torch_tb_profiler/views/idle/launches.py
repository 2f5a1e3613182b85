"""How work gets to the device: launch calls, queues, copies, and sequences of work, as panels of Idle time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from torch_tb_profiler.analyses.launches.bandwidth import (
    Direction,
    HostMemory,
    bytes_between,
    copy_groups,
    time_bucket_edges,
)
from torch_tb_profiler.analyses.launches.calls import LONG_DELAY_NS, MIN_SLOW_CALL_NS, api_calls, launch_calls
from torch_tb_profiler.analyses.launches.queue import blocked_launches, max_lengths_between, stream_queues
from torch_tb_profiler.analyses.launches.sequences import common_slice, graph_capture_savings, work_sequences
from torch_tb_profiler.analyses.schedule.what_if import replay_unavailable_reason
from torch_tb_profiler.analyses.shared.grouping import select_device_work
from torch_tb_profiler.analyses.tracks.sources import name_of
from torch_tb_profiler.model.kernels.short_names import display_name
from torch_tb_profiler.model.kinds import DEVICE_KINDS, event_ends, rows_of_kind
from torch_tb_profiler.model.trace import Int32, Trace
from torch_tb_profiler.view import TraceView
from torch_tb_profiler.views._shared.text import Text, reason_texts
from torch_tb_profiler.views.idle.words import graph_capture_unavailable

MAX_STREAMS = 16
"""Most streams whose curve is sent: those with the longest queues."""

MAX_ITEMS = 256
"""Most items of a sequence that are sent."""


class DeviceWorkParams(msgspec.Struct, frozen=True):
    """Device work launched in a step, on a device, on a stream; all of the trace by default."""

    step: str = ""
    device: int | None = None
    stream: int | None = None


class LaunchesParams(DeviceWorkParams, frozen=True):
    """`slow_call_ns`, `long_delay_ns`: a longer call, or a longer delay of its work, is an outlier."""

    slow_call_ns: Annotated[int, msgspec.Meta(ge=0)] = MIN_SLOW_CALL_NS
    long_delay_ns: Annotated[int, msgspec.Meta(ge=0)] = LONG_DELAY_NS


class DeviceWorkCurveParams(DeviceWorkParams, frozen=True):
    """`points`: number of buckets of a curve."""

    points: Annotated[int, msgspec.Meta(ge=1, le=2000)] = 300


class SequencesParams(msgspec.Struct, frozen=True):
    """A device and stream; all by default."""

    device: int | None = None
    stream: int | None = None


class LaunchRow(msgspec.Struct, frozen=True):
    """Calls of one API that put work on a device; times in ns.

    event    row of the longest call
    items    number of kernels, copies and memsets that they launched
    short    calls whose work is shorter than the call, without slow calls
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
    """Launch APIs, largest time in calls first.

    unlinked       number of items without a recorded launch
    blocked_calls  calls that waited for a full queue, `blocked_ns` longer than a typical launch
    """

    rows: list[LaunchRow]
    unlinked: int
    blocked_calls: int
    blocked_ns: int
    slow_call_ns: int
    long_delay_ns: int


class QueueRow(msgspec.Struct, frozen=True):
    """The queue of a stream. `curve`: its largest length in each bucket."""

    device: int | None
    stream: int | None
    longest: int
    mean: float | None
    empty_ns: int
    duration_ns: int
    curve: list[int]


class QueuesPayload(msgspec.Struct, frozen=True):
    """Queues, longest first. `edges_ns`: edges of the buckets of all curves."""

    rows: list[QueueRow]
    edges_ns: list[int]


class BandwidthRow(msgspec.Struct, frozen=True):
    """Copies of one direction and kind of host memory.

    time_ns    in which at least one copy of known size runs
    bandwidth  bytes per second in that time
    curve      bytes moved in each bucket; they sum to `bytes`
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
    """Copies, largest time first. `edges_ns`: edges of the buckets of all curves."""

    rows: list[BandwidthRow]
    edges_ns: list[int]


class SequenceItem(msgspec.Struct, frozen=True):
    """One item of a sequence in its first run. `short_name`: the short name of a kernel, else the name."""

    event: int
    name: str
    short_name: str
    duration_ns: int


class SequenceRow(msgspec.Struct, frozen=True):
    """Work that repeats in one order.

    around      what launches a whole run: a module, operator, annotation or graph; null if nothing does
    time_ns     of all runs; share: of the duration of all work
    fusion_ns   estimate of what fusing neighboring elementwise kernels saves, over all runs
    capture_ns  upper bound of what capturing it in a graph saves, over all complete steps; null, see `reasons`
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


def build_launches(trace: Trace, params: LaunchesParams) -> LaunchesPayload:
    """Build the table of launch APIs."""
    work = _device_work(trace, params)
    calls = launch_calls(trace, work)
    table = api_calls(trace, calls, params.slow_call_ns, params.long_delay_ns)
    blocked, blocked_ns = blocked_launches(trace, work)
    columns = (
        table.event.tolist(),
        [name_of(trace, row) for row in table.event.tolist()],
        table.calls.tolist(),
        table.items.tolist(),
        table.call_ns.tolist(),
        table.median_call.tolist(),
        table.work_ns.tolist(),
        table.median_work.tolist(),
        table.delay_ns.tolist(),
        table.median_delay.tolist(),
        table.short.tolist(),
        table.slow.tolist(),
        table.delayed.tolist(),
    )
    rows = [LaunchRow(*row) for row in zip(*columns, strict=True)]
    unlinked = len(work) - int(calls.items.sum())
    return LaunchesPayload(rows, unlinked, blocked, blocked_ns, params.slow_call_ns, params.long_delay_ns)


def build_queues(trace: Trace, params: DeviceWorkCurveParams) -> QueuesPayload:
    """Build the curves of the longest queues."""
    queues = stream_queues(trace, _device_work(trace, params))
    edges = time_bucket_edges([queue.times for queue in queues], params.points)
    rows = [
        QueueRow(
            queue.device,
            queue.stream,
            queue.longest,
            queue.mean,
            queue.empty_ns,
            queue.duration_ns,
            max_lengths_between(queue, edges).tolist(),
        )
        for queue in sorted(queues, key=lambda queue: -queue.longest)
    ]
    return QueuesPayload(rows[:MAX_STREAMS], edges.tolist())


def build_bandwidth(trace: Trace, params: DeviceWorkCurveParams) -> BandwidthPayload:
    """Build the table of copies by direction, with their curves."""
    work = _device_work(trace, params)
    edges = time_bucket_edges([trace.events.start[work], event_ends(trace)[work]], params.points)
    rows = []
    for copies in copy_groups(trace, work):
        curve = bytes_between(trace, copies.rows, edges).tolist() if copies.bytes is not None else []
        rows.append(
            BandwidthRow(
                copies.direction,
                copies.memory,
                int(copies.rows[0]),
                len(copies.rows),
                copies.sized,
                copies.bytes,
                copies.time_ns,
                copies.bandwidth,
                curve,
            )
        )
    return BandwidthPayload(rows, edges.tolist())


def build_sequences(trace: Trace, params: SequencesParams) -> SequencesPayload:
    """Build the sequences of work that repeat, and what capturing or fusing them saves."""
    found = work_sequences(trace, params.device, params.stream)
    capture_savings = graph_capture_savings(trace, found.sequences)
    rows = []
    for number, sequence in enumerate(found.sequences):
        around = common_slice(trace, sequence.rows[0])
        first_run = sequence.rows[0].tolist()
        rows.append(
            SequenceRow(
                runs=sequence.runs,
                length=sequence.length,
                time_ns=sequence.time_ns,
                share=sequence.time_ns / found.time_ns if found.time_ns else 0.0,
                around=name_of(trace, around) if around >= 0 else None,
                around_event=around if around >= 0 else None,
                fusion_ns=sequence.fusion_ns,
                capture_ns=None if capture_savings is None else capture_savings[number],
                items=[_item(trace, row) for row in first_run[:MAX_ITEMS]],
            )
        )
    share = found.covered_ns / found.time_ns if found.time_ns else None
    reason = replay_unavailable_reason(trace)
    reasons = {"capture_ns": graph_capture_unavailable(reason)} if rows and reason is not None else {}
    return SequencesPayload(rows, share, found.time_ns, reason_texts(reasons))


def _device_work(trace: Trace, params: DeviceWorkParams) -> Int32:
    return select_device_work(trace, rows_of_kind(trace, *DEVICE_KINDS), params.step, params.device, params.stream)


def _item(trace: Trace, row: int) -> SequenceItem:
    name = name_of(trace, row)
    return SequenceItem(row, name, display_name(trace, row, name), max(int(trace.events.duration[row]), 0))


LAUNCH_VIEWS = (
    TraceView(
        "idle/launches",
        "Launches",
        LaunchesParams,
        LaunchesPayload,
        build_launches,
        answers="Which calls launch work, how long they take, and how long the work waits.",
    ),
    TraceView(
        "idle/queue",
        "Queue length",
        DeviceWorkCurveParams,
        QueuesPayload,
        build_queues,
        answers="How many launches wait in the queue of each stream.",
    ),
    TraceView(
        "idle/bandwidth",
        "Bandwidth",
        DeviceWorkCurveParams,
        BandwidthPayload,
        build_bandwidth,
        answers="How fast copies are, by direction.",
    ),
    TraceView(
        "idle/sequences",
        "Sequences",
        SequencesParams,
        SequencesPayload,
        build_sequences,
        answers="Sequences of device work that repeat, and what capturing them in a graph saves at most.",
    ),
)
