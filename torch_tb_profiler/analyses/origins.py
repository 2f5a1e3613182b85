"""Find where device work comes from: the origin of events, and the share of kernel time whose origin is known.

An origin is an operator, a module, or a source line of the program.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.grouping import group
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.kinds import Kind, event_kinds, event_lengths
from torch_tb_profiler.model.origins.compiled import calls_around, compiled_calls
from torch_tb_profiler.model.origins.origins import ORIGIN_SOURCES, origins
from torch_tb_profiler.model.origins.replayed_kernels import replayed_kernels
from torch_tb_profiler.model.origins.replays import graph_replays
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int32, Int64, Trace, distinct_codes

MAX_SOURCE_LENGTH = 20_000
"""Most characters of a kernel's source that are shown."""

_END = lazy_regex(r"^''', .*$|^'''\)$", re.MULTILINE)


class UnknownOrigins(msgspec.Struct, frozen=True):
    """Kernels of which something is unknown for one reason: how many, and their total time in ns."""

    reason: str
    kernels: int
    ns: int


class CaptureUse(msgspec.Struct, frozen=True):
    """Captures with the same source and batch size: their launches, and the replays that they explain."""

    source: str
    size: int | None
    captures: int
    launches: int
    replays: int


class OriginCoverage(msgspec.Struct, frozen=True):
    """Known origins of the kernels of a trace; in a trace without device, of the compiled kernels on the host.

    kernels    their number
    kernel_ns  their total time
    known_ns   the part whose "operator", "module" or "line" is known
    how_ns     the part that each source explains first
    lost       for each reason, most time first
    untraced   the same for the kernels without a line: something else may be unknown of the others
    captures   that were found, in the order in which they were read
    replays    graph launches with kernels
    is_device  whether the kernels ran on a device
    """

    kernels: int
    kernel_ns: int
    known_ns: dict[str, int]
    how_ns: dict[str, int]
    lost: list[UnknownOrigins]
    untraced: list[UnknownOrigins]
    captures: list[CaptureUse]
    replays: int
    is_device: bool


@derived
def coverage(trace: Trace) -> OriginCoverage:
    """Return how much of the kernel time of a trace has a known origin."""
    found = origins(trace)
    kernels = found.is_device & (event_kinds(trace)[found.rows] == Kind.KERNEL)
    is_device = bool(found.is_device.any())
    wanted = np.flatnonzero(kernels if is_device else ~found.is_device)
    duration = event_lengths(trace, found.rows[wanted])

    def time_of(mask: Bool) -> int:
        return int(duration[mask].sum())

    def by_reason(among: Bool) -> list[UnknownOrigins]:
        reasons = np.where(among, found.reason[wanted], NO_CODE)
        lost = []
        for code in distinct_codes(reasons):
            mask = reasons == code
            lost.append(UnknownOrigins(found.tables["reason"][code], int(mask.sum()), time_of(mask)))
        return sorted(lost, key=lambda each: (-each.ns, each.reason))

    how = found.how[wanted]
    return OriginCoverage(
        kernels=len(wanted),
        kernel_ns=int(duration.sum()),
        known_ns={
            "operator": time_of(found.operator[wanted] >= 0),
            "module": time_of(found.modules[wanted] >= 0),
            "line": time_of(found.lines[wanted] >= 0),
        },
        how_ns={name: time_of(how == code) for code, name in enumerate(ORIGIN_SOURCES) if (how == code).any()},
        lost=by_reason(np.ones(len(wanted), np.bool_)),
        untraced=by_reason(found.lines[wanted] < 0),
        captures=_list_capture_uses(trace),
        replays=len(graph_replays(trace)),
        is_device=is_device,
    )


def _list_capture_uses(trace: Trace) -> list[CaptureUse]:
    """Return the captures of a trace, by source and batch size."""
    if not len(graph_replays(trace)):
        return []
    resolved = replayed_kernels(trace)
    uses: dict[tuple[str, int | None], list[int]] = defaultdict(lambda: [0, 0, 0])
    for capture, replays in zip(resolved.captures.captures, resolved.matched, strict=True):
        use = uses[capture.source, capture.size]
        use[0] += 1
        use[1] += len(capture.kernels)
        use[2] = max(use[2], replays)
    return [CaptureUse(source, size, *counts) for (source, size), counts in uses.items()]


def line_share(covered: OriginCoverage) -> float:
    """Return the share of kernel time that is traced to a line, 0..1; 0 without kernels."""
    return covered.known_ns["line"] / covered.kernel_ns if covered.kernel_ns else 0.0


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
    duration = event_lengths(trace, found.rows)
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
    return values | {
        "how": ORIGIN_SOURCES[how] if how >= 0 else None,
        "backward": bool(backward) if backward >= 0 else None,
    }


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
