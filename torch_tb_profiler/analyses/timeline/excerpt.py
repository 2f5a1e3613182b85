"""A part of a trace as a trace file of its own: a window, some categories, slices that last long enough.

Pairs and flows are never split: a "B" keeps its "E", and a flow is included if all its ends are. Names of
processes and threads ("M" events) and the metadata around the events are always included. The document is valid
JSON even where the original wasn't.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from torch_tb_profiler.analyses.timeline import ExcerptRange
from torch_tb_profiler.analyses.tracks.events import FLOW_PHASES, INSTANT_PHASES, all_slices, event_phase_mask
from torch_tb_profiler.analyses.tracks.extent import extent
from torch_tb_profiler.analyses.tracks.flows import flow_rows
from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.base.format import format_duration
from torch_tb_profiler.base.grammar import list_options
from torch_tb_profiler.model.kinds import event_ends
from torch_tb_profiler.model.steps import step_noun, steps
from torch_tb_profiler.model.trace import ABSENT, FIRST_TEXT_ID, Bool, Int32, Trace, distinct_codes, name_mask

EVENTS_PER_CHUNK = 20_000
"""Events encoded at a time, to bound the number of Python objects."""


def write_excerpt(trace: Trace, limits: ExcerptRange) -> Iterator[bytes]:
    """Write the events of a range as a JSON document, chunk by chunk.

    Raise UsageError, before the first chunk, for an unknown step or a range without any slice or instant.
    """
    rows = _select_rows(trace, _resolve_step(trace, limits))
    shown = all_slices(trace) | event_phase_mask(trace, INSTANT_PHASES)
    if not shown[rows].any():
        hint = f"the recording ends at {format_duration(extent(trace).end)}" if shown.any() else None
        if limits.categories:
            known = sorted({trace.strings[code] for code in distinct_codes(trace.events.category)})
            hint = f"categories: {', '.join(known)}"
        raise UsageError("no events match", hint=hint)
    return _write_document(trace, rows)


def _resolve_step(trace: Trace, limits: ExcerptRange) -> ExcerptRange:
    """Return the range with the window of its step, if it names one."""
    if limits.step is None:
        return limits
    if limits.begin is not None or limits.end is not None:
        raise UsageError("give a step or a window, not both")
    table = steps(trace)
    if not table.recorded or limits.step not in table.names:
        hint = (
            list_options(f"{step_noun(trace)}s", table.names)
            if table.recorded
            else "no steps were recorded; give a window"
        )
        raise UsageError(f"there is no {step_noun(trace)} {limits.step!r}", hint=hint)
    i = table.names.index(limits.step)
    return replace(limits, begin=int(table.starts[i]), end=int(table.ends[i]))


def _select_rows(trace: Trace, limits: ExcerptRange) -> Int32:
    """Return int32[k], the rows that the excerpt includes, in file order."""
    slices, instants = all_slices(trace), event_phase_mask(trace, INSTANT_PHASES)
    category, inside = _category_mask(trace, limits.categories), _window_mask(trace, limits)
    long_enough = event_ends(trace) - trace.events.start >= limits.min_duration_ns
    included = inside & category & ((slices & long_enough) | instants)
    included |= inside & event_phase_mask(trace, b"C")
    included[_match_ends(trace, included)] = True
    other = inside & ~slices & ~event_phase_mask(trace, INSTANT_PHASES + FLOW_PHASES + b"CEM")
    if limits.categories:
        other &= category
    return np.flatnonzero(
        included | other | _complete_flows(trace, inside) | event_phase_mask(trace, b"M")
    ).astype(np.int32)


def _window_mask(trace: Trace, limits: ExcerptRange) -> Bool:
    start, finish = trace.events.start, event_ends(trace)
    inside: Bool = start != ABSENT
    if limits.begin is not None:
        inside &= (finish > limits.begin) | (start >= limits.begin)
    if limits.end is not None:
        inside &= start < limits.end
    return inside


def _category_mask(trace: Trace, categories: str) -> Bool:
    if not categories:
        return np.ones(len(trace), np.bool_)
    wanted = {category.strip().lower() for category in categories.split(",")}
    mask: Bool = name_mask(trace.strings, lambda text: text.lower() in wanted)[trace.events.category]
    return mask


def _match_ends(trace: Trace, included: Bool) -> Int32:
    """Return the "E" of each included "B": the event on its thread at the time it ends."""
    events = trace.events
    begins = np.flatnonzero(included & (events.phase == ord("B")))
    finishes = np.flatnonzero((events.phase == ord("E")) & (events.start != ABSENT)).astype(np.int32)
    if len(begins) == 0:
        return finishes[:0]
    wanted = np.stack([events.thread[begins], events.start[begins] + events.duration[begins]], 1)
    offered = np.stack([events.thread[finishes], events.start[finishes]], 1)
    _, code = np.unique(np.concatenate([wanted, offered]), axis=0, return_inverse=True)
    code = code.ravel()
    # If several end at the same time, take as many as are wanted.
    needed = np.bincount(code[: len(begins)], minlength=int(code.max()) + 1)
    offered_code = code[len(begins) :]
    order = np.argsort(offered_code, kind="stable")
    turn = np.empty(len(offered_code), np.int64)
    turn[order] = np.arange(len(offered_code)) - np.searchsorted(offered_code[order], offered_code[order], "left")
    return finishes[turn < needed[offered_code]]


def _complete_flows(trace: Trace, inside: Bool) -> Bool:
    """Return a mask, bool[n], of the flows that have all their ends in the window."""
    events, flows = trace.events, flow_rows(trace)
    mask = np.zeros(len(trace), np.bool_)
    if len(flows) == 0:
        return mask
    keys = events.name[flows], events.category[flows], events.id[flows]
    order = np.lexsort(keys)
    is_first = np.zeros(len(flows), np.bool_)
    for key in keys:
        is_first[1:] |= np.diff(key[order]) != 0
    code = np.empty(len(flows), np.int64)
    code[order] = np.cumsum(is_first)
    incomplete = np.bincount(code, ~inside[flows]) > 0
    mask[flows[~incomplete[code]]] = True
    return mask


def _write_document(trace: Trace, rows: Int32) -> Iterator[bytes]:
    """Write these events as a JSON document, chunk by chunk."""
    texts = _JsonTexts(trace)
    yield b"{"
    for key, value in trace.metadata.items():
        if key != "traceEvents":
            yield msgspec.json.encode(key) + b":" + msgspec.json.encode(value) + b","
    yield b'\n"traceEvents":['
    for first in range(0, len(rows), EVENTS_PER_CHUNK):
        objects = _build_event_objects(trace, rows[first : first + EVENTS_PER_CHUNK], texts)
        yield (b"\n" if first == 0 else b",\n") + b",\n".join(map(msgspec.json.encode, objects))
    yield b"\n]}\n"


class _JsonTexts:
    """A cache of the raw JSON of argument values, each validated once; invalid JSON becomes a string."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._raw: dict[tuple[str, int], msgspec.Raw] = {}

    def raw(self, key: str, code: int) -> msgspec.Raw:
        raw = self._raw.get((key, code))
        if raw is None:
            text = self._trace.args[key].dictionary[code].encode("utf-8", "replace")
            try:
                msgspec.json.decode(text)
            except msgspec.DecodeError:
                text = msgspec.json.encode(text.decode())
            raw = self._raw[key, code] = msgspec.Raw(text)
        return raw


def _build_event_objects(trace: Trace, rows: Int32, texts: _JsonTexts) -> list[dict[str, Any]]:
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
            event["ts"] = _format_microseconds(start + trace.trace_start_ns)
        if duration != ABSENT and phase != ord("B"):
            event["dur"] = _format_microseconds(duration)
        if id != ABSENT:
            is_text = FIRST_TEXT_ID <= id < FIRST_TEXT_ID + len(trace.text_ids)
            event["id"] = trace.text_ids[id - FIRST_TEXT_ID] if is_text else id
        objects.append(event)
    _add_arguments(trace, rows, objects, texts)
    return objects


def _format_microseconds(ns: int) -> msgspec.Raw:
    """Return `ns` as exact decimal microseconds, as profilers write times."""
    sign, ns = ("-", -ns) if ns < 0 else ("", ns)
    return msgspec.Raw(f"{sign}{ns // 1000}.{ns % 1000:03}".encode())


def _add_arguments(trace: Trace, rows: Int32, objects: list[dict[str, Any]], texts: _JsonTexts) -> None:
    for key, column in trace.args.items():
        index = np.searchsorted(column.rows, rows)
        index[index == len(column.rows)] = 0
        carriers = np.flatnonzero(column.rows[index] == rows)
        values = column.values[index[carriers]].tolist()
        if column.kind == "text":
            values = [column.dictionary[code] for code in values]
        elif column.kind == "json":
            values = [texts.raw(key, code) for code in values]
        for i, value in zip(carriers.tolist(), values, strict=True):
            if key.startswith("@"):
                objects[i][key[1:]] = value
            else:
                objects[i].setdefault("args", {})[key] = value
