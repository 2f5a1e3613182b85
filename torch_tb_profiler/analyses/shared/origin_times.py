"""Time of kernels by where they come from: operator, module, and lines of the program."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.grouping import Groups, group
from torch_tb_profiler.model.kinds import event_ends
from torch_tb_profiler.model.origins.origins import (
    CAPTURE,
    COMPILE_RECORD,
    GRAPH_NODE,
    HOW,
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
    duration = (event_ends(trace) - trace.events.start)[found.rows[position]]
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
                how=HOW[how] if how >= 0 else None,
                reason=found.value("reason", at),
                kernels=int(groups.counts[index]),
                ns=int(ns[index]),
                event=int(found.rows[longest[index]]),
            )
        )
    return times


class SharedOrigins(msgspec.Struct, frozen=True):
    """What all events of each group have in common; None where they differ or it is unknown, with the reason."""

    operator: list[str | None]
    module: list[str | None]
    line: list[str | None]
    reason: list[str | None]


def shared_origins(trace: Trace, rows: Int32, groups: Groups) -> SharedOrigins:
    """Return what the members of each group of device events, `rows` int32[k], have in common."""
    found, position = origins(trace), origin_positions(trace)[rows]

    def shared(name: str) -> list[int]:
        codes = np.append(getattr(found, name), NO_CODE)[position]
        low = np.full(len(groups), np.iinfo(np.int32).max, np.int32)
        high = np.full(len(groups), NO_CODE - 1, np.int32)
        np.minimum.at(low, groups.which, codes)
        np.maximum.at(high, groups.which, codes)
        return [a if a == b else NO_CODE - 1 for a, b in zip(low.tolist(), high.tolist(), strict=True)]

    operator, module, line, reason = map(shared, ("operator", "modules", "lines", "reason"))
    tables = found.tables
    return SharedOrigins(
        operator=[tables["operator"][code] if code >= 0 else None for code in operator],
        module=["/".join(tables["modules"][code]) if code >= 0 else None for code in module],
        line=[tables["lines"][code][0] if code >= 0 else None for code in line],
        reason=[
            SEVERAL
            if min(codes) < NO_CODE
            else (tables["reason"][codes[3]] if codes[3] >= 0 and min(codes[:3]) < 0 else None)
            for codes in zip(operator, module, line, reason, strict=True)
        ],
    )


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
