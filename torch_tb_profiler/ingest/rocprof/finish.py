"""Collected records to a Trace, with what is known of its devices and its rank."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from torch_tb_profiler.ingest.kineto.assemble import assemble
from torch_tb_profiler.ingest.rocprof.records import ROCPROF, Recording
from torch_tb_profiler.model.health import HealthLog
from torch_tb_profiler.model.trace import Trace


def finish(recording: Recording, health: HealthLog, environment: Mapping[str, Any]) -> Trace:
    """Raises TraceError if nothing was recorded.

    environment  variables of the process: launchers (torchrun, accelerate, DeepSpeed) say its rank in RANK
    """
    metadata: dict[str, Any] = {
        "rocprofiler": ROCPROF,
        "deviceProperties": [recording.devices[index] for index in sorted(recording.devices)],
    }
    rank, world_size = _number(environment.get("RANK")), _number(environment.get("WORLD_SIZE"))
    if rank is not None:
        metadata["distributedInfo"] = {"backend": None, "rank": rank, "world_size": world_size}
    return replace(assemble(recording.columns, metadata, health), producer=ROCPROF, clock="boot")


def _number(text: object) -> int | None:
    return int(text) if isinstance(text, str) and text.isascii() and text.isdigit() and len(text) < 10 else None
