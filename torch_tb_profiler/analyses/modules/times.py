"""Time per module: of its calls on the host, of the device work that it launched, forward and backward.

For a module call of duration d, with calls of modules c and operators o directly inside:

    d = self + sum(o) + sum(c)        an operator counts without the module calls that it contains

so that self is what Python and the framework take around the operators. Device time adds up over the tree:

    sum over modules (forward self + backward self) + outside any module + not linked = all device time
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.model.calls.calltree import CallTree, build_call_tree
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.kinds import Kind, event_ends, rows_of_kind
from torch_tb_profiler.model.modules.modules import Modules
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int32, Int64, Trace


class DeviceWork(msgspec.Struct, frozen=True):
    """Device events and the sum of their durations, ns."""

    events: int
    time: int


class ModuleTimes(msgspec.Struct, frozen=True):
    """Per place of the model (m places), int64[m]; times in ns. Totals include the places inside.

    calls            module calls; 0 where only operators tell of the place (`Module Hierarchy`)
    operators        outermost operators directly in the place, forward
    operators_time   their host time, without what other places have of it
    host_total       durations of the calls; of a place without calls, of all operators in and below it
    host_self        of the calls, outside of modules and operators inside them
    backward_host_*  host time of the backward operators of the place, without module calls inside them
    forward_*        device work launched in the place
    backward_*       device work launched by its backward operators
    event            row to show for the place: its longest call or operator
    """

    calls: Int64
    operators: Int64
    operators_time: Int64
    host_total: Int64
    host_self: Int64
    backward_host_total: Int64
    backward_host_self: Int64
    forward_total: Int64
    forward_self: Int64
    backward_total: Int64
    backward_self: Int64
    event: Int64
    outside: DeviceWork
    unlinked: DeviceWork

    @property
    def host_exclusive(self) -> Int64:
        """int64[m] ns: host time of the calls without the places inside: self and operators."""
        return self.host_self + self.operators_time

    @property
    def device_time(self) -> int:
        """All device time of the trace, ns."""
        placed = int(self.forward_self.sum() + self.backward_self.sum())
        return placed + self.outside.time + self.unlinked.time


def module_times(trace: Trace, model: Modules) -> ModuleTimes:
    """Times of all places."""
    count = len(model.names)
    durations = event_ends(trace) - trace.events.start

    def per_place(rows: Int32, times: Int64) -> Int64:
        return _sums(model.code[rows], times, count)

    inner = _inside_markers(trace, model, durations)
    tree = operators_and_calls(trace, model)
    direct = direct_operators(trace, model, tree)
    operators_time = per_place(*operator_times(trace, model, tree))
    calls = np.bincount(model.code[model.calls], minlength=count)
    call_time = per_place(model.calls, durations[model.calls])
    host_self = call_time - per_place(model.calls, inner[model.calls]) - operators_time
    backward_self = per_place(model.tasks, (durations - inner)[model.tasks])
    rows, unlinked = device_links(trace).rows, unlinked_device_work(trace)
    placed, backward = model.code[rows] >= 0, model.backward[rows]
    forward_device = per_place(rows[placed & ~backward], durations[rows[placed & ~backward]])
    backward_device = per_place(rows[placed & backward], durations[rows[placed & backward]])
    return ModuleTimes(
        calls=calls,
        operators=np.bincount(model.code[direct], minlength=count),
        operators_time=operators_time,
        host_total=np.where(calls > 0, call_time, subtree_sums(operators_time, model.parent)),
        host_self=np.where(calls > 0, host_self, 0),
        backward_host_total=subtree_sums(backward_self, model.parent),
        backward_host_self=backward_self,
        forward_total=subtree_sums(forward_device, model.parent),
        forward_self=forward_device,
        backward_total=subtree_sums(backward_device, model.parent),
        backward_self=backward_device,
        event=_longest(np.concatenate([direct, model.calls]), model, durations),
        outside=_work(rows[~placed & ~unlinked], durations),
        unlinked=_work(rows[~placed & unlinked], durations),
    )


def unlinked_device_work(trace: Trace) -> Bool:
    """bool[k]: device events (in the order of `device_links`) with neither launch nor operator."""
    links = device_links(trace)
    unlinked: Bool = (links.launch < 0) & (links.operator < 0)
    return unlinked


def operators_and_calls(trace: Trace, model: Modules) -> CallTree:
    """Forward operators of modules, module calls and backward tasks, nested among themselves.

    Other events (Python frames, annotations) may overlap an operator without nesting; here they do not disturb.
    """
    rows = rows_of_kind(trace, Kind.CPU_OP)
    rows = rows[(model.code[rows] >= 0) & ~model.backward[rows]]
    return build_call_tree(trace, np.sort(np.concatenate([rows, model.nesting.rows])))


def direct_operators(trace: Trace, model: Modules, tree: CallTree) -> Int32:
    """int32[k]: the forward operators of all places that no other operator of the same call encloses."""
    marker = _markers(trace, model)
    rows = np.sort(tree.rows[~marker[tree.rows]])
    above = tree.parent[rows]
    direct: Int32 = rows[(above < 0) | marker[above] | (model.code[above] != model.code[rows])]
    return direct


def operator_times(trace: Trace, model: Modules, tree: CallTree) -> tuple[Int32, Int64]:
    """Direct operators and their host time, ns, without the calls and direct operators of others inside them.

    Those of side lanes are left out: another event has their time already.
    """
    owner = owning_operator(trace, model, tree)
    durations = event_ends(trace) - trace.events.start
    rows = np.flatnonzero(owner == np.arange(len(trace))).astype(np.int32)
    inside = np.concatenate([model.nesting.rows, rows])
    around = tree.parent[inside]
    held = (around >= 0) & ~_markers(trace, model)[around]
    self_times = durations.copy()
    np.subtract.at(self_times, owner[around[held]], durations[inside[held]])
    rows = rows[tree.lane[rows] == 0]
    return rows, self_times[rows]


def owning_operator(trace: Trace, model: Modules, tree: CallTree) -> Int32:
    """int32[n]: for each forward operator of a place the direct operator that it is or is in; else NO_CODE."""
    owner = np.full(len(trace), NO_CODE, np.int32)
    direct = direct_operators(trace, model, tree)
    owner[direct] = direct
    rows = tree.rows[owner[tree.rows] < 0]
    rows = rows[~_markers(trace, model)[rows]]
    for depth in range(1, int(tree.depth[rows].max(initial=0)) + 1):
        members = rows[tree.depth[rows] == depth]
        owner[members] = owner[tree.parent[members]]
    return owner


def recomputed(trace: Trace, model: Modules) -> Bool:
    """bool[n]: module calls that backward made, to compute activations again (checkpointing)."""
    again = np.zeros(len(trace), np.bool_)
    rows = model.nesting.rows
    for depth in range(1, int(model.nesting.depth.max(initial=0)) + 1):
        members = rows[model.nesting.depth[rows] == depth]
        above = model.nesting.parent[members]
        again[members] = again[above] | model.backward[above]
    return again


def subtree_sums(values: Int64, parent: Int32) -> Int64:
    """int64[m]: each place's value with those of all places below it."""
    total: Int64 = values.copy()
    for code in range(len(parent) - 1, -1, -1):
        if parent[code] != NO_CODE:
            total[parent[code]] += total[code]
    return total


def _inside_markers(trace: Trace, model: Modules, durations: Int64) -> Int64:
    """int64[n]: for a module call or backward task, the time of those directly inside it."""
    rows = model.nesting.rows
    parent = model.nesting.parent[rows]
    return _sums(parent[parent >= 0], durations[rows[parent >= 0]], len(trace))


def _markers(trace: Trace, model: Modules) -> Bool:
    """bool[n]: module calls and backward tasks."""
    marker = np.zeros(len(trace), np.bool_)
    marker[model.nesting.rows] = True
    return marker


def _longest(rows: Int32, model: Modules, durations: Int64) -> Int64:
    """int64[m]: the longest of the rows of each place, calls before operators."""
    is_call = np.isin(rows, model.calls)
    order = np.lexsort((-rows, durations[rows], is_call))
    longest = np.full(len(model.names), NO_CODE, np.int64)
    longest[model.code[rows[order]]] = rows[order]
    return longest


def _work(rows: Int32, durations: Int64) -> DeviceWork:
    return DeviceWork(len(rows), int(durations[rows].sum()))


def _sums(codes: Int32, values: Int64, count: int) -> Int64:
    """Exact integer sums per code; `bincount` would add floats."""
    total = np.zeros(count, np.int64)
    np.add.at(total, codes, values)
    return total
