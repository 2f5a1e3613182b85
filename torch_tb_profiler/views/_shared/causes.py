"""The causes of idle time in words."""

SPOKEN = {
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
    "unrecorded": "host code that is not recorded",
    "launch_latency": "launch latency",
    "kernel_gap": "gaps between queued kernels",
    "graph_gap": "gaps inside graphs",
    "waits_for_stream": "other streams",
    "device_wait": "the device itself, with work submitted",
    "unlinked": "work whose launch is not recorded",
    "before_recording": "work that was launched before the recording",
    "tail": "nothing: no work follows",
}
"""What the device waits for."""
