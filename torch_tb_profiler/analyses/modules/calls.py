"""Call trees: that of a thread, one level at a time, and the calls of one module."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.modules.times import recomputed_calls
from torch_tb_profiler.analyses.tracks.tracks import Track, tracks
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.calls.calltree import call_tree
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.kinds import event_ends, event_lengths
from torch_tb_profiler.model.modules import Modules
from torch_tb_profiler.model.trace import Int32, Int64, Trace


class CallTreeIndex(msgspec.Struct, frozen=True):
    """The call tree, indexed so that any level can be read.

    rows    int32[k]    rows of the tree by parent, thread, then in order of time
    first   int64[n+1]  where the children of a row start in `rows`; those of row r end at first[r + 1]
    nested  int64[n]    ns that the children of a row cover
    device  int64[n]    ns of device work launched in a row or below it
    """

    rows: Int32
    first: Int64
    nested: Int64
    device: Int64

    def children(self, row: int) -> Int32:
        """Return the rows that `row` calls directly, in order of time."""
        return self.rows[self.first[row] : self.first[row + 1]]

    def roots(self, trace: Trace, thread: int) -> Int32:
        """Return the outermost rows of a thread (its code), in order of time; those of side lanes too."""
        rows = self.rows[: self.first[0]]
        low, high = np.searchsorted(trace.events.thread[rows], [thread, thread + 1])
        return rows[low:high]


@derived
def call_tree_index(trace: Trace) -> CallTreeIndex:
    """Return the children, covered time and device time of each call."""
    tree = call_tree(trace)
    rows, count = tree.rows, len(trace)
    parent = tree.parent[rows]
    order = np.lexsort((trace.events.start[rows], trace.events.thread[rows], parent))
    durations = event_ends(trace) - trace.events.start
    nested = np.zeros(count, np.int64)
    np.add.at(nested, parent[parent >= 0], durations[rows[parent >= 0]])
    device = np.zeros(count, np.int64)
    links = device_links(trace)
    linked = links.launch >= 0
    np.add.at(device, links.launch[linked], durations[links.rows[linked]])
    by_depth = rows[np.argsort(tree.depth[rows], kind="stable")]
    bounds = np.searchsorted(tree.depth[by_depth], np.arange(int(tree.depth.max(initial=0)) + 2))
    for low, high in zip(bounds[1:-1][::-1], bounds[2:][::-1], strict=True):
        members = by_depth[low:high]
        np.add.at(device, tree.parent[members], device[members])
    first = np.searchsorted(parent[order], np.arange(count + 1))
    return CallTreeIndex(rows[order], first, nested, device)


def threads_with_calls(trace: Trace) -> list[Track]:
    """Return the threads with calls, in the order of the timeline."""
    busy = set(trace.events.thread[call_tree(trace).rows].tolist())
    return [track for track in tracks(trace).tracks if track.kind == "thread" and track.code in busy]


def find_longest(trace: Trace, rows: Int32) -> int | None:
    """Return the position of the longest row, the first of equal ones, or None if there are no rows."""
    return int(np.argmax(event_lengths(trace, rows))) if len(rows) else None


class ModuleCall(msgspec.Struct, frozen=True):
    """A call of a module: its row in the trace, the code of its thread, times in ns.

    recomputed  backward made it, to compute activations again
    """

    event: int
    thread: int
    start: int
    duration: int
    device: int
    recomputed: bool


def list_module_calls(trace: Trace, model: Modules, place: int, rows: slice) -> tuple[int, list[ModuleCall]]:
    """Return (number of calls, a page of them, longest first); NotFoundError for an unknown place."""
    if not 0 <= place < len(model.names):
        raise NotFoundError(f"there is no module {place}", hint=f"places: 0 to {len(model.names) - 1}")
    events = model.calls[model.code[model.calls] == place]
    durations = event_lengths(trace, events)
    order = np.lexsort((events, -durations))[rows]
    page = events[order]
    columns = (
        page,
        trace.events.thread[page],
        trace.events.start[page],
        durations[order],
        call_tree_index(trace).device[page],
        recomputed_calls(trace, model)[page],
    )
    return len(events), [ModuleCall(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]
