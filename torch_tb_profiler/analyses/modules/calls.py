"""The call tree of a thread, one level at a time."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.tracks.tracks import Track, tracks
from torch_tb_profiler.model.calls.calltree import call_tree
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.kinds import event_ends
from torch_tb_profiler.model.trace import Int32, Int64, Trace, derived


class Calls(msgspec.Struct, frozen=True):
    """The call tree, indexed so that any level can be read.

    rows    int32[k]    rows of the tree by parent, thread, then in order of time
    first   int64[n+1]  where the children of a row begin in `rows`; those of row r end at first[r + 1]
    nested  int64[n]    ns that the children of a row cover
    device  int64[n]    ns of device work launched in a row or below it
    """

    rows: Int32
    first: Int64
    nested: Int64
    device: Int64

    def children(self, row: int) -> Int32:
        """Rows called directly by this one, in order of time."""
        return self.rows[self.first[row] : self.first[row + 1]]

    def roots(self, trace: Trace, thread: int) -> Int32:
        """Outermost rows of a thread (code in the trace), in order of time; those of side lanes too."""
        rows = self.rows[: self.first[0]]
        low, high = np.searchsorted(trace.events.thread[rows], [thread, thread + 1])
        return rows[low:high]


@derived
def calls(trace: Trace) -> Calls:
    """Children, covered time and device time of each call."""
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
    return Calls(rows[order], np.searchsorted(parent[order], np.arange(count + 1)), nested, device)


def threads(trace: Trace) -> list[Track]:
    """Threads with calls, in the order of the timeline."""
    busy = set(trace.events.thread[call_tree(trace).rows].tolist())
    return [track for track in tracks(trace).tracks if track.kind == "thread" and track.code in busy]


def longest(trace: Trace, rows: Int32) -> int | None:
    """Position of the row that takes longest, the first of equal ones; None of no rows."""
    return int(np.argmax((event_ends(trace) - trace.events.start)[rows])) if len(rows) else None
