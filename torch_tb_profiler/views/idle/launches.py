"""How work gets to the device: what the panels below the causes answer."""

from __future__ import annotations

from torch_tb_profiler.analyses.launches.bandwidth import bucket_edges, bytes_between, copy_groups
from torch_tb_profiler.analyses.launches.calls import api_calls, launch_calls
from torch_tb_profiler.analyses.launches.queue import blocked_launches, max_lengths_between, stream_queues
from torch_tb_profiler.analyses.launches.sequences import common_slice, graph_capture_savings, work_sequences
from torch_tb_profiler.analyses.schedule.what_if import replay_unavailable_reason
from torch_tb_profiler.analyses.shared.device_work import chosen_work
from torch_tb_profiler.analyses.tracks.sources import name_of
from torch_tb_profiler.model.kernels.short_names import display_name
from torch_tb_profiler.model.kinds import DEVICE_KINDS, event_ends, rows_of_kind
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import TraceView
from torch_tb_profiler.views._shared.text import reason_texts
from torch_tb_profiler.views.idle import words
from torch_tb_profiler.views.idle.launch_payload import (
    BandwidthPayload,
    BandwidthRow,
    CurveParams,
    LaunchesParams,
    LaunchesPayload,
    LaunchRow,
    QueueRow,
    QueuesPayload,
    SequenceItem,
    SequenceRow,
    SequencesParams,
    SequencesPayload,
)

MOST_STREAMS = 16
"""Streams of which a curve is sent, those with the longest queues."""

MOST_ITEMS = 256
"""Items of a sequence that are sent."""


def build_launches(trace: Trace, params: LaunchesParams) -> LaunchesPayload:
    work = chosen_work(trace, rows_of_kind(trace, *DEVICE_KINDS), params.step, params.device, params.stream)
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


def build_queue(trace: Trace, params: CurveParams) -> QueuesPayload:
    work = chosen_work(trace, rows_of_kind(trace, *DEVICE_KINDS), params.step, params.device, params.stream)
    lines = stream_queues(trace, work)
    edges = bucket_edges([queue.times for queue in lines], params.points)
    rows = [
        QueueRow(
            each.device,
            each.stream,
            each.longest,
            each.mean,
            each.empty_ns,
            each.duration_ns,
            max_lengths_between(each, edges).tolist(),
        )
        for each in sorted(lines, key=lambda each: -each.longest)
    ]
    return QueuesPayload(rows[:MOST_STREAMS], edges.tolist())


def build_bandwidth(trace: Trace, params: CurveParams) -> BandwidthPayload:
    work = chosen_work(trace, rows_of_kind(trace, *DEVICE_KINDS), params.step, params.device, params.stream)
    edges = bucket_edges([trace.events.start[work], event_ends(trace)[work]], params.points)
    rows = []
    for each in copy_groups(trace, work):
        curve = bytes_between(trace, each.rows, edges).tolist() if each.bytes is not None else []
        rows.append(
            BandwidthRow(
                each.direction,
                each.memory,
                int(each.rows[0]),
                len(each.rows),
                each.sized,
                each.bytes,
                each.time_ns,
                each.bandwidth,
                curve,
            )
        )
    return BandwidthPayload(rows, edges.tolist())


def build_sequences(trace: Trace, params: SequencesParams) -> SequencesPayload:
    repeated = work_sequences(trace, params.device, params.stream)
    saved = graph_capture_savings(trace, repeated.sequences)
    rows = []
    for at, each in enumerate(repeated.sequences):
        around = common_slice(trace, each.rows[0])
        first = each.rows[0].tolist()
        rows.append(
            SequenceRow(
                runs=each.runs,
                length=each.length,
                time_ns=each.time_ns,
                share=each.time_ns / repeated.time_ns if repeated.time_ns else 0.0,
                around=name_of(trace, around) if around >= 0 else None,
                around_event=around if around >= 0 else None,
                fusion_ns=each.fusion_ns,
                capture_ns=None if saved is None else saved[at],
                items=[_item(trace, row) for row in first[:MOST_ITEMS]],
            )
        )
    share = repeated.covered_ns / repeated.time_ns if repeated.time_ns else None
    reason = replay_unavailable_reason(trace)
    reasons = reason_texts({"capture_ns": words.no_capture(reason)} if rows and reason is not None else {})
    return SequencesPayload(rows, share, repeated.time_ns, reasons)


def _item(trace: Trace, row: int) -> SequenceItem:
    name = name_of(trace, row)
    return SequenceItem(row, name, display_name(trace, row, name), max(int(trace.events.duration[row]), 0))


LAUNCH_PARTS = (
    TraceView(
        "idle/launches",
        "LaunchesPayload",
        LaunchesParams,
        LaunchesPayload,
        build_launches,
        answers="Which calls launch work, how long they take, and how long the work waits.",
    ),
    TraceView(
        "idle/queue",
        "Queue length",
        CurveParams,
        QueuesPayload,
        build_queue,
        answers="How many launches wait in the queue of each stream.",
    ),
    TraceView(
        "idle/bandwidth",
        "BandwidthPayload",
        CurveParams,
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
        answers="Sequences of launches that repeat, and what capturing them in a graph saves at most.",
    ),
)
