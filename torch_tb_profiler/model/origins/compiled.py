"""Calls of kernels that torch.compile generated, joined with the compile records beside the trace.

    Torch-Compiled Region: 0/0 ------------------------------------|
      ## Call CompiledFxGraph fhmur24p... ## ------------------|      a graph, by its key in the compile cache
        graph_0_cpp_fused_add_0 |  aten::addmm -------|                 its kernels, in the order of its code
                                     aten::copy_ |                      inside a kernel: not one of its own

Without a key (the cache is off), the graph is found by the compile ID of the region around the call and whether it
runs backward. A record counts only if its code calls exactly these kernels in this order. No such call is around
kernels of AOTInductor: `packaged.py` joins them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import msgspec
import numpy as np

from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.model.calls.calltree import call_tree, enclosing_operators, enclosing_rows
from torch_tb_profiler.model.kinds import Kind, rows_of_kind
from torch_tb_profiler.model.origin_records import CompiledGraph, CompiledKernel
from torch_tb_profiler.model.origins.packaged import is_generated, kernel_name, packaged_kernels
from torch_tb_profiler.model.origins.replays import replayed_mask
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Int32, Trace, name_mask

T = TypeVar("T")

CALL = lazy_regex(r"^## Call CompiledFxGraph (?P<key>\S+) ##$")
_REGION = lazy_regex(r"^Torch-Compiled Region: (?P<id>\S+)")
_EXTERN = lazy_regex(r"^(?:extern_kernels\.(?P<op>\w+)|(?:torch\.ops\.)?(?P<ns>\w+)\.(?P<name>\w+)(?:\.\w+)?)$")
_FORWARD, _BACKWARD = "CompiledFunction", "CompiledFunctionBackward"

NO_RECORD = "no compile record was found beside the trace; write one with `torch_tb_profiler.handler`"
OTHER_RECORD = "the compile records beside the trace are of other graphs"
NOT_IN_RECORD = "launched in a compiled region, by a call that no compile record beside the trace has"
SEVERAL_RECORDS = "several compile records fit this graph"
NO_MAPPING = "the compile record has no node mapping for this graph (a backward graph has none)"
NO_LINES = "the compile record holds no source line for this kernel"


class CompiledCalls(msgspec.Struct, frozen=True):
    """Calls of compiled kernels on the host: operators directly inside a compiled graph, or of AOTInductor.

    rows        int32[c]  rows of the operators, ascending
    kernels     what the record says of each, None if unknown
    graphs      the graph of each, None if unknown
    backward    int32[c]  1 if the graph runs backward, 0 if not, NO_CODE if unknown
    compile_ids of the region around each call, None if it isn't recorded
    reasons     why the kernel is unknown, None if it is known
    """

    rows: Int32
    kernels: tuple[CompiledKernel | None, ...]
    graphs: tuple[CompiledGraph | None, ...]
    backward: Int32
    compile_ids: tuple[str | None, ...]
    reasons: tuple[str | None, ...]


class GraphCall(msgspec.Struct, frozen=True):
    """One call of a compiled graph, and the operators directly inside."""

    row: int
    key: str | None
    compile_id: str | None
    backward: bool
    operators: tuple[int, ...]


def has_compiled_calls(trace: Trace) -> bool:
    """Return whether a trace calls a compiled graph, or kernels that a record of AOTInductor explains."""
    return any(text.startswith("## Call") and CALL.match(text) for text in trace.strings) or bool(
        packaged_kernels(trace).values
    )


def has_indirect_kernels(trace: Trace) -> bool:
    """Return whether graphs replayed kernels, or compiled code called them: their launches explain nothing."""
    return has_compiled_calls(trace) or bool(replayed_mask(trace).any())


@derived
def compiled_calls(trace: Trace) -> CompiledCalls:
    """Return all calls of compiled kernels, with what is known of each."""
    graphs = trace.origin_records.graphs
    found: dict[int, tuple[CompiledKernel | None, CompiledGraph | None, int, str | None, str | None]] = {}
    for call in graph_calls(trace):
        names = [kernel_name(trace.strings[int(trace.events.name[row])]) for row in call.operators]
        fitting = fitting_graphs(call, graphs, partial(_pair_kernels, names))
        graph, kernels = fitting[0] if len(fitting) == 1 else (None, [None] * len(names))
        reason = None if graph is not None else _unknown_reason(len(fitting), len(graphs))
        for row, name, kernel in zip(call.operators, names, kernels, strict=True):
            if kernel is not None or is_generated(name):
                found[row] = kernel, graph, int(call.backward), call.compile_id, reason
    packaged, operators = packaged_kernels(trace), rows_of_kind(trace, Kind.CPU_OP)
    for row in operators[packaged.of_event[operators] >= 0].tolist():
        known, reason = packaged.values[int(packaged.of_event[row])]
        found[row] = known, None, NO_CODE, None, reason
    rows = sorted(found)
    values = [found[row] for row in rows]
    return CompiledCalls(
        np.array(rows, np.int32),
        tuple(each[0] for each in values),
        tuple(each[1] if each[0] is not None else None for each in values),
        np.array([each[2] for each in values], np.int32),
        tuple(each[3] for each in values),
        tuple(each[4] for each in values),
    )


@derived
def graph_calls(trace: Trace) -> list[GraphCall]:
    """Return the calls of compiled graphs, each with the operators in it that are in no other operator there."""
    is_call = name_mask(trace.strings, lambda text: CALL.match(text) is not None)
    if not is_call.any():
        return []
    names = trace.events.name
    slices = rows_of_kind(trace, Kind.CPU_OP, Kind.ANNOTATION)
    calls = slices[is_call[names[slices]]]
    mask = np.zeros(len(trace), np.bool_)
    mask[calls] = True
    around = enclosing_rows(trace, mask)
    operators = rows_of_kind(trace, Kind.CPU_OP)
    operators = operators[around[operators] >= 0]
    outer, depth = enclosing_operators(trace)[operators], call_tree(trace).depth
    direct = operators[(outer < 0) | (depth[outer] < depth[around[operators]])]
    inside: dict[int, list[int]] = defaultdict(list)
    for row in direct[np.argsort(trace.events.start[direct], kind="stable")].tolist():
        inside[int(around[row])].append(row)
    compile_ids, backward = _find_directions(trace, calls)
    result = []
    for row, compile_id, is_backward in zip(calls.tolist(), compile_ids, backward, strict=True):
        match = CALL.match(trace.strings[int(names[row])])
        key = match["key"] if match and match["key"] != "None" else None
        result.append(GraphCall(row, key, compile_id, is_backward, tuple(inside[row])))
    return result


def _find_directions(trace: Trace, calls: Int32) -> tuple[list[str | None], list[bool]]:
    """Return (compile ID, whether it runs backward) of each call.

    A backward call has no region around it; its function has the sequence number of the forward one.
    """
    sequence = trace.arg_int("Sequence number")
    parent, names = call_tree(trace).parent, trace.events.name

    def outer(row: int) -> tuple[str | None, int | None, int | None]:
        """Return the innermost region, forward function, and backward function around a row."""
        region, forward, backward = None, None, None
        above = int(parent[row])
        while above >= 0:
            text = trace.strings[int(names[above])] if names[above] >= 0 else ""
            if region is None and (match := _REGION.match(text)):
                region = match["id"]
            elif text == _FORWARD and forward is None:
                forward = above
            elif text == _BACKWARD and backward is None:
                backward = above
            above = int(parent[above])
        return region, forward, backward

    forward_rows = [
        row for row in rows_of_kind(trace, Kind.CPU_OP).tolist() if trace.strings[int(names[row])] == _FORWARD
    ]
    region_of: dict[int, set[str]] = defaultdict(set)
    for row in forward_rows:
        region = outer(row)[0]
        if region is not None and sequence[row] != ABSENT:
            region_of[int(sequence[row])].add(region)
    ids: list[str | None] = []
    directions: list[bool] = []
    for row in calls.tolist():
        region, _, backward = outer(row)
        directions.append(backward is not None)
        regions = region_of.get(int(sequence[backward]), set()) if backward is not None else set()
        ids.append(region if backward is None else next(iter(regions)) if len(regions) == 1 else None)
    return ids, directions


def fitting_graphs(
    call: GraphCall, graphs: Sequence[CompiledGraph], pair: Callable[[Sequence[CompiledKernel]], T | None]
) -> list[tuple[CompiledGraph, T]]:
    """Return the graphs whose records fit a call, each with its kernels as paired.

    pair  pairs the kernels of a record with those of the call; None if they don't fit

    A call is explained only if there is exactly one. Records with the same code and kernels count as one.
    """
    found: dict[tuple[str, tuple[CompiledKernel, ...]], tuple[CompiledGraph, T]] = {}
    for graph in _find_candidate_graphs(call, graphs):
        paired = pair(graph.kernels)
        if paired is not None:
            found.setdefault((graph.source or graph.file, graph.kernels), (graph, paired))
    return list(found.values())


def _unknown_reason(fitting: int, graphs: int) -> str:
    """Return why a call is unknown: of `graphs` records, `fitting` ones fit it, not exactly one."""
    if graphs == 0:
        return NO_RECORD
    return SEVERAL_RECORDS if fitting else OTHER_RECORD


def _find_candidate_graphs(call: GraphCall, graphs: Sequence[CompiledGraph]) -> list[CompiledGraph]:
    """Return the graphs that a call may be of, whatever their kernels are.

    A graph with another key than that of the call is another graph.
    """
    keyed = [each for each in graphs if each.key == call.key and call.key is not None]
    return keyed or [
        each
        for each in graphs
        if each.key is None
        and each.backward == call.backward
        and (call.compile_id is None or each.compile_id == call.compile_id)
    ]


def _pair_kernels(names: Sequence[str], kernels: Sequence[CompiledKernel]) -> list[CompiledKernel | None] | None:
    """Return the kernel that each operator calls, None for an operator that is no kernel of the graph.

    Returns None if the operators aren't the calls of exactly these kernels. Where the generated kernels themselves
    were not recorded (C++ kernels are only on request), those of libraries must fit.
    """
    if not any(map(is_generated, names)):
        kernels = [each for each in kernels if not is_generated(each.name)]
    known = {each.name for each in kernels} | {extern_operator(each.name) for each in kernels}
    result: list[CompiledKernel | None] = []
    place = 0
    for name in names:
        if not (is_generated(name) or name in known):
            result.append(None)
        elif place < len(kernels) and name in (kernels[place].name, extern_operator(kernels[place].name)):
            result.append(kernels[place])
            place += 1
        else:
            return None
    return result if place == len(kernels) and place else None


def extern_operator(name: str) -> str:
    """Return the operator that a kernel of a library is recorded as, `aten::mm` for `extern_kernels.mm`."""
    match = _EXTERN.match(name)
    if match is None:
        return name
    return f"aten::{match['op']}" if match["op"] else f"{match['ns']}::{match['name']}"


def calls_around(trace: Trace, operators: Int32, calls: CompiledCalls) -> Int32:
    """Return the index in `calls` of the call that is, or is around, each operator, int32[k]; NO_CODE if none."""
    index = np.full(len(trace) + 1, NO_CODE, np.int32)
    index[calls.rows] = np.arange(len(calls.rows))
    around = enclosing_operators(trace)
    current: Int32 = operators.copy()
    while (climbing := (current >= 0) & (index[current] < 0)).any():
        current[climbing] = around[current[climbing]]
    return np.where(current >= 0, index[current], NO_CODE).astype(np.int32)
