"""Operators: their total and self time on the host, and the device work that they launch.

    aten::linear ------------------------|   total 40; self 40 - 30 = 10
      aten::addmm ---------------------|     total 30; self 30 - 8 = 22
        cudaLaunchKernel ------|             launches gemm: device self of addmm, device total of both

An operator whose only nested operator has the same name is merged with it into one call, as in the tables of the
autograd profiler.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from torch_tb_profiler.base.arrays import sums_by_number
from torch_tb_profiler.base.markers import is_training_mark
from torch_tb_profiler.base.memo import prepared
from torch_tb_profiler.model.calls.calltree import call_tree, enclosing_operators
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.kernels.tensor_cores import TC_UNKNOWN, TC_YES, are_eligible, uses_tensor_cores
from torch_tb_profiler.model.kinds import Kind, event_kinds, event_spans, rows_of_kind
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int32, Int64, Trace, name_mask


class Operators(msgspec.Struct, frozen=True):
    """Calls of operators, without nested duplicates. Columns have length k unless noted; times in ns.

    rows                     int32  rows of the calls, in file order
    host_total, host_self    int64  self = total - nested operators - runtime and driver calls; frames and
                                    annotations inside do not reduce it
    device_total, device_self  int64  durations of the device work launched inside; self: not in a nested operator
    cores_total, cores_self  int64  the share of these on Tensor Cores
    tc_unknown_total, tc_unknown_self  int64  the share of kernels whose names don't show their use of Tensor Cores
    eligible                 bool   whether the operator, or one nested in it, could run on Tensor Cores, or did
    parent                   int32  position of the operator around each, NO_CODE for none
    owner                    int32[n]  for every row of the trace: position in `rows` of the innermost operator
                                    that is, or is around, the event; for device work, the operator that launched
                                    it; NO_CODE for none
    """

    rows: Int32
    host_total: Int64
    host_self: Int64
    device_total: Int64
    device_self: Int64
    cores_total: Int64
    cores_self: Int64
    tc_unknown_total: Int64
    tc_unknown_self: Int64
    eligible: Bool
    parent: Int32
    owner: Int32


@prepared
def operators(trace: Trace) -> Operators:
    """Return every call of an operator with its times."""
    tree, around = call_tree(trace), enclosing_operators(trace)
    nodes = tree.rows[event_kinds(trace)[tree.rows] == Kind.CPU_OP]
    nodes = nodes[_depth_order(tree.depth[nodes])]
    node_owner = _merge_targets(trace, nodes, around)
    unmerged = nodes[node_owner.take(nodes) == nodes]
    rows = np.sort(unmerged[operator_name_mask(trace).take(trace.events.name.take(unmerged))])
    position = np.full(len(trace) + 1, NO_CODE, np.int32)
    position[rows] = np.arange(len(rows), dtype=np.int32)
    owner = _find_owners(trace, around, node_owner, position)

    def lengths(of: Int32) -> Int64:
        start, end = event_spans(trace, of)
        return end - start

    host_total = lengths(rows)
    nested_time = _sums(len(rows), _find_enclosing_positions(owner, around, unmerged), lengths(unmerged))
    api_calls = _find_outermost_calls(trace, tree.parent)
    nested_time += _sums(len(rows), owner[api_calls], lengths(api_calls))

    work = device_links(trace).rows
    uses = uses_tensor_cores(trace)[work]
    launched_by, parents = owner[work], _find_enclosing_positions(owner, around, rows)
    work_time = lengths(work)
    self_times = [
        _sums(len(rows), launched_by, work_time if which is None else np.where(which, work_time, 0))
        for which in (None, uses == TC_YES, uses == TC_UNKNOWN)
    ]
    levels = _group_by_nesting_level(parents, tree.depth[rows])
    totals = [_sum_levels(values, levels) for values in self_times]
    eligible = are_eligible(trace, rows) | (self_times[1] > 0)
    return Operators(
        rows=rows,
        host_total=host_total,
        host_self=host_total - nested_time,
        device_total=totals[0],
        device_self=self_times[0],
        cores_total=totals[1],
        cores_self=self_times[1],
        tc_unknown_total=totals[2],
        tc_unknown_self=self_times[2],
        eligible=_sum_levels(eligible.astype(np.int64), levels) > 0,
        parent=parents,
        owner=owner,
    )


def host_self_with_calls(trace: Trace) -> Int64:
    """Return the host self time of each operator with its runtime and driver calls, int64[k] ns."""
    operator, calls = operators(trace), _find_outermost_calls(trace, call_tree(trace).parent)
    start, end = event_spans(trace, calls)
    return operator.host_self + _sums(len(operator.rows), operator.owner[calls], end - start)


def sum_with_nested(trace: Trace, values: Int64) -> Int64:
    """Return the sum of `values` (one per operator) over each operator and those inside it, int64[k]."""
    calls = operators(trace)
    return _sum_levels(values, _group_by_nesting_level(calls.parent, call_tree(trace).depth[calls.rows]))


def operator_name_mask(trace: Trace) -> Bool:
    """Return which names are of operators, bool[strings + 1]; old traces file training marks under them."""
    return ~name_mask(trace.strings, is_training_mark)


def _merge_targets(trace: Trace, nodes: Int32, around: Int32) -> Int32:
    """Return the node that each node is merged into (usually itself), int32[n + 1]; nodes ordered by depth."""
    above, names = around.take(nodes), trace.events.name
    owner = np.full(len(trace) + 1, NO_CODE, np.int32)
    owner[nodes] = nodes
    named_alike = np.flatnonzero((names.take(above) == names.take(nodes)) & (above >= 0))
    if len(named_alike):
        children = np.bincount(above + 1, minlength=len(trace) + 1)
        duplicate = named_alike[children.take(above.take(named_alike) + 1) == 1]
        for row, outer in zip(nodes[duplicate].tolist(), above[duplicate].tolist(), strict=True):
            owner[row] = owner[outer]  # outer nodes come first, so chains resolve
    return owner


def _find_owners(trace: Trace, around: Int32, node_owner: Int32, position: Int32) -> Int32:
    of_node = position.take(node_owner)
    owner = of_node.take(around)
    np.copyto(owner, of_node[:-1], where=node_owner[:-1] >= 0)
    links = device_links(trace)
    owner[links.rows] = of_node.take(links.operator)
    return owner


def _find_enclosing_positions(owner: Int32, around: Int32, rows: Int32) -> Int32:
    """Return the positions of the operators around these nodes."""
    above = around.take(rows)
    outer: Int32 = owner.take(above)
    outer[above < 0] = NO_CODE
    return outer


def _find_outermost_calls(trace: Trace, parent: Int32) -> Int32:
    """Return the rows of runtime and driver calls that aren't inside another."""
    calls = rows_of_kind(trace, Kind.RUNTIME, Kind.DRIVER)
    above = parent[calls]
    inside = (above >= 0) & np.isin(event_kinds(trace)[above], (Kind.RUNTIME, Kind.DRIVER))
    outermost: Int32 = calls[~inside]
    return outermost


def _sums(count: int, where: Int32, values: Int64) -> Int64:
    """Return the sum of the values at each of `count` positions; those at NO_CODE are in none."""
    return sums_by_number(where + 1, values, count + 1)[1:]


def _depth_order(depth: npt.NDArray[np.integer[Any]]) -> Int64:
    """Return the order by depth, equal ones in theirs; numpy sorts 16-bit integers by radix."""
    return np.argsort(depth.astype(np.int16 if depth.max(initial=0) < 2**15 else np.int32), kind="stable")


_NestingLevels = list[tuple[Int64, Int32]]
"""Nested operators by depth, deepest first: (their positions, those of the operators around them)."""


def _group_by_nesting_level(parents: Int32, depth: Int32) -> _NestingLevels:
    inside = np.flatnonzero(parents >= 0)
    level = depth[inside]
    deepest = int(level.max(initial=0))
    order = inside[_depth_order(deepest - level)]
    bounds = np.append(np.flatnonzero(np.diff(depth[order], prepend=-1)), len(order))
    parts = (order[low:high] for low, high in zip(bounds[:-1], bounds[1:], strict=True))
    return [(members, parents[members]) for members in parts]


def _sum_levels(values: Int64, levels: _NestingLevels) -> Int64:
    totals: Int64 = values.copy()
    for members, outer in levels:
        np.add.at(totals, outer, totals[members])
    return totals
