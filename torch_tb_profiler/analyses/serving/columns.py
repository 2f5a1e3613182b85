"""The columns of all iterations as plain lists, with None for what is unknown."""

from __future__ import annotations

from typing import Any

from torch_tb_profiler.analyses.serving.idle import CAUSES, serving_times
from torch_tb_profiler.model.serving.iterations import serving_iterations
from torch_tb_profiler.model.serving.labels import PHASES
from torch_tb_profiler.model.serving.requests import serving_requests
from torch_tb_profiler.model.trace import ABSENT, Int64, Trace

_NAMES = (
    *("event", "phase", "phase_inferred", "start_ns", "duration_ns", "host_start_ns", "host_duration_ns"),
    *("device_start_ns", "device_duration_ns", "requests", "prompt_tokens", "decode_requests", "decode_tokens"),
    *("kv_tokens", "recomputed_tokens", "busy_ns", "graph"),
)


def iteration_columns(trace: Trace) -> dict[str, Any]:
    """Return the columns of the iterations by name, lists of k values; empty lists if there are none."""
    found, times = serving_iterations(trace), serving_times(trace)
    if found is None or times is None:
        return {name: [] for name in _NAMES} | {"idle": {cause: [] for cause in CAUSES}}
    device = found.device_end - found.device_start
    device[found.device_end == ABSENT] = ABSENT
    return {
        "event": [event if event >= 0 else None for event in found.event.tolist()],
        "phase": [PHASES[phase] if phase >= 0 else None for phase in found.phase.tolist()],
        "phase_inferred": found.phase_inferred.tolist(),
        "start_ns": times.begin.tolist(),
        "duration_ns": times.duration.tolist(),
        "host_start_ns": found.host_start.tolist(),
        "host_duration_ns": (found.host_end - found.host_start).tolist(),
        "device_start_ns": _known(found.device_start),
        "device_duration_ns": _known(device),
        "requests": _known(found.requests),
        "prompt_tokens": _known(found.prompt_tokens),
        "decode_requests": _known(found.decode_requests),
        "decode_tokens": _known(found.decode_tokens),
        "kv_tokens": _known(found.kv_tokens),
        "recomputed_tokens": found.recomputed.tolist(),
        "busy_ns": times.work.tolist(),
        "idle": {cause: times.idle[:, number].tolist() for number, cause in enumerate(CAUSES)},
        "graph": [None if flag < 0 else flag == 1 for flag in found.graph.tolist()],
    }


def request_columns(trace: Trace) -> dict[str, list[Any]] | None:
    """Return the columns of the requests by name, lists of r values, or None if no requests were recorded."""
    found = serving_requests(trace)
    if found is None:
        return None
    columns = {name: _known(getattr(found, name)) for name in found.__struct_fields__ if name != "event"}
    return {"event": found.event.tolist(), **columns}


def _known(values: Int64) -> list[int | None]:
    if not (values == ABSENT).any():
        known: list[int | None] = values.tolist()
        return known
    return [None if value == ABSENT else value for value in values.tolist()]
