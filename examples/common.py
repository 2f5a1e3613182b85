"""Shared by the examples: the profiler with the recommended settings."""

from __future__ import annotations

import torch
from torch.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler


def device() -> torch.device:
    """Return the GPU if there is one, otherwise the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def profiler(logdir: str, worker: str | None = None, steps: int = 4) -> profile:
    """Record `steps` steps after one of warm-up, with memory, shapes, stacks and modules.

    The trace is written to `logdir` as `<worker>.<time>.pt.trace.json.gz` when the last step is done.
    """
    activities = [ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities.append(ProfilerActivity.CUDA)
    return profile(
        activities=activities,
        schedule=schedule(wait=1, warmup=1, active=steps, repeat=1),
        on_trace_ready=tensorboard_trace_handler(logdir, worker_name=worker, use_gzip=True),
        record_shapes=True,
        profile_memory=True,
        with_stack=True,
        with_modules=True,
    )
