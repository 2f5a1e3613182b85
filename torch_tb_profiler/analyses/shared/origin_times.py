"""Time of kernels by where they come from: operator, module, and lines of the program."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.grouping import Groups, group
from torch_tb_profiler.model.kinds import event_lengths
from torch_tb_profiler.model.origins.origins import (
    CAPTURE,
    COMPILE_RECORD,
    GRAPH_NODE,
    ORIGIN_SOURCES,
    Origins,
    origin_positions,
    origins,
)
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int32, Int64, Trace

SEVERAL = "its kernels come from several places"


class OriginTime(msgspec.Struct, frozen=True):
    """Kernels of one origin: their number, total time in ns, and the longest one's row.

    module  path, outermost first, joined by "/"
    lines   the innermost line; of a compiled kernel one for each statement that it computes
    reason  why something is unknown
    """

    operator: str | None
    module: str | None
    lines: tuple[str, ...]
    how: str | None
    reason: str | None
    kernels: int
    ns: int
    event: int


def origin_times(trace: Trace, rows: Int32) -> list[OriginTime]:
    """Return the time of events by origin, most time first; events that have no origin are left out."""
    found = origins(trace)
    position = origin_positions(trace)[rows]
    position = position[position >= 0]
    if len(position) == 0:
        return []
    duration = event_lengths(trace, found.rows[position])
    keys = (found.operator, found.modules, found.lines, found.how, found.reason)
    groups = group(*(column[position] for column in keys))
    ns, by_time = groups.sums(duration), np.lexsort((duration, groups.which))
    last = np.searchsorted(groups.which[by_time], np.arange(len(groups)), "right") - 1
    longest, first = position[by_time[last]], position[groups.first]
    times = []
    for index in np.argsort(-ns, kind="stable").tolist():
        at, how = int(first[index]), int(found.how[first[index]])
        modules, lines = found.value("modules", at), found.value("lines", at) or ()
        times.append(
            OriginTime(
                operator=found.value("operator", at),
                module=None if modules is None else "/".join(modules),
                lines=lines if how == COMPILE_RECORD else lines[:1],
                how=ORIGIN_SOURCES[how] if how >= 0 else None,
                reason=found.value("reason", at),
                kernels=int(groups.counts[index]),
                ns=int(ns[index]),
                event=int(found.rows[longest[index]]),
            )
        )
    return times


class SharedOrigins(msgspec.Struct, frozen=True):
    """What all events of known origin in each group have in common; None where they differ or nothing is known.

    reason  why something is None, or the origin of some events is unknown
    places  number of different known origins: operator, and line or else module
    """

    operator: list[str | None]
    module: list[str | None]
    line: list[str | None]
    reason: list[str | None]
    places: list[int]


def shared_origins(trace: Trace, rows: Int32, groups: Groups) -> SharedOrigins:
    """Return what the members of each group of device events, `rows` int32[k], have in common."""
    found, position = origins(trace), origin_positions(trace)[rows]
    known = np.append((found.operator >= 0) | (found.lines >= 0) | (found.modules >= 0), False)[position]
    operator, module, line, reason = (
        _shared_codes(groups, known, np.append(column, NO_CODE)[position])
        for column in (found.operator, found.modules, found.lines, found.reason)
    )
    unknown = _shared_codes(groups, ~known, np.append(found.reason, NO_CODE)[position])
    unknown_counts = np.bincount(groups.which[~known], minlength=len(groups))
    tables = found.tables

    def explain(which: int) -> str | None:
        codes = operator[which], module[which], line[which]
        why = tables["reason"][reason[which]] if reason[which] >= 0 else None
        parts = [SEVERAL] if _DIFFERENT in codes else [why] if why and min(codes) < 0 else []
        if count := int(unknown_counts[which]):
            cause = tables["reason"][unknown[which]] if unknown[which] >= 0 else "for several reasons"
            if count == groups.counts[which]:
                return cause if unknown[which] >= 0 else None
            parts.append(f"unknown for {count:,} of {groups.counts[which]:,} kernels: {cause}")
        return "; ".join(parts) or None

    return SharedOrigins(
        operator=[tables["operator"][code] if code >= 0 else None for code in operator],
        module=["/".join(tables["modules"][code]) if code >= 0 else None for code in module],
        line=[tables["lines"][code][0] if code >= 0 else None for code in line],
        reason=list(map(explain, range(len(groups)))),
        places=_count_places(found, position[known], groups.which[known], len(groups)),
    )


_DIFFERENT = NO_CODE - 1


def _shared_codes(groups: Groups, members: Bool, codes: Int32) -> list[int]:
    """Return the code that the chosen members of each group share, _DIFFERENT if none, NO_CODE without members."""
    low = np.full(len(groups), np.iinfo(np.int32).max, np.int32)
    high = np.full(len(groups), _DIFFERENT, np.int32)
    np.minimum.at(low, groups.which[members], codes[members])
    np.maximum.at(high, groups.which[members], codes[members])
    same = np.where(low == high, low, np.where(high == _DIFFERENT, NO_CODE, _DIFFERENT))
    shared: list[int] = same.tolist()
    return shared


def _count_places(found: Origins, at: Int32, which: Int64, count: int) -> list[int]:
    """Return how many different origins each of `count` groups has; `at` int32[k] are positions of known ones."""
    places: list[set[tuple[str | None, str]]] = [set() for _ in range(count)]
    for index in group(which, found.operator[at], found.modules[at], found.lines[at]).first.tolist():
        lines, modules = (found.value(column, int(at[index])) or () for column in ("lines", "modules"))
        operator = found.value("operator", int(at[index]))
        places[which[index]].add((operator, lines[0] if lines else "/".join(modules)))
    return list(map(len, places))


def indirect_origin(trace: Trace, row: int) -> str:
    """Return where a replayed or compiled kernel comes from: "mm in Layer_3/Linear_0, model.py:41".

    That is its operator, the innermost two modules, and the innermost line; "" of any other event.
    """
    found, position = origins(trace), int(origin_positions(trace)[row])
    is_replayed = position >= 0 and int(found.how[position]) in (CAPTURE, GRAPH_NODE)
    if position < 0 or not (is_replayed or found.value("nodes", position)):
        return ""
    operator, modules = found.value("operator", position), found.value("modules", position) or ()
    lines = found.value("lines", position) or ()
    name = operator.removeprefix("aten::") if operator else "a kernel" if modules else ""
    place = f"{name} in {'/'.join(modules[-2:])}" if modules else name
    return ", ".join(part for part in (place, *lines[:1]) if part)


def has_known_origin(trace: Trace, rows: Int32) -> Bool:
    """Return whether an operator or a line of each event is known, bool[k]."""
    found, position = origins(trace), origin_positions(trace)[rows]
    known = np.append((found.operator >= 0) | (found.lines >= 0), False)
    inside: Bool = known[position]
    return inside


def rows_from_operator(trace: Trace, rows: Int32, name: str) -> Bool:
    """Return which events come from an operator of this name, bool[k]."""
    found, position = origins(trace), origin_positions(trace)[rows]
    codes: Int64 = np.flatnonzero(np.array([text == name for text in found.tables["operator"]], np.bool_))
    inside: Bool = np.append(np.isin(found.operator, codes), False)[position]
    return inside
