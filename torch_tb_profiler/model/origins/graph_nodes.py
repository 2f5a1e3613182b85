"""Nodes of CUDA graphs: which node each device event ran, and what was noted about it at capture.

PyTorch 2.15 has two exporters. One writes a node's whole ID, the other its lower half beside the graph's:

    "graph id": 7, "graph node id": 30064771073        7 << 32 | 1
    "graph id": 7, "graph node id": 1                  the same node

Graphs count from 1 and nodes from 0, so an event without a graph ID has no node.

The second form has flows between nodes as well, with IDs from 2^40 on, slices of nodes that record an event or
call a function of the host, and counters of power, temperature and clocks. Both may move work to lanes of their
own: then `original_stream` is the stream that it ran on.
"""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.origin_records import NodeAnnotation
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Int32, Int64, Trace

GRAPH_KEY, NODE_KEY = "graph id", "graph node id"
_REGION_KEYS = ("module_fqn", "name", "str", "annotation")
"""Arguments that an annotation becomes, the most specific first."""

_PHASE_KEY = "autograd_phase"
FIRST_DEPENDENCY_FLOW = 2**40
"""Flows `ac2g` with this ID or a larger one lead from node to node of a graph, not from a call to its work."""


@derived
def graph_nodes(trace: Trace) -> Int64:
    """Return the whole ID of the graph node that each event ran, int64[n]; -1 if none."""
    node = np.full(len(trace), -1, np.int64)
    column = trace.args.get(NODE_KEY)
    if column is None:
        return node
    rows = np.asarray(column.rows, np.int32)
    number, graph = trace.arg_int(NODE_KEY, rows), trace.arg_int(GRAPH_KEY, rows)
    known = (number != ABSENT) & (number >= 0)
    in_graph = (graph > 0) & (graph < 2**31)
    whole = number >> 32 > 0
    joined = (np.where(in_graph, graph, 0) << 32) | np.where(known, number, 0)
    node[rows] = np.where(known & whole, number, np.where(known & in_graph, joined, -1))
    return node


def node_regions(trace: Trace) -> tuple[Int32, list[str]]:
    """Return (code of the annotation of each of `device_links(trace).rows`, int32[k], or NO_CODE; the texts).

    That is the annotation in the event itself, else the one in the records beside the trace.
    """
    rows = device_links(trace).rows
    nodes = graph_nodes(trace)[rows]
    codes, texts = np.full(len(rows), NO_CODE, np.int32), list[str]()
    in_graph = np.flatnonzero(nodes >= 0)
    if len(in_graph) == 0:
        return codes, texts
    for key in _REGION_KEYS:
        own, dictionary = trace.arg_codes(key, rows[in_graph])
        fresh = (own >= 0) & (codes[in_graph] < 0)
        codes[in_graph[fresh]] = own[fresh] + len(texts)
        texts += dictionary
    _add_annotations(trace.origin_records.annotations, nodes, codes, texts)
    return codes, texts


def _add_annotations(annotations: dict[str, NodeAnnotation], nodes: Int64, codes: Int32, texts: list[str]) -> None:
    """Set the regions of nodes that have none, in place, from the records."""
    if not annotations:
        return
    code_of: dict[str, int] = {}
    for node in np.unique(nodes[(nodes >= 0) & (codes < 0)]).tolist():
        note = annotations.get(str(node))
        if note is not None and note.region is not None:
            code = code_of.setdefault(note.region, len(texts))
            if code == len(texts):
                texts.append(note.region)
            codes[(nodes == node) & (codes < 0)] = code


def node_directions(trace: Trace) -> Int32:
    """Return 1 where the annotation of a device event's node says backward, 0 where it says forward, else -1."""
    rows = device_links(trace).rows
    nodes = graph_nodes(trace)[rows]
    found = np.full(len(rows), NO_CODE, np.int32)
    codes, texts = trace.arg_codes(_PHASE_KEY, rows)
    of_text = np.array([*(_direction(text) for text in texts), NO_CODE], np.int32)
    found = np.where(nodes >= 0, of_text[codes], found).astype(np.int32)
    for node, note in trace.origin_records.annotations.items():
        if note.backward is not None:
            found[(nodes == int(node)) & (found < 0)] = int(note.backward)
    return found


def _direction(phase: str) -> int:
    if phase.lower().startswith("backward"):
        return 1
    return 0 if phase.lower().startswith("forward") else NO_CODE


def node_stacks(trace: Trace) -> tuple[Int32, list[tuple[str, ...]]]:
    """Return (code of the launch stack of each of `device_links(trace).rows`, or NO_CODE; the stacks)."""
    rows, recorded = device_links(trace).rows, trace.origin_records.stacks
    nodes = graph_nodes(trace)[rows]
    codes, stacks = np.full(len(rows), NO_CODE, np.int32), list[tuple[str, ...]]()
    if not recorded:
        return codes, stacks
    distinct, which = np.unique(nodes, return_inverse=True)
    of_node = np.full(len(distinct), NO_CODE, np.int32)
    for i, node in enumerate(distinct.tolist()):
        if (stack := recorded.get(str(node))) and node >= 0:
            of_node[i] = len(stacks)
            stacks.append(stack)
    return of_node[which.reshape(-1)], stacks
