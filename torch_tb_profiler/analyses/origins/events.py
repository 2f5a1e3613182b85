"""The origin of single events, the source that was generated for them, and events grouped by name and origin."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.grouping import group
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.kinds import event_ends
from torch_tb_profiler.model.origins.compiled import calls_around, compiled_calls
from torch_tb_profiler.model.origins.origins import HOW, origins
from torch_tb_profiler.model.trace import NO_CODE, Int32, Int64, Trace

MAX_SOURCE_LENGTH = 20_000
"""Most characters of a kernel's source that are shown."""

_END = lazy_regex(r"^''', .*$|^'''\)$", re.MULTILINE)


class OriginGroups(msgspec.Struct, frozen=True):
    """Groups of events with one name and one origin, most time first.

    first    int64[g]  index into `origins(trace)` of one member
    longest  int32[g]  row of the longest member
    counts   int64[g]  number of members
    ns       int64[g]  their total time
    """

    first: Int64
    longest: Int32
    counts: Int64
    ns: Int64


@derived
def origin_groups(trace: Trace) -> OriginGroups:
    """Return all events with an origin in groups: device work, and compiled kernels on the host."""
    found = origins(trace)
    duration = (event_ends(trace) - trace.events.start)[found.rows]
    names = trace.events.name[found.rows]
    if len(names) == 0:
        empty = np.empty(0, np.int64)
        return OriginGroups(empty, empty.astype(np.int32), empty, empty)
    keys = (found.how, found.operator, found.modules, found.lines, found.shapes, found.nodes, found.region)
    groups = group(names, *keys, found.compile_id, found.backward, found.reason)
    ns = groups.sums(duration)
    by_time = np.lexsort((duration, groups.which))
    last = np.searchsorted(groups.which[by_time], np.arange(len(groups)), "right") - 1
    order = np.argsort(-ns, kind="stable")
    longest = found.rows[by_time[last]]
    return OriginGroups(groups.first[order], longest[order].astype(np.int32), groups.counts[order], ns[order])


def index_of_event(trace: Trace, row: int) -> int | None:
    """Return the index in `origins(trace)` of an event, None if it has no origin there."""
    rows = origins(trace).rows
    index = int(np.searchsorted(rows, row))
    return index if index < len(rows) and int(rows[index]) == row else None


def origin_values(trace: Trace, index: int) -> dict[str, Any]:
    """Return the origin of the event at an index of `origins(trace)`, unknown values as None."""
    found = origins(trace)
    how, backward = int(found.how[index]), int(found.backward[index])
    columns = ("operator", "modules", "lines", "shapes", "nodes", "region", "compile_id", "reason")
    values: dict[str, Any] = {name: found.value(name, index) for name in columns}
    return values | {"how": HOW[how] if how >= 0 else None, "backward": bool(backward) if backward >= 0 else None}


def generated_source(trace: Trace, row: int) -> str | None:
    """Return the generated source of the kernel that an event runs or calls, None if no record has it."""
    calls = compiled_calls(trace)
    if len(calls.rows) == 0:
        return None
    links = device_links(trace)
    place = int(np.searchsorted(links.rows, row))
    is_device = place < len(links.rows) and int(links.rows[place]) == row
    operator = int(links.operator[place]) if is_device else row
    index = int(calls_around(trace, np.array([operator], np.int32), calls)[0]) if operator >= 0 else NO_CODE
    if index < 0:
        return None
    kernel, graph = calls.kernels[index], calls.graphs[index]
    if kernel is None or graph is None:
        return None
    begin = re.search(rf"^{re.escape(kernel.name)} = async_compile\.", graph.source, re.MULTILINE)
    if begin is None:
        return None
    end = _END.search(graph.source, begin.end())
    return graph.source[begin.start() : end.end() if end else None][:MAX_SOURCE_LENGTH]
