"""The columns of all iterations as plain lists, with None for what is unknown."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
import numpy as np

from torch_tb_profiler.analyses.serving.idle import CAUSES, ServingTimes, serving_times
from torch_tb_profiler.analyses.shared.breakdown import representatives
from torch_tb_profiler.model.serving.iterations import ServingIterations, serving_iterations
from torch_tb_profiler.model.serving.labels import PHASES
from torch_tb_profiler.model.serving.requests import serving_requests
from torch_tb_profiler.model.trace import ABSENT, Int64, Trace

_NAMES = (
    *("event", "phase", "phase_inferred", "start_ns", "duration_ns", "host_start_ns", "host_duration_ns"),
    *("device_start_ns", "device_duration_ns", "requests", "prompt_tokens", "decode_requests", "decode_tokens"),
    *("kv_tokens", "recomputed_tokens", "busy_ns", "graph"),
)


def listed_iterations(trace: Trace, first: int = 0, last: int | None = None) -> Int64:
    """Return the numbers of the iterations from `first` to `last` that an answer lists: all, or a selection.

    Of more than about 2,000 the longest of each stretch, those with the least and most of a kind, and the last.
    """
    times = serving_times(trace)
    if times is None:
        return np.empty(0, np.int64)
    stretch = slice(first, None if last is None else last + 1)
    duration = times.duration[stretch]
    listed = representatives(duration, np.ones(len(duration), np.bool_), (times.work[stretch],))
    return first + np.array(listed, np.int64)


def iteration_sums(trace: Trace, first: int, last: int) -> dict[str, Any]:
    """Return what the iterations from `first` to `last` take and count together; None where one is unknown."""
    found, times = serving_iterations(trace), serving_times(trace)
    if found is None or times is None:
        return {}
    stretch = slice(first, last + 1)

    def total(values: Int64) -> int | None:
        own = values[stretch]
        return None if (own == ABSENT).any() else int(own.sum())

    return {
        "iterations": len(times.end[stretch]),
        "duration_ns": int(times.duration[stretch].sum()),
        "busy_ns": int(times.work[stretch].sum()),
        "idle": dict(zip(CAUSES, times.idle[stretch].sum(0).tolist(), strict=True)),
        "prompt_tokens": total(found.prompt_tokens),
        "decode_requests": total(found.decode_requests),
    }


def iteration_columns(trace: Trace, listed: Int64 | None = None) -> dict[str, Any]:
    """Return the columns of all iterations, or of those listed, by name; empty lists if there are none."""
    found, times = serving_iterations(trace), serving_times(trace)
    if found is None or times is None:
        return {name: [] for name in _NAMES} | {"idle": {cause: [] for cause in CAUSES}}
    chosen = slice(None) if listed is None else listed
    duration, idle = times.duration[chosen], times.idle[chosen]
    found, times = _take(found, chosen), _take(times, chosen)
    device = found.device_end - found.device_start
    device[found.device_end == ABSENT] = ABSENT
    return {
        "event": [event if event >= 0 else None for event in found.event.tolist()],
        "phase": [PHASES[phase] if phase >= 0 else None for phase in found.phase.tolist()],
        "phase_inferred": found.phase_inferred.tolist(),
        "start_ns": times.begin.tolist(),
        "duration_ns": duration.tolist(),
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
        "idle": {cause: idle[:, number].tolist() for number, cause in enumerate(CAUSES)},
        "graph": [None if flag < 0 else flag == 1 for flag in found.graph.tolist()],
    }


_Columns = TypeVar("_Columns", ServingIterations, ServingTimes)


def _take(table: _Columns, chosen: slice | Int64) -> _Columns:
    """Return the table with only the chosen rows of its columns of iterations."""
    length = len(table.end) if isinstance(table, ServingTimes) else len(table)
    columns = {name: getattr(table, name) for name in table.__struct_fields__}
    selected = {
        name: values[chosen]
        for name, values in columns.items()
        if name not in ("owner", "idle_labels") and isinstance(values, np.ndarray) and len(values) == length
    }
    return msgspec.structs.replace(table, **selected)


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
