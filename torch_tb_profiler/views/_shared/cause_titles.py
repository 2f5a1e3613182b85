"""Names the causes of idle time as tables, charts and legends do; the page has the same in `base/causes.ts`."""

from __future__ import annotations

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
"""Cause -> its title."""
