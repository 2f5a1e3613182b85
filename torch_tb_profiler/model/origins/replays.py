"""Replays of graphs: the device work that each graph launch ran, in the order of the graph's capture.

    cudaGraphLaunch, correlation 900 |   stream 7   rms_norm | mm | add     one replay of three kernels

The order is that of the node IDs, which count in the order of capture. Without them it is that of the start times,
which is the order of capture only if all work is on one stream.
"""

from __future__ import annotations

from enum import IntEnum

import msgspec
import numpy as np

from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.devices import stream_ids
from torch_tb_profiler.model.origins.captures import COPY, FILL, annotated_sizes
from torch_tb_profiler.model.origins.graph_nodes import NODE_KEY, graph_nodes
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int8, Int32, Int64, Trace, name_mask

_REPLAYED_SIZE = lazy_regex(r"\bbs=(\d+)|^execute_(\d+)_")
_CLONE = lazy_regex(r"\.kd$|\[clone .*\]")
_FILL_KERNEL, _COPY_KERNEL = "__amd_rocclr_fillBuffer", "__amd_rocclr_copyBuffer"
"""Kernels that AMD runs for memsets and copies."""


class ReplayOrder(IntEnum):
    """Why the order of a replay's kernels is that of the capture; UNKNOWN: it may be another."""

    UNKNOWN = 0
    ONE_STREAM = 1
    NODE_IDS = 2


class Replays(msgspec.Struct, frozen=True):
    """The r replays of a trace in order of their launches.

    positions  int64[k]    indices into `device_links(trace).rows`, replay by replay, each in order of capture
    bounds     int64[r+1]  where each replay begins in `positions`
    launches   int32[r]    row of the call that launched it, NO_CODE if that wasn't recorded
    order      int8[r]     a ReplayOrder: what the order of its kernels comes from
    sizes      batch size that an annotation around the launch names, None if none does
    """

    positions: Int64
    bounds: Int64
    launches: Int32
    order: Int8
    sizes: tuple[int | None, ...]

    def __len__(self) -> int:
        return len(self.launches)


@derived
def replayed_mask(trace: Trace) -> Bool:
    """Return which of `device_links(trace).rows` a graph launch ran, bool[k].

    Work of a graph node whose launch was not recorded was run by one, too.
    """
    is_launch = name_mask(trace.strings, lambda text: "GraphLaunch" in text)
    links = device_links(trace)
    by_launch: Bool = (links.launch >= 0) & is_launch[trace.events.name[links.launch]]
    if NODE_KEY in trace.args:
        by_launch |= (links.launch < 0) & (graph_nodes(trace)[links.rows] >= 0)
    return by_launch


@derived
def graph_replays(trace: Trace) -> Replays:
    """Return all replays of graphs in a trace."""
    links = device_links(trace)
    positions = np.flatnonzero(replayed_mask(trace))
    rows, launch = links.rows[positions], links.launch[positions]
    if len(positions) == 0:
        return Replays(positions, np.zeros(1, np.int64), launch, np.zeros(0, np.int8), ())
    launches, which = _group_by_launch(trace, rows, launch)
    node = graph_nodes(trace)[rows]
    counts = np.bincount(which, minlength=len(launches))
    bounds = np.concatenate([[0], np.cumsum(counts)])
    order = np.lexsort((node, which))
    has_nodes = _all_distinct(node[order], bounds)
    key = np.where(has_nodes[which], node, trace.events.start[rows])
    order = np.lexsort((key, which))
    stream = stream_ids(trace)[rows][order]
    one_stream = np.maximum.reduceat(stream, bounds[:-1]) == np.minimum.reduceat(stream, bounds[:-1])
    sizes = annotated_sizes(trace, launches, _REPLAYED_SIZE)
    kinds = np.where(has_nodes, ReplayOrder.NODE_IDS, np.where(one_stream, ReplayOrder.ONE_STREAM, 0))
    return Replays(positions[order], bounds, launches, kinds.astype(np.int8), tuple(sizes))


def _group_by_launch(trace: Trace, rows: Int32, launch: Int32) -> tuple[Int32, Int64]:
    """Return (the launch of each replay, in order of time; the replay of each row).

    Where no launch was recorded (NO_CODE), the correlation tells replays apart.
    """
    key = np.where(launch >= 0, launch, -1 - trace.arg_int("correlation", rows)).astype(np.int64)
    distinct, which = np.unique(key, return_inverse=True)
    which = which.reshape(-1)
    begin = np.full(len(distinct), np.iinfo(np.int64).max)
    np.minimum.at(begin, which, np.where(launch >= 0, trace.events.start[launch], trace.events.start[rows]))
    by_time = np.argsort(begin, kind="stable")
    rank = np.empty(len(distinct), np.int64)
    rank[by_time] = np.arange(len(distinct))
    launches = np.maximum(distinct, NO_CODE)[by_time].astype(np.int32)
    return launches, rank[which]


def _all_distinct(nodes: Int64, bounds: Int64) -> Bool:
    """Return for each replay whether its nodes, int64[k] ascending within a replay, are known and distinct."""
    first = np.zeros(len(nodes), np.bool_)
    first[bounds[:-1]] = True
    good = (nodes >= 0) & (first | (np.diff(nodes, prepend=nodes[0] - 1) != 0))
    return np.logical_and.reduceat(good, bounds[:-1])


def kernel_label(name: str) -> str:
    """Return a name that a launch and its kernel share: without arguments and suffixes of symbols."""
    if name.startswith((COPY, _COPY_KERNEL)):
        return COPY
    if name.startswith((FILL, _FILL_KERNEL)):
        return FILL
    return _CLONE.sub("", _strip_arguments(name)).strip()


def _strip_arguments(name: str) -> str:
    """Return a demangled name without its last parenthesized list, if it ends with one."""
    if not name.endswith(")"):
        return name
    depth = 0
    for position in range(len(name) - 1, -1, -1):
        depth += (name[position] == ")") - (name[position] == "(")
        if depth == 0:
            return name[:position]
    return name


def same_node_times(trace: Trace, other: Trace) -> bool:
    """Return whether two traces have the same work of graph nodes at the same times: one recording, twice."""
    own, others = _find_node_work(trace), _find_node_work(other)
    return len(own) > 0 and np.array_equal(own, others)


def _find_node_work(trace: Trace) -> Int64:
    """Return (node, epoch ns of its start, duration) of each device event in a graph, int64[k, 3], sorted."""
    rows = device_links(trace).rows
    rows = rows[graph_nodes(trace)[rows] >= 0]
    start = trace.events.start[rows] + trace.base_ns + trace.trace_start_ns
    work = np.stack([graph_nodes(trace)[rows], start, trace.events.duration[rows]], axis=1).astype(np.int64)
    return work[np.lexsort(work.T[::-1])]


def same_node_names(trace: Trace, other: Trace) -> bool:
    """Return whether two traces ran the same graphs: each node of the first has the same kernel in the other."""
    own, others = _collect_names_of_nodes(trace), _collect_names_of_nodes(other)
    return bool(own) and all(others.get(node) == names for node, names in own.items())


def _collect_names_of_nodes(trace: Trace) -> dict[int, set[str]]:
    rows = device_links(trace).rows
    rows = rows[graph_nodes(trace)[rows] >= 0]
    pairs = np.unique(np.stack([graph_nodes(trace)[rows], trace.events.name[rows]], axis=1), axis=0)
    names: dict[int, set[str]] = {}
    for node, code in pairs.tolist():
        names.setdefault(node, set()).add(kernel_label(trace.strings[code]) if code >= 0 else "")
    return names
