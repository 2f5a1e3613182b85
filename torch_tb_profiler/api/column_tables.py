"""The tables of `Columns`: what the host and the devices did, as Arrow tables that share the trace's memory.

What is absent in a trace is null.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from torch_tb_profiler.analyses.modules.calls import call_tree_index
from torch_tb_profiler.analyses.schedule.causes import CAUSE_NAMES
from torch_tb_profiler.analyses.schedule.segments import idle_segments
from torch_tb_profiler.analyses.serving.columns import iteration_columns
from torch_tb_profiler.analyses.shared.breakdown import breakdown
from torch_tb_profiler.analyses.shared.grouping import input_shape_codes, input_shape_texts, launch_times
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.communication.collectives import TimingSource, collectives
from torch_tb_profiler.model.devices import device_ids, stream_ids
from torch_tb_profiler.model.kernels.families import FAMILIES, family_codes
from torch_tb_profiler.model.kinds import Kind, event_ends, rows_of_kind
from torch_tb_profiler.model.memory.events import memory_calls, memory_records
from torch_tb_profiler.model.modules import modules
from torch_tb_profiler.model.operators import operators
from torch_tb_profiler.model.origins.origins import ORIGIN_SOURCES, origin_positions, origins
from torch_tb_profiler.model.schedule.items import device_items
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Int32, Int64, Trace


def build_event_table(trace: Trace) -> pa.Table:
    columns = trace.events
    return pa.table(
        {
            "event": pa.array(np.arange(len(trace), dtype=np.int32)),
            "name": text_array(columns.name, trace.strings),
            "category": text_array(columns.category, trace.strings),
            "phase": _letter_array(columns.phase),
            "thread": _thread_array(trace, columns.thread),
            "start_ns": value_array(columns.start),
            "duration_ns": value_array(columns.duration),
            "id": value_array(columns.id),
        }
    )


def build_operator_table(trace: Trace) -> pa.Table:
    calls = operators(trace)
    rows = calls.rows
    parent = np.where(calls.parent >= 0, rows[calls.parent] if len(rows) else NO_CODE, NO_CODE)
    return pa.table(
        {
            "event": value_array(rows),
            "name": text_array(trace.events.name[rows], trace.strings),
            "thread": _thread_array(trace, trace.events.thread[rows]),
            "start_ns": value_array(trace.events.start[rows]),
            "host_total_ns": value_array(calls.host_total),
            "host_self_ns": value_array(calls.host_self),
            "device_total_ns": value_array(calls.device_total),
            "device_self_ns": value_array(calls.device_self),
            "input_shape": text_array(input_shape_codes(trace)[rows], input_shape_texts(trace)),
            "module": _module_array(trace, rows),
            "step": _step_array(trace, trace.events.start[rows]),
            "parent": value_array(parent.astype(np.int32)),
            **_origin_columns(trace, rows, ("how", "line", "nodes", "compile_id")),
        }
    )


def build_module_table(trace: Trace) -> pa.Table:
    model = modules(trace)
    rows = model.calls
    return pa.table(
        {
            "event": value_array(rows),
            "module": _module_array(trace, rows),
            "class": text_array(model.code[rows], model.classes),
            "thread": _thread_array(trace, trace.events.thread[rows]),
            "start_ns": value_array(trace.events.start[rows]),
            "duration_ns": value_array(event_ends(trace)[rows] - trace.events.start[rows]),
            "device_ns": value_array(call_tree_index(trace).device[rows]),
            "step": _step_array(trace, trace.events.start[rows]),
        }
    )


def build_step_table(trace: Trace) -> pa.Table:
    recorded, parts = steps(trace), breakdown(trace)
    return pa.table(
        {
            "step": pa.array(list(recorded.names), pa.string()),
            "start_ns": value_array(recorded.starts),
            "duration_ns": value_array(recorded.ends - recorded.starts),
            "host_start_ns": value_array(recorded.host_starts),
            "host_duration_ns": value_array(recorded.host_ends - recorded.host_starts),
            "complete": value_array(recorded.complete),
            "recorded": pa.array([recorded.recorded] * len(recorded.names), pa.bool_()),
            **{
                f"{name}_ns": pa.nulls(len(times), pa.int64()) if name in parts.unknown else value_array(times)
                for name, times in parts.times.items()
            },
        }
    )


def build_iteration_table(trace: Trace) -> pa.Table:
    columns = iteration_columns(trace)
    idle = columns.pop("idle")
    texts, flags = ("phase",), ("phase_inferred", "graph")
    kinds = dict.fromkeys(texts, pa.string()) | dict.fromkeys(flags, pa.bool_()) | {"event": pa.int32()}
    return pa.table(
        {name: pa.array(values, kinds.get(name, pa.int64())) for name, values in columns.items()}
        | {f"idle_{cause}_ns": pa.array(values, pa.int64()) for cause, values in idle.items()}
    )


def build_memory_table(trace: Trace) -> pa.Table:
    records = memory_records(trace)
    return pa.table(
        {
            "event": value_array(records.rows),
            "time_ns": value_array(records.time),
            "device": text_array(records.device, [device.name for device in records.devices]),
            "address": value_array(records.address),
            "size_bytes": value_array(records.size),
            "allocated_bytes": value_array(records.allocated),
            "reserved_bytes": value_array(records.reserved),
            "operator": value_array(memory_calls(trace)),
        }
    )


def build_kernel_table(trace: Trace) -> pa.Table:
    return pa.table(_device_work(trace, rows_of_kind(trace, Kind.KERNEL)))


def build_copy_table(trace: Trace) -> pa.Table:
    rows = rows_of_kind(trace, Kind.MEMCPY, Kind.MEMSET)
    return pa.table({**_device_work(trace, rows), "bytes": value_array(trace.arg_int("bytes", rows))})


def _device_work(trace: Trace, rows: Int32) -> dict[str, pa.Array]:
    links, calls = device_links(trace), operators(trace)
    launch = np.full(len(trace) + 1, NO_CODE, np.int32)
    launch[links.rows] = links.launch
    owner = calls.owner[rows]
    operator = np.where(owner >= 0, calls.rows[owner] if len(calls.rows) else NO_CODE, NO_CODE)
    return {
        "event": value_array(rows),
        "name": text_array(trace.events.name[rows], trace.strings),
        "family": text_array(family_codes(trace)[rows], FAMILIES),
        "device": value_array(device_ids(trace)[rows]),
        "stream": value_array(stream_ids(trace)[rows]),
        "start_ns": value_array(trace.events.start[rows]),
        "duration_ns": value_array(event_ends(trace)[rows] - trace.events.start[rows]),
        "launch": value_array(launch[rows]),
        "operator": value_array(operator.astype(np.int32)),
        "module": _module_array(trace, rows),
        "step": _step_array(trace, launch_times(trace, rows)),
        **_origin_columns(trace, rows, ("how", "operator", "module", "line", "shapes", "region", "reason")),
    }


def _origin_columns(trace: Trace, rows: Int32, names: Sequence[str]) -> dict[str, pa.Array]:
    """Return columns `origin_<name>` of events; null for events without a row in `origins`."""
    found, position = origins(trace), origin_positions(trace)[rows]
    columns: dict[str, pa.Array] = {}
    for name in names:
        column = {"module": "modules", "line": "lines"}.get(name, name)
        own = np.append(getattr(found, column), NO_CODE).astype(np.int32)[position]
        values = list(ORIGIN_SOURCES) if name == "how" else found.tables[column]
        if name == "nodes":
            columns["origin_nodes"] = _list_array(own, values)
            continue
        texts = ["/".join(each) if name == "module" else each[0] if name == "line" else each for each in values]
        columns[f"origin_{name}"] = text_array(own, texts)
    return columns


def build_collective_table(trace: Trace) -> pa.Table:
    operations = collectives(trace)
    groups = [operations.groups[code] if code >= 0 else None for code in operations.group.tolist()]
    return pa.table(
        {
            "event": value_array(operations.event),
            "collective": text_array(operations.collective, operations.names),
            "group": pa.array([group and group.name for group in groups], pa.string()),
            "ranks": pa.array([group and group.ranks for group in groups], pa.string()),
            "group_size": pa.array([group and group.size for group in groups], pa.int64()),
            "backend": text_array(operations.backend, operations.names),
            "dtype": text_array(operations.dtype, operations.names),
            "issue_ns": value_array(operations.issue),
            "start_ns": value_array(operations.start),
            "end_ns": value_array(operations.end),
            "timing": text_array(operations.timing, [timing.name.lower() for timing in TimingSource]),
            "sequence": value_array(operations.sequence),
            "bytes_in": value_array(operations.bytes_in),
            "bytes_out": value_array(operations.bytes_out),
        }
    )


def build_origin_table(trace: Trace) -> pa.Table:
    found = origins(trace)
    rows = found.rows
    return pa.table(
        {
            "event": value_array(rows),
            "start_ns": value_array(trace.events.start[rows]),
            "name": text_array(trace.events.name[rows], trace.strings),
            "how": text_array(found.how, ORIGIN_SOURCES),
            "operator": text_array(found.operator, found.tables["operator"]),
            "modules": _list_array(found.modules, found.tables["modules"]),
            "lines": _list_array(found.lines, found.tables["lines"]),
            "shapes": text_array(found.shapes, found.tables["shapes"]),
            "nodes": _list_array(found.nodes, found.tables["nodes"]),
            "region": text_array(found.region, found.tables["region"]),
            "compile_id": text_array(found.compile_id, found.tables["compile_id"]),
            "backward": _nullable_array(found.backward != 0, found.backward >= 0),
            "reason": text_array(found.reason, found.tables["reason"]),
        }
    )


def build_gap_table(trace: Trace) -> pa.Table:
    devices = np.unique(device_items(trace).device).tolist()
    parts = [pa.table({"device": pa.array([], pa.int64()), **_device_gaps(trace, None)})] if not devices else []
    for device in devices:
        columns = _device_gaps(trace, device)
        parts.append(pa.table({"device": pa.array([device] * len(columns["gap"]), pa.int64()), **columns}))
    return pa.concat_tables(parts).unify_dictionaries()


def _device_gaps(trace: Trace, device: int | None) -> dict[str, pa.Array]:
    """Return the columns of the gaps of a device; empty columns if it is None."""
    columns: list[npt.NDArray[Any]] = [np.empty(0, np.int64)] * 3 + [np.empty(0, np.int32)] * 4
    if device is not None:
        idle = idle_segments(trace, device)
        emptied = idle.emptied_by
        columns = [idle.gap, idle.begin, idle.length, idle.cause.astype(np.int32), idle.row, emptied, idle.step]
    gap, begin, length, cause, row, emptied, step = columns
    return {
        "gap": pa.array(gap, pa.int64()),
        "start_ns": value_array(begin),
        "duration_ns": value_array(length),
        "cause": text_array(cause, CAUSE_NAMES),
        "event": value_array(row),
        "emptied_by": value_array(emptied),
        "step": text_array(step, steps(trace).names),
    }


def _thread_array(trace: Trace, codes: Int32) -> pa.Array:
    """Return threads as the views label them, `pid/tid`."""
    labels: dict[str, int] = {}
    label_codes = np.array(
        [labels.setdefault(thread.label, len(labels)) for thread in trace.threads] + [NO_CODE], np.int32
    )
    return text_array(label_codes[codes], list(labels))


def _module_array(trace: Trace, rows: Int32) -> pa.Array:
    """Return the paths of the modules that `rows` belong to, outermost first, joined by "/"."""
    model = modules(trace)
    paths: dict[str, int] = {}
    path_codes = [paths.setdefault("/".join(model.path(code)), len(paths)) for code in range(len(model.names))]
    return text_array(np.array([*path_codes, NO_CODE], np.int32)[model.code[rows]], list(paths))


def _step_array(trace: Trace, times: Int64) -> pa.Array:
    """Return the step that the host was in at each time; null outside of steps, or if none are recorded."""
    recorded = steps(trace)
    if not recorded.recorded:
        return pa.nulls(len(times), pa.string()).dictionary_encode()
    order = np.argsort(recorded.host_starts, kind="stable")
    position = np.searchsorted(recorded.host_starts[order], times, "right") - 1
    step = order[np.maximum(position, 0)]
    inside = (position >= 0) & (times < recorded.host_ends[step])
    names: dict[str, int] = {}
    name_codes = np.array([names.setdefault(name, len(names)) for name in recorded.names], np.int32)
    return text_array(np.where(inside, name_codes[step], NO_CODE).astype(np.int32), list(names))


def value_array(column: npt.NDArray[Any]) -> pa.Array:
    """Return numbers or booleans; ABSENT in int64 and NO_CODE in int32 become null."""
    if column.dtype == np.bool_:
        return pa.array(column)
    absent = {np.dtype(np.int64): ABSENT, np.dtype(np.int32): NO_CODE}.get(column.dtype)
    return _nullable_array(column, np.ones(len(column), np.bool_) if absent is None else column != absent)


def text_array(codes: npt.NDArray[Any], dictionary: Sequence[str | None]) -> pa.Array:
    """Return the texts that `codes` stand for, NO_CODE as null.

    The Arrow dictionary holds only texts that occur, unless there are at least as many codes as texts.
    """
    if len(codes) < len(dictionary):
        present, codes = np.unique(codes, return_inverse=True)
        present, codes = (present[1:], codes - 1) if len(present) and present[0] < 0 else (present, codes)
        dictionary = [dictionary[code] for code in present.tolist()]
    known = codes >= 0
    encoded = ["" if text is None else _encodable(text) for text in dictionary]
    distinct = list(dict.fromkeys(encoded))
    if len(distinct) < len(encoded):
        position = {text: index for index, text in enumerate(distinct)}
        codes = np.array([*(position[text] for text in encoded), NO_CODE], np.int32)[codes]
    indices = _nullable_array(codes.astype(np.int32, copy=False), known)
    return pa.DictionaryArray.from_arrays(indices, pa.array(distinct, pa.string()))


def _list_array(codes: Int32, lists: Sequence[Sequence[str]]) -> pa.Array:
    """Return the lists of texts that `codes` stand for, NO_CODE as null."""
    dictionary = pa.array([[_encodable(each) for each in texts] for texts in lists], pa.list_(pa.string()))
    return dictionary.take(_nullable_array(codes, codes >= 0))


def _letter_array(codes: npt.NDArray[np.uint8]) -> pa.Array:
    """Return one letter per ASCII code; 0 becomes null."""
    return pa.DictionaryArray.from_arrays(_nullable_array(codes, codes > 0), pa.array(map(chr, range(256))))


def _nullable_array(column: npt.NDArray[Any], known: Bool) -> pa.Array:
    column = np.ascontiguousarray(column)
    if column.dtype == np.bool_:
        return pa.array(column, pa.bool_(), mask=~known)
    mask = None if known.all() else pa.py_buffer(np.packbits(known, bitorder="little"))
    kind = pa.from_numpy_dtype(column.dtype)
    return pa.Array.from_buffers(kind, len(column), [mask, pa.py_buffer(column)])


def _encodable(text: str) -> str:
    """Replace lone surrogates, which UTF-8 can't encode."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
