"""What devices did."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from torch_tb_profiler.analyses.schedule.causes import CAUSES
from torch_tb_profiler.analyses.schedule.segments import segments
from torch_tb_profiler.analyses.shared.grouping import launch_times
from torch_tb_profiler.api.columns.arrow import texts, values
from torch_tb_profiler.api.columns.host import module_texts, step_texts
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.calls.operators import operators
from torch_tb_profiler.model.communication import collectives as collective_model
from torch_tb_profiler.model.devices import device_of, stream_of
from torch_tb_profiler.model.families import families
from torch_tb_profiler.model.kernels.families import FAMILIES
from torch_tb_profiler.model.kinds import Kind, ends, of_kind
from torch_tb_profiler.model.schedule.items import items
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import NO_CODE, Int32, Trace


def kernels(trace: Trace) -> pa.Table:
    return pa.table(_work(trace, of_kind(trace, Kind.KERNEL)))


def copies(trace: Trace) -> pa.Table:
    rows = of_kind(trace, Kind.MEMCPY, Kind.MEMSET)
    return pa.table({**_work(trace, rows), "bytes": values(trace.arg_int("bytes", rows))})


def _work(trace: Trace, rows: Int32) -> dict[str, pa.Array]:
    links, found = device_links(trace), operators(trace)
    launch = np.full(len(trace) + 1, NO_CODE, np.int32)
    launch[links.rows] = links.launch
    owner = found.owner[rows]
    operator = np.where(owner >= 0, found.rows[owner] if len(found.rows) else NO_CODE, NO_CODE)
    return {
        "event": values(rows),
        "name": texts(trace.events.name[rows], trace.strings),
        "family": texts(families(trace)[rows], FAMILIES),
        "device": values(device_of(trace)[rows]),
        "stream": values(stream_of(trace)[rows]),
        "start_ns": values(trace.events.start[rows]),
        "duration_ns": values(ends(trace)[rows] - trace.events.start[rows]),
        "launch": values(launch[rows]),
        "operator": values(operator.astype(np.int32)),
        "module": module_texts(trace, rows),
        "step": step_texts(trace, launch_times(trace, rows)),
    }


def collectives(trace: Trace) -> pa.Table:
    found = collective_model.collectives(trace)
    groups = [found.groups[code] if code >= 0 else None for code in found.group.tolist()]
    return pa.table(
        {
            "event": values(found.event),
            "collective": texts(found.collective, found.names),
            "group": pa.array([group and group.name for group in groups], pa.string()),
            "ranks": pa.array([group and group.ranks for group in groups], pa.string()),
            "group_size": pa.array([group and group.size for group in groups], pa.int64()),
            "backend": texts(found.backend, found.names),
            "dtype": texts(found.dtype, found.names),
            "issue_ns": values(found.issue),
            "start_ns": values(found.start),
            "end_ns": values(found.end),
            "timing": texts(found.timing, [timing.name.lower() for timing in collective_model.Timing]),
            "sequence": values(found.sequence),
            "bytes_in": values(found.bytes_in),
            "bytes_out": values(found.bytes_out),
        }
    )


def gaps(trace: Trace) -> pa.Table:
    devices = np.unique(items(trace).device).tolist()
    parts = [pa.table({"device": pa.array([], pa.int64()), **_gaps(trace, None)})] if not devices else []
    for device in devices:
        columns = _gaps(trace, device)
        parts.append(pa.table({"device": pa.array([device] * len(columns["gap"]), pa.int64()), **columns}))
    return pa.concat_tables(parts).unify_dictionaries()


def _gaps(trace: Trace, device: int | None) -> dict[str, pa.Array]:
    columns: list[npt.NDArray[Any]] = [np.empty(0, np.int64)] * 3 + [np.empty(0, np.int32)] * 4
    if device is not None:
        found = segments(trace, device)
        emptied = found.gaps.emptied_by[found.gap]
        columns = [
            found.gap,
            found.begin,
            found.length,
            found.cause.astype(np.int32),
            found.row,
            emptied,
            found.step,
        ]
    gap, begin, length, cause, row, emptied, step = columns
    return {
        "gap": pa.array(gap),
        "start_ns": values(begin),
        "duration_ns": values(length),
        "cause": texts(cause, CAUSES),
        "event": values(row),
        "emptied_by": values(emptied),
        "step": texts(step, steps(trace).names),
    }
