"""What devices did."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from torch_tb_profiler.analyses.schedule.causes import CAUSE_NAMES
from torch_tb_profiler.analyses.schedule.segments import idle_segments
from torch_tb_profiler.analyses.shared.grouping import launch_times
from torch_tb_profiler.api.columns.arrow import texts, values
from torch_tb_profiler.api.columns.host import module_texts, step_texts
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.communication import collectives as collective_model
from torch_tb_profiler.model.devices import device_ids, stream_ids
from torch_tb_profiler.model.kernels.families import FAMILIES, family_codes
from torch_tb_profiler.model.kinds import Kind, event_ends, rows_of_kind
from torch_tb_profiler.model.operators import operators
from torch_tb_profiler.model.schedule.items import device_items
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import NO_CODE, Int32, Trace


def kernels(trace: Trace) -> pa.Table:
    return pa.table(_work(trace, rows_of_kind(trace, Kind.KERNEL)))


def copies(trace: Trace) -> pa.Table:
    rows = rows_of_kind(trace, Kind.MEMCPY, Kind.MEMSET)
    return pa.table({**_work(trace, rows), "bytes": values(trace.arg_int("bytes", rows))})


def _work(trace: Trace, rows: Int32) -> dict[str, pa.Array]:
    links, calls = device_links(trace), operators(trace)
    launch = np.full(len(trace) + 1, NO_CODE, np.int32)
    launch[links.rows] = links.launch
    owner = calls.owner[rows]
    operator = np.where(owner >= 0, calls.rows[owner] if len(calls.rows) else NO_CODE, NO_CODE)
    return {
        "event": values(rows),
        "name": texts(trace.events.name[rows], trace.strings),
        "family": texts(family_codes(trace)[rows], FAMILIES),
        "device": values(device_ids(trace)[rows]),
        "stream": values(stream_ids(trace)[rows]),
        "start_ns": values(trace.events.start[rows]),
        "duration_ns": values(event_ends(trace)[rows] - trace.events.start[rows]),
        "launch": values(launch[rows]),
        "operator": values(operator.astype(np.int32)),
        "module": module_texts(trace, rows),
        "step": step_texts(trace, launch_times(trace, rows)),
    }


def collectives(trace: Trace) -> pa.Table:
    operations = collective_model.collectives(trace)
    groups = [operations.groups[code] if code >= 0 else None for code in operations.group.tolist()]
    return pa.table(
        {
            "event": values(operations.event),
            "collective": texts(operations.collective, operations.names),
            "group": pa.array([group and group.name for group in groups], pa.string()),
            "ranks": pa.array([group and group.ranks for group in groups], pa.string()),
            "group_size": pa.array([group and group.size for group in groups], pa.int64()),
            "backend": texts(operations.backend, operations.names),
            "dtype": texts(operations.dtype, operations.names),
            "issue_ns": values(operations.issue),
            "start_ns": values(operations.start),
            "end_ns": values(operations.end),
            "timing": texts(operations.timing, [timing.name.lower() for timing in collective_model.TimingSource]),
            "sequence": values(operations.sequence),
            "bytes_in": values(operations.bytes_in),
            "bytes_out": values(operations.bytes_out),
        }
    )


def gaps(trace: Trace) -> pa.Table:
    devices = np.unique(device_items(trace).device).tolist()
    parts = [pa.table({"device": pa.array([], pa.int64()), **_gaps(trace, None)})] if not devices else []
    for device in devices:
        columns = _gaps(trace, device)
        parts.append(pa.table({"device": pa.array([device] * len(columns["gap"]), pa.int64()), **columns}))
    return pa.concat_tables(parts).unify_dictionaries()


def _gaps(trace: Trace, device: int | None) -> dict[str, pa.Array]:
    columns: list[npt.NDArray[Any]] = [np.empty(0, np.int64)] * 3 + [np.empty(0, np.int32)] * 4
    if device is not None:
        idle = idle_segments(trace, device)
        emptied = idle.gaps.emptied_by[idle.gap]
        columns = [
            idle.gap,
            idle.begin,
            idle.length,
            idle.cause.astype(np.int32),
            idle.row,
            emptied,
            idle.step,
        ]
    gap, begin, length, cause, row, emptied, step = columns
    return {
        "gap": pa.array(gap),
        "start_ns": values(begin),
        "duration_ns": values(length),
        "cause": texts(cause, CAUSE_NAMES),
        "event": values(row),
        "emptied_by": values(emptied),
        "step": texts(step, steps(trace).names),
    }
