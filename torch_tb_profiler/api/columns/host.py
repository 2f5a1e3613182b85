"""What the host did, and memory."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from torch_tb_profiler.analyses.modules.calls import call_tree_index
from torch_tb_profiler.analyses.shared.breakdown import breakdown
from torch_tb_profiler.analyses.shared.shapes import shape_texts, shapes
from torch_tb_profiler.api.columns.arrow import letters, texts, values
from torch_tb_profiler.model import modules as module_model
from torch_tb_profiler.model import operators as operator_model
from torch_tb_profiler.model import steps as step_model
from torch_tb_profiler.model.kinds import event_ends
from torch_tb_profiler.model.memory.events import memory_calls, memory_records
from torch_tb_profiler.model.trace import NO_CODE, Int32, Int64, Trace


def events(trace: Trace) -> pa.Table:
    columns = trace.events
    return pa.table(
        {
            "event": pa.array(np.arange(len(trace), dtype=np.int32)),
            "name": texts(columns.name, trace.strings),
            "category": texts(columns.category, trace.strings),
            "phase": letters(columns.phase),
            "thread": thread_texts(trace, columns.thread),
            "start_ns": values(columns.start),
            "duration_ns": values(columns.duration),
            "id": values(columns.id),
        }
    )


def operators(trace: Trace) -> pa.Table:
    instances = operator_model.operators(trace)
    rows = instances.rows
    parent = np.where(instances.parent >= 0, rows[instances.parent] if len(rows) else NO_CODE, NO_CODE)
    return pa.table(
        {
            "event": values(rows),
            "name": texts(trace.events.name[rows], trace.strings),
            "thread": thread_texts(trace, trace.events.thread[rows]),
            "start_ns": values(trace.events.start[rows]),
            "host_total_ns": values(instances.host_total),
            "host_self_ns": values(instances.host_self),
            "device_total_ns": values(instances.device_total),
            "device_self_ns": values(instances.device_self),
            "input_shape": texts(shapes(trace)[rows], shape_texts(trace)),
            "module": module_texts(trace, rows),
            "step": step_texts(trace, trace.events.start[rows]),
            "parent": values(parent.astype(np.int32)),
        }
    )


def modules(trace: Trace) -> pa.Table:
    model = module_model.modules(trace)
    rows = model.calls
    return pa.table(
        {
            "event": values(rows),
            "module": module_texts(trace, rows),
            "class": texts(model.code[rows], model.classes),
            "thread": thread_texts(trace, trace.events.thread[rows]),
            "start_ns": values(trace.events.start[rows]),
            "duration_ns": values(event_ends(trace)[rows] - trace.events.start[rows]),
            "device_ns": values(call_tree_index(trace).device[rows]),
            "step": step_texts(trace, trace.events.start[rows]),
        }
    )


def steps(trace: Trace) -> pa.Table:
    recorded, parts = step_model.steps(trace), breakdown(trace)
    return pa.table(
        {
            "step": pa.array(list(recorded.names), pa.string()),
            "start_ns": values(recorded.starts),
            "duration_ns": values(recorded.ends - recorded.starts),
            "host_start_ns": values(recorded.host_starts),
            "host_duration_ns": values(recorded.host_ends - recorded.host_starts),
            "complete": values(recorded.complete),
            "recorded": pa.array([recorded.recorded] * len(recorded.names), pa.bool_()),
            **{
                f"{name}_ns": pa.nulls(len(times), pa.int64()) if name in parts.unknown else values(times)
                for name, times in parts.times.items()
            },
        }
    )


def memory(trace: Trace) -> pa.Table:
    records = memory_records(trace)
    return pa.table(
        {
            "event": values(records.rows),
            "time_ns": values(records.time),
            "device": texts(records.device, [device.name for device in records.devices]),
            "address": values(records.address),
            "size_bytes": values(records.size),
            "allocated_bytes": values(records.allocated),
            "reserved_bytes": values(records.reserved),
            "operator": values(memory_calls(trace)),
        }
    )


def thread_texts(trace: Trace, codes: Int32) -> pa.Array:
    """Threads as the views write them, `pid/tid`."""
    labels: dict[str, int] = {}
    place = np.array(
        [labels.setdefault(thread.label, len(labels)) for thread in trace.threads] + [NO_CODE], np.int32
    )
    return texts(place[codes], list(labels))


def module_texts(trace: Trace, rows: Int32) -> pa.Array:
    """Paths of the modules that some rows belong to, outermost first with "/" between."""
    model = module_model.modules(trace)
    paths: dict[str, int] = {}
    place = [paths.setdefault("/".join(model.path(code)), len(paths)) for code in range(len(model.names))]
    return texts(np.array([*place, NO_CODE], np.int32)[model.code[rows]], list(paths))


def step_texts(trace: Trace, times: Int64) -> pa.Array:
    """The step that each time lies in, as the host ran them; null outside, and where no step is recorded."""
    recorded = step_model.steps(trace)
    if not recorded.recorded:
        return pa.nulls(len(times), pa.string()).dictionary_encode()
    order = np.argsort(recorded.host_starts, kind="stable")
    at = np.searchsorted(recorded.host_starts[order], times, "right") - 1
    step = order[np.maximum(at, 0)]
    inside = (at >= 0) & (times < recorded.host_ends[step])
    names: dict[str, int] = {}
    place = np.array([names.setdefault(name, len(names)) for name in recorded.names], np.int32)
    return texts(np.where(inside, place[step], NO_CODE).astype(np.int32), list(names))
