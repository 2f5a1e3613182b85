"""Write a Trace as one Arrow IPC file, and read it back without copying a column; neither way imports Arrow."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt

from torch_tb_profiler.base.arrays import EncodedTexts, StoredTexts, encode_all
from torch_tb_profiler.base.threadsafe import threadsafe
from torch_tb_profiler.cache.arrow_file import Sink, read_arrow_file, write_arrow_file
from torch_tb_profiler.model.health import HealthNote
from torch_tb_profiler.model.origin_records import OriginRecords
from torch_tb_profiler.model.trace import ArgColumn, Events, Thread, Trace

if TYPE_CHECKING:
    from torch_tb_profiler.model.snapshots import RecordedSnapshot

_STRINGS = "strings"
_TEXT_IDS = "text_ids"
_SNAPSHOT = "snapshot:"
_SNAPSHOT_TEXTS = "snapshot texts"


def write_trace(trace: Trace, sink: Sink) -> None:
    """Write all columns of a trace; OSError if that fails."""
    header = {
        "metadata": dict(trace.metadata),
        "threads": [[thread.pid, thread.tid] for thread in trace.threads],
        "trace_start_ns": trace.trace_start_ns,
        "base_ns": trace.base_ns,
        "producer": trace.producer,
        "clock": trace.clock,
        "recordings": trace.recordings,
        "health": [[n.kind, n.severity, n.message, n.count, n.first_offset] for n in trace.health],
        "args": {key: column.kind for key, column in trace.args.items()},
        "origin_records": msgspec.to_builtins(trace.origin_records),
        "snapshot": None if trace.snapshot is None else msgspec.to_builtins(trace.snapshot.facts),
    }
    columns = ((name, _encode_texts(values)) for name, values in _trace_columns(trace))
    write_arrow_file(sink, columns, {"trace": json.dumps(header)})


def read_trace_file(content: Any) -> Trace:
    """Return the trace in a file, its columns views of `content`; raises any error if it is damaged."""
    column, metadata = read_arrow_file(content)
    header = json.loads(metadata["trace"])
    args = {}
    for key, kind in header["args"].items():
        dictionary = _texts(column, f"arg:{key}:texts") if f"arg:{key}:texts" in column else ()
        rows, values = (_numbers(column, f"arg:{key}:{part}") for part in ("rows", "values"))
        args[key] = ArgColumn(kind, rows, values, dictionary)
    return Trace(
        events=Events(*(_numbers(column, f"event:{name}") for name in Events.__struct_fields__)),
        strings=list(_texts(column, _STRINGS)),
        threads=[Thread(pid, tid) for pid, tid in header["threads"]],
        text_ids=list(_texts(column, _TEXT_IDS)),
        args=args,
        metadata=header["metadata"],
        trace_start_ns=header["trace_start_ns"],
        base_ns=header["base_ns"],
        health=tuple(HealthNote(*note) for note in header["health"]),
        producer=header["producer"],
        clock=header["clock"],
        recordings=tuple(header["recordings"]),
        origin_records=msgspec.convert(header["origin_records"], threadsafe(OriginRecords)),
        snapshot=None if header["snapshot"] is None else _read_snapshot(column, header["snapshot"]),
    )


_Columns = Mapping[str, npt.NDArray[Any] | StoredTexts]


def _numbers(columns: _Columns, name: str) -> npt.NDArray[Any]:
    found = columns[name]
    if isinstance(found, StoredTexts):
        raise ValueError(f"{name} has texts")
    return found


def _texts(columns: _Columns, name: str) -> StoredTexts:
    found = columns[name]
    if not isinstance(found, StoredTexts):
        raise ValueError(f"{name} has numbers")
    return found


def _read_snapshot(columns: _Columns, facts: Mapping[str, Any]) -> RecordedSnapshot:
    from torch_tb_profiler.model.snapshots import RecordedSnapshot, SnapshotFacts  # few files are snapshots

    parts = {
        name.removeprefix(_SNAPSHOT): _numbers(columns, name) for name in columns if name.startswith(_SNAPSHOT)
    }
    texts = _texts(columns, _SNAPSHOT_TEXTS)
    return RecordedSnapshot.from_columns(parts, texts, msgspec.convert(facts, threadsafe(SnapshotFacts)))


def write_columns(columns: Mapping[str, npt.NDArray[Any] | Sequence[str]], sink: Sink) -> None:
    """Write named arrays and texts; OSError if that fails."""
    write_arrow_file(sink, ((name, _encode_texts(values)) for name, values in columns.items()), {})


def read_columns_file(content: Any) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays in a file as views of `content`; raises any error if that is damaged."""
    columns = read_arrow_file(content).columns
    return {name: _numbers(columns, name) for name in columns}


def _trace_columns(trace: Trace) -> Iterator[tuple[str, Any]]:
    """Yield the name and the values of each column."""
    for name in Events.__struct_fields__:
        yield f"event:{name}", getattr(trace.events, name)
    yield _STRINGS, trace.strings
    yield _TEXT_IDS, trace.text_ids
    for key, column in trace.args.items():
        yield f"arg:{key}:rows", column.rows
        yield f"arg:{key}:values", column.values
        if column.kind in ("text", "json"):
            yield f"arg:{key}:texts", column.dictionary
    if trace.snapshot is not None:
        for name, values in trace.snapshot.columns().items():
            yield _SNAPSHOT + name, values
        yield _SNAPSHOT_TEXTS, trace.snapshot.texts


def _encode_texts(values: Any) -> npt.NDArray[Any] | EncodedTexts:
    """Return texts in UTF-8, and numbers as they are."""
    return values if isinstance(values, np.ndarray) else encode_all(values, "replace")
