"""Some events of a trace as a trace file of their own: valid JSON, whatever the original was."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from torch_tb_profiler.model.trace import ABSENT, FIRST_TEXT_ID, Int32, Trace

CHUNK = 20_000
"""Events encoded at a time; the only ones that are Python objects."""


def write(trace: Trace, rows: Int32) -> Iterator[bytes]:
    """The JSON document of these events, piece by piece: valid whatever the original was."""
    texts = _Texts(trace)
    yield b"{"
    for key, value in trace.metadata.items():
        if key != "traceEvents":
            yield msgspec.json.encode(key) + b":" + msgspec.json.encode(value) + b","
    yield b'\n"traceEvents":['
    for first in range(0, len(rows), CHUNK):
        objects = _objects(trace, rows[first : first + CHUNK], texts)
        yield (b"\n" if first == 0 else b",\n") + b",\n".join(map(msgspec.json.encode, objects))
    yield b"\n]}\n"


class _Texts:
    """Raw JSON of argument values, checked once each: what is not JSON is written as a string."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._raw: dict[tuple[str, int], msgspec.Raw] = {}

    def raw(self, key: str, code: int) -> msgspec.Raw:
        known = self._raw.get((key, code))
        if known is None:
            text = self._trace.args[key].dictionary[code].encode("utf-8", "replace")
            try:
                msgspec.json.decode(text)
            except msgspec.DecodeError:
                text = msgspec.json.encode(text.decode())
            known = self._raw[key, code] = msgspec.Raw(text)
        return known


def _objects(trace: Trace, rows: Int32, texts: _Texts) -> list[dict[str, Any]]:
    events, strings = trace.events, trace.strings
    columns = (getattr(events, name)[rows].tolist() for name in ("phase", "category", "name", "thread"))
    times = (getattr(events, name)[rows].tolist() for name in ("start", "duration", "id"))
    objects = []
    for phase, category, name, thread, start, duration, id in zip(*columns, *times, strict=True):
        event: dict[str, Any] = {"ph": chr(phase)} if phase else {}
        if category >= 0:
            event["cat"] = strings[category]
        if name >= 0:
            event["name"] = strings[name]
        pid, tid = trace.threads[thread].pid, trace.threads[thread].tid
        event.update({key: value for key, value in (("pid", pid), ("tid", tid)) if value is not None})
        if start != ABSENT:
            event["ts"] = microseconds(start + trace.trace_start_ns)
        if duration != ABSENT and phase != ord("B"):
            event["dur"] = microseconds(duration)
        if id != ABSENT:
            is_text = FIRST_TEXT_ID <= id < FIRST_TEXT_ID + len(trace.text_ids)
            event["id"] = trace.text_ids[id - FIRST_TEXT_ID] if is_text else id
        objects.append(event)
    _add_arguments(trace, rows, objects, texts)
    return objects


def microseconds(ns: int) -> msgspec.Raw:
    """Exact decimal microseconds, as profilers write times."""
    sign, ns = ("-", -ns) if ns < 0 else ("", ns)
    return msgspec.Raw(f"{sign}{ns // 1000}.{ns % 1000:03}".encode())


def _add_arguments(trace: Trace, rows: Int32, objects: list[dict[str, Any]], texts: _Texts) -> None:
    for key, column in trace.args.items():
        at = np.searchsorted(column.rows, rows)
        at[at == len(column.rows)] = 0
        carriers = np.flatnonzero(column.rows[at] == rows)
        values = column.values[at[carriers]].tolist()
        if column.kind == "text":
            values = [column.dictionary[code] for code in values]
        elif column.kind == "json":
            values = [texts.raw(key, code) for code in values]
        for i, value in zip(carriers.tolist(), values, strict=True):
            if key.startswith("@"):
                objects[i][key[1:]] = value
            else:
                objects[i].setdefault("args", {})[key] = value
