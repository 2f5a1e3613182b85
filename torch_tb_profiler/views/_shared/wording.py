"""Sentences and names that more than one view uses, so that every view says the same."""

from __future__ import annotations

from torch_tb_profiler.base.format import format_bytes, format_duration
from torch_tb_profiler.views._shared.text import Text, text

CAUSE_TITLES = {
    "data_loading": "Data loading",
    "compile": "Compilation",
    "sync": "Synchronization",
    "allocator": "Allocator",
    "copy_staging": "Copy staging",
    "launch_call": "Launch calls",
    "runtime": "Other runtime calls",
    "host_communication": "Host communication",
    "wait": "Locks, queues and sleeps",
    "profiler": "Profiler",
    "operator": "Operators",
    "python": "Python",
    "annotation": "Annotated code",
    "unrecorded": "Not recorded",
    "launch_latency": "Launch latency",
    "kernel_gap": "Kernel gaps",
    "graph_gap": "Graph gaps",
    "waits_for_stream": "Waiting for another stream",
    "device_wait": "Device-side wait",
    "unlinked": "No launch recorded",
    "before_recording": "Before the first recorded work",
    "tail": "After the last kernel",
}
"""Cause of idle time -> its name in tables, charts and legends; the page has the same in `base/causes.ts`."""


CAUSE_TEXTS = {
    "data_loading": "data loading",
    "compile": "compilation",
    "sync": "synchronization with nothing left to wait for",
    "allocator": "the allocator",
    "copy_staging": "calls that stage copies",
    "launch_call": "launch calls",
    "runtime": "other runtime calls",
    "host_communication": "communication on the host",
    "wait": "locks, queues and sleeps",
    "profiler": "the profiler itself",
    "operator": "operators on the host",
    "python": "Python code",
    "annotation": "annotated code",
    "unrecorded": "unrecorded host code",
    "launch_latency": "launch latency",
    "kernel_gap": "gaps between queued kernels",
    "graph_gap": "gaps inside graphs",
    "waits_for_stream": "other streams",
    "device_wait": "the device itself, with work submitted",
    "unlinked": "work whose launch wasn't recorded",
    "before_recording": "something before its first recorded work",
    "tail": "no further work",
}
"""Cause of idle time -> what the device waits for, as the object of "waits for"."""


UNEXPLAINED_WAIT = "calls waiting for something unrecorded"
"""What is on the critical path where synchronization calls outlast all recorded work."""


def used_more(used: int) -> str:
    """Return by how much more tensors use while reserved memory rises; `used` in bytes per step."""
    return f"only {format_bytes(used)} more" if used else "no more"


def clock_shift_sentence(shift_ns: int) -> Text:
    """Say by how much the device clock was shifted and why; empty if it wasn't."""
    if shift_ns <= 0:
        return ()
    return text(
        "The device clock was shifted by {shift}, because some work was recorded as starting before its launch.",
        shift=format_duration(shift_ns),
    )


def unrecorded_wait_sentence(device: str) -> Text:
    """Say that the host waited for a device, as its silence shows, although no recorded call does."""
    return text("The host seems to have waited for {device}, although no recorded call does.", device=device)


def truncation_sentence() -> Text:
    """Return what every view says of a truncated file instead of a verdict."""
    return text(
        "The file is truncated. Kineto writes GPU work last, so it's probably missing; you see only what came "
        "before the cut."
    )
