"""A Trace as one Arrow IPC file, and back without copying a column."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from torch_tb_profiler.base.arrow_texts import Texts, text_array
from torch_tb_profiler.model.health import Note
from torch_tb_profiler.model.trace import ArgColumn, Events, Thread, Trace

_STRINGS = "strings"
_TEXT_IDS = "text_ids"

_DTYPES = {pa.from_numpy_dtype(dtype): np.dtype(dtype) for dtype in np.typecodes["AllInteger"] + "fd"}


def write_trace(trace: Trace, path: str) -> None:
    """Write all columns; OSError if that fails."""
    names, arrays = [], []
    for name, values in _columns(trace):
        names.append(name)
        arrays.append(_cell(values))
    facts = {
        "metadata": dict(trace.metadata),
        "threads": [[thread.pid, thread.tid] for thread in trace.threads],
        "trace_start_ns": trace.trace_start_ns,
        "base_ns": trace.base_ns,
        "producer": trace.producer,
        "clock": trace.clock,
        "recordings": trace.recordings,
        "health": [[n.kind, n.severity, n.message, n.count, n.first_offset] for n in trace.health],
        "args": {key: column.kind for key, column in trace.args.items()},
    }
    batch = pa.RecordBatch.from_arrays(arrays, names=names)
    schema = batch.schema.with_metadata({"trace": json.dumps(facts)})
    with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        writer.write_batch(batch.replace_schema_metadata(schema.metadata))


def read_trace_file(content: pa.Buffer) -> Trace:
    """A written trace, its columns views of `content`; raises whatever Arrow raises if that is damaged."""
    reader = pa.ipc.open_file(pa.BufferReader(content))
    batch = reader.get_batch(0)
    facts = json.loads(reader.schema.metadata[b"trace"])
    column = {name: batch.column(i) for i, name in enumerate(batch.schema.names)}

    def numbers(name: str) -> npt.NDArray[Any]:
        return _view(column[name].values)

    args = {}
    for key, kind in facts["args"].items():
        texts = f"arg:{key}:texts"
        dictionary = Texts(column[texts].values) if texts in column else ()
        args[key] = ArgColumn(kind, numbers(f"arg:{key}:rows"), numbers(f"arg:{key}:values"), dictionary)
    return Trace(
        events=Events(*(numbers(f"event:{name}") for name in Events.__slots__)),
        strings=column[_STRINGS].values.to_pylist(),
        threads=[Thread(pid, tid) for pid, tid in facts["threads"]],
        text_ids=column[_TEXT_IDS].values.to_pylist(),
        args=args,
        metadata=facts["metadata"],
        trace_start_ns=facts["trace_start_ns"],
        base_ns=facts["base_ns"],
        health=tuple(Note(*note) for note in facts["health"]),
        producer=facts["producer"],
        clock=facts["clock"],
        recordings=tuple(facts["recordings"]),
    )


def write_columns(columns: Mapping[str, npt.NDArray[Any]], path: str) -> None:
    """Write arrays by name; OSError if that fails."""
    batch = pa.RecordBatch.from_arrays([_cell(values) for values in columns.values()], names=list(columns))
    with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)


def read_columns_file(content: pa.Buffer) -> dict[str, npt.NDArray[Any]]:
    """Written arrays, views of `content`; raises whatever Arrow raises if that is damaged."""
    batch = pa.ipc.open_file(pa.BufferReader(content)).get_batch(0)
    names = batch.schema.names
    return {name: _view(batch.column(i).values) for i, name in enumerate(names)}


def _columns(trace: Trace) -> Iterator[tuple[str, Any]]:
    for name in Events.__slots__:
        yield f"event:{name}", getattr(trace.events, name)
    yield _STRINGS, trace.strings
    yield _TEXT_IDS, trace.text_ids
    for key, column in trace.args.items():
        yield f"arg:{key}:rows", column.rows
        yield f"arg:{key}:values", column.values
        if column.kind in ("text", "json"):
            yield f"arg:{key}:texts", column.dictionary


def _cell(values: Any) -> pa.Array:
    """One row whose list holds all values."""
    flat = _numbers(values) if isinstance(values, np.ndarray) else text_array(values, "replace")
    return pa.LargeListArray.from_arrays(_numbers(np.array([0, len(flat)], np.int64)), flat)


def _numbers(values: npt.NDArray[Any]) -> pa.Array:
    """The values where they lie. (`pa.array` imports pandas, if it is there, to ask whether they are its own.)"""
    values = np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(values)])


def _view(values: pa.Array) -> npt.NDArray[Any]:
    """The numbers where they lie. (`to_numpy` imports pandas, if it is there, which takes half a second; so does
    asking for the dtype of a type in some versions.)"""
    dtype = _DTYPES[values.type]
    if not len(values):
        return np.empty(0, dtype)
    return np.frombuffer(values.buffers()[1], dtype, len(values), values.offset * dtype.itemsize)
