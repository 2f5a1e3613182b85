"""What the host does in the pieces of the path that are its own: the innermost slice of each moment."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec
import numpy as np

from torch_tb_profiler.analyses.schedule.path import PieceKind, critical_path
from torch_tb_profiler.base.intervals import merge
from torch_tb_profiler.base.markers import is_data_loading
from torch_tb_profiler.model.calls.calltree import call_tree
from torch_tb_profiler.model.calls.enclosing import changes
from torch_tb_profiler.model.kinds import Kind, ends, kinds, of_kind
from torch_tb_profiler.model.schedule.call_names import waits_for_device, waits_for_stream
from torch_tb_profiler.model.trace import NO_CODE, Int8, Int32, Int64, Trace, derived, name_mask

HOST_CATEGORIES = (
    "data_loading",
    "operator",
    "launch_call",
    "sync_call",
    "allocator",
    "runtime",
    "python",
    "annotation",
    "unrecorded",
)
"""What the host does; `sync_call` is the call's own time, without its wait."""

_LAUNCH = re.compile(r"Launch|Memcpy|Memset|enqueueCommand|submit", re.IGNORECASE)
_ALLOCATOR = re.compile(
    r"^(?:cuda|hip|cu|ze)\w*(?:Malloc|Free|HostAlloc|MemAlloc|HostRegister|HostUnregister|MemCreate|MemMap|MemUnmap|"
    r"MemRelease)",
    re.IGNORECASE,
)


def is_allocator(name: str) -> bool:
    """Calls that allocate, free or register memory."""
    return _ALLOCATOR.search(name) is not None


class HostPieces(msgspec.Struct, frozen=True):
    """Host time of the path by slice; columns of length k.

    row       int32  the innermost slice, NO_CODE where nothing is recorded
    category  int8   index into HOST_CATEGORIES
    thread    int64  code
    begin, end  int64  ns on the host's clock
    step      int64  as in Path
    """

    row: Int32
    category: Int8
    thread: Int64
    begin: Int64
    end: Int64
    step: Int64


@derived
def slice_categories(trace: Trace) -> Int8:
    """int8[n]: what each host slice does; what lies in a wait for data is data loading."""
    kind = kinds(trace)
    code = HOST_CATEGORIES.index
    category = np.full(len(trace), code("unrecorded"), np.int8)
    for each, name in ((Kind.CPU_OP, "operator"), (Kind.ANNOTATION, "annotation"), (Kind.PYTHON, "python")):
        category[kind == each] = code(name)
    calls = (kind == Kind.RUNTIME) | (kind == Kind.DRIVER)
    category[calls] = code("runtime")
    category[calls & _named(trace, lambda text: _LAUNCH.search(text) is not None)] = code("launch_call")
    category[waits_for_device(trace) | waits_for_stream(trace)] = code("sync_call")
    category[calls & _named(trace, is_allocator)] = code("allocator")
    marks = (kind == Kind.ANNOTATION) | (kind == Kind.CPU_OP)
    category[marks & _named(trace, is_data_loading)] = code("data_loading")
    return category


def _named(trace: Trace, holds: Callable[[str], bool]) -> np.ndarray:
    mask: np.ndarray = name_mask(trace.strings, holds)[trace.events.name]
    return mask


@derived
def host_pieces(trace: Trace) -> HostPieces:
    """The host's pieces of the path, cut at the borders of slices."""
    path, tree = critical_path(trace), call_tree(trace)
    rows = tree.rows[tree.lane[tree.rows] == 0]
    of_thread = trace.events.thread[rows]
    parts = []
    for thread in np.unique(path.ref[path.kind == PieceKind.HOST]).tolist():
        mine = np.flatnonzero((path.kind == PieceKind.HOST) & (path.ref == thread))
        times, running, category = _states(trace, thread, rows[of_thread == thread])
        # Piece k of a thread lies in [times[k - 1], times[k]).
        low = np.searchsorted(times, path.begin[mine], "right")
        high = np.searchsorted(times, path.end[mine], "left")
        count = high - low + 1
        of = np.repeat(np.arange(len(mine)), count)
        state = np.arange(len(of)) - np.repeat(np.cumsum(count) - count, count) + low[of]
        edges = np.append(times, np.iinfo(np.int64).max)
        begin = np.where(state > low[of], edges[state - 1], path.begin[mine][of])
        end = np.minimum(edges[state], path.end[mine][of])
        kept = end > begin
        of, state = of[kept], state[kept]
        threads = np.full(len(of), thread, np.int64)
        parts.append((running[state], category[state], threads, begin[kept], end[kept], path.step[mine][of]))
    if not parts:
        none = np.empty(0, np.int64)
        return HostPieces(none.astype(np.int32), none.astype(np.int8), none, none, none, none)
    return HostPieces(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _states(trace: Trace, thread: int, rows: Int32) -> tuple[Int64, Int32, Int8]:
    """(times, what runs before each and after the last, its category); waits for data need not nest."""
    times, running = changes(trace, call_tree(trace), rows)
    marks = of_kind(trace, Kind.ANNOTATION, Kind.CPU_OP)
    marks = marks[(slice_categories(trace)[marks] == 0) & (trace.events.thread[marks] == thread)]
    loading = merge(trace.events.start[marks], ends(trace)[marks])
    borders = np.setdiff1d(np.concatenate(loading), times)
    place = np.searchsorted(times, borders, "left")
    times, running = np.insert(times, place, borders), np.insert(running, place, running[place])
    category = np.where(running == NO_CODE, len(HOST_CATEGORIES) - 1, slice_categories(trace)[running])
    begin = np.append(np.iinfo(np.int64).min, times)
    at = np.searchsorted(loading.starts, begin, "right") - 1
    inside = at >= 0
    inside[inside] = begin[inside] < loading.ends[at[inside]]
    category[inside] = HOST_CATEGORIES.index("data_loading")
    return times, running, category.astype(np.int8)
