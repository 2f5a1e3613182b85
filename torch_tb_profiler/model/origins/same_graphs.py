"""Whether two traces are of one recording, or ran the same graphs: then notes on nodes count for both."""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.origins.graph_nodes import graph_nodes
from torch_tb_profiler.model.origins.replays import kernel_label
from torch_tb_profiler.model.trace import Int64, Trace


def same_node_times(trace: Trace, other: Trace) -> bool:
    """Return whether two traces have the same work of graph nodes at the same times: one recording, twice."""
    own, others = _node_work(trace), _node_work(other)
    return len(own) > 0 and np.array_equal(own, others)


def _node_work(trace: Trace) -> Int64:
    """Return (node, epoch ns of its start, duration) of each device event in a graph, int64[k, 3], sorted."""
    rows = device_links(trace).rows
    rows = rows[graph_nodes(trace)[rows] >= 0]
    start = trace.events.start[rows] + trace.base_ns + trace.trace_start_ns
    work = np.stack([graph_nodes(trace)[rows], start, trace.events.duration[rows]], axis=1).astype(np.int64)
    return work[np.lexsort(work.T[::-1])]


def same_node_names(trace: Trace, other: Trace) -> bool:
    """Return whether two traces ran the same graphs: each node of the first has the same kernel in the other."""
    own, others = _names_of_nodes(trace), _names_of_nodes(other)
    return bool(own) and all(others.get(node) == names for node, names in own.items())


def _names_of_nodes(trace: Trace) -> dict[int, set[str]]:
    rows = device_links(trace).rows
    rows = rows[graph_nodes(trace)[rows] >= 0]
    pairs = np.unique(np.stack([graph_nodes(trace)[rows], trace.events.name[rows]], axis=1), axis=0)
    names: dict[int, set[str]] = {}
    for node, code in pairs.tolist():
        names.setdefault(node, set()).add(kernel_label(trace.strings[code]) if code >= 0 else "")
    return names
