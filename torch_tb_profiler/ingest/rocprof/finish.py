"""Collected records to a Trace, with what is known of its devices and its rank."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from torch_tb_profiler.ingest.kineto.assemble import assemble
from torch_tb_profiler.ingest.rocprof.records import Recording
from torch_tb_profiler.ingest.runtime import ReportStep
from torch_tb_profiler.model.health import HealthLog
from torch_tb_profiler.model.trace import ROCPROF, Trace


def finish(
    recording: Recording,
    health: HealthLog,
    environment: Mapping[str, Any],
    step: ReportStep,
    base_ns: int | None = None,
) -> Trace:
    """Raises TraceError if nothing was recorded.

    environment  variables of the process: launchers (torchrun, accelerate, DeepSpeed) say its rank in RANK
    base_ns      epoch time when the machine booted, where the file tells it
    """
    metadata: dict[str, Any] = {
        "rocprofiler": ROCPROF,
        "deviceProperties": [recording.devices[index] for index in sorted(recording.devices)],
    }
    rank, world_size = _number(environment.get("RANK")), _number(environment.get("WORLD_SIZE"))
    if rank is not None:
        metadata["distributedInfo"] = {"backend": None, "rank": rank, "world_size": world_size}
    if base_ns is not None:
        metadata["baseTimeNanoseconds"] = base_ns
    trace = assemble(recording.columns, metadata, health, step)
    return replace(trace, producer=ROCPROF, clock="boot" if base_ns is None else "epoch")


def _number(text: object) -> int | None:
    return int(text) if isinstance(text, str) and text.isascii() and text.isdigit() and len(text) < 10 else None
