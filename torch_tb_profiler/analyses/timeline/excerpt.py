"""A part of a trace as a trace file of its own: a window, some categories, slices that last long enough.

What stands on its own two ends stays whole: a "B" keeps its "E", a flow is kept where all its ends are. Names of
processes and threads ("M" events) and the metadata around the events always are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from torch_tb_profiler.analyses.tracks.flows import flow_rows
from torch_tb_profiler.analyses.tracks.tracks import INSTANT_PHASES, all_slices
from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.model.kinds import ends
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import ABSENT, FIRST_TEXT_ID, Bool, Int32, Trace, distinct, name_mask

CHUNK = 20_000
"""Events encoded at a time; the only ones that are Python objects."""


class Cut(msgspec.Struct, frozen=True):
    """What to keep.

    begin, end       ns since the trace's start; what touches [begin, end) is kept; None: open
    step             name of a step, instead of begin and end
    categories       of slices and instants, with commas between them, in any case; empty: all
    min_duration_ns  shorter slices are left out
    """

    begin: int | None = None
    end: int | None = None
    step: str | None = None
    categories: str = ""
    min_duration_ns: int = 0


def excerpt(trace: Trace, cut: Cut) -> Iterator[bytes]:
    """The JSON document of what the cut keeps, piece by piece.

    Raises UsageError, before the first piece, for an unknown step or a cut that keeps no slice and no instant.
    """
    cut = _at_step(trace, cut)
    rows = choose(trace, cut)
    if not (all_slices(trace)[rows] | _of_phase(trace, INSTANT_PHASES)[rows]).any():
        known = sorted({trace.strings[code] for code in distinct(trace.events.category)})
        raise UsageError("nothing of the trace is left", hint=f"categories: {', '.join(known)}")
    return write(trace, rows)


def _at_step(trace: Trace, cut: Cut) -> Cut:
    if cut.step is None:
        return cut
    found = steps(trace)
    if cut.begin is not None or cut.end is not None:
        raise UsageError("give a step or a window, not both")
    if not found.recorded or cut.step not in found.names:
        hint = f"steps: {', '.join(found.names)}" if found.recorded else "no step is recorded: give a window"
        raise UsageError(f"there is no step {cut.step!r}", hint=hint)
    i = found.names.index(cut.step)
    return replace(cut, begin=int(found.starts[i]), end=int(found.ends[i]))


def choose(trace: Trace, cut: Cut) -> Int32:
    """int32[k]: the rows that the cut keeps, in file order."""
    events = trace.events
    slices, category = all_slices(trace), _of_category(trace, cut.categories)
    inside = _touches(trace, cut)
    kept = slices & inside & category & (ends(trace) - events.start >= cut.min_duration_ns)
    kept |= _of_phase(trace, INSTANT_PHASES) & inside & category
    kept |= _of_phase(trace, b"C") & inside
    kept[_partners(trace, kept)] = True
    whole = _whole_flows(trace, inside)
    other = inside & ~slices & ~_of_phase(trace, INSTANT_PHASES + b"CEMstf")
    if cut.categories:
        other &= category
    return np.flatnonzero(kept | whole | other | _of_phase(trace, b"M")).astype(np.int32)


def _touches(trace: Trace, cut: Cut) -> Bool:
    start, finish = trace.events.start, ends(trace)
    inside: Bool = start != ABSENT
    if cut.begin is not None:
        inside &= (finish > cut.begin) | (start >= cut.begin)
    if cut.end is not None:
        inside &= start < cut.end
    return inside


def _of_phase(trace: Trace, phases: bytes) -> Bool:
    found: Bool = np.isin(trace.events.phase, np.frombuffer(phases, np.uint8))
    return found


def _of_category(trace: Trace, categories: str) -> Bool:
    if not categories:
        return np.ones(len(trace), np.bool_)
    wanted = {category.strip().lower() for category in categories.split(",")}
    named = name_mask(trace.strings, lambda text: text.lower() in wanted)
    found: Bool = named[trace.events.category]
    return found


def _partners(trace: Trace, kept: Bool) -> Int32:
    """The "E" of every kept "B": the event of its thread that stands where it ends."""
    events = trace.events
    begins = np.flatnonzero(kept & (events.phase == ord("B")))
    finishes = np.flatnonzero((events.phase == ord("E")) & (events.start != ABSENT)).astype(np.int32)
    if len(begins) == 0:
        return finishes[:0]
    wanted = np.stack([events.thread[begins], events.start[begins] + events.duration[begins]], 1)
    offered = np.stack([events.thread[finishes], events.start[finishes]], 1)
    _, code = np.unique(np.concatenate([wanted, offered]), axis=0, return_inverse=True)
    code = code.ravel()
    # Of several that end at one instant as many are taken as are wanted.
    found, times = np.unique(code[: len(begins)], return_counts=True)
    need = np.zeros(int(code.max()) + 1, np.int64)
    need[found] = times
    mine = code[len(begins) :]
    order = np.argsort(mine, kind="stable")
    turn = np.empty(len(mine), np.int64)
    turn[order] = np.arange(len(mine)) - np.searchsorted(mine[order], mine[order], "left")
    return finishes[turn < need[mine]]


def _whole_flows(trace: Trace, inside: Bool) -> Bool:
    """bool[n]: events of flows of which every end is in the window."""
    events, flows = trace.events, flow_rows(trace)
    found = np.zeros(len(trace), np.bool_)
    if len(flows) == 0:
        return found
    keys = events.name[flows], events.category[flows], events.id[flows]
    order = np.lexsort(keys)
    fresh = np.zeros(len(flows), np.bool_)
    for key in keys:
        fresh[1:] |= np.diff(key[order]) != 0
    code = np.empty(len(flows), np.int64)
    code[order] = np.cumsum(fresh)
    lost = np.bincount(code, ~inside[flows]) > 0
    found[flows[~lost[code]]] = True
    return found


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
    """Raw JSON of argument values, checked once each: what is no JSON goes out as a text."""

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
        made: dict[str, Any] = {"ph": chr(phase)} if phase else {}
        if category >= 0:
            made["cat"] = strings[category]
        if name >= 0:
            made["name"] = strings[name]
        place = trace.threads[thread]
        made.update({key: value for key, value in (("pid", place.pid), ("tid", place.tid)) if value is not None})
        if start != ABSENT:
            made["ts"] = microseconds(start + trace.trace_start_ns)
        if duration != ABSENT and phase != ord("B"):
            made["dur"] = microseconds(duration)
        if id != ABSENT:
            text = FIRST_TEXT_ID <= id < FIRST_TEXT_ID + len(trace.text_ids)
            made["id"] = trace.text_ids[id - FIRST_TEXT_ID] if text else id
        objects.append(made)
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
