"""Time per module: of its calls on the host, of the device work that it launched, forward and backward.

For a module call of duration d, with calls of modules c and operators o directly inside:

    d = self + sum(o) + sum(c)        an operator counts without the module calls that it contains

so that self is what Python and the framework take around the operators. Device time adds up over the tree:

    sum over modules (forward self + backward self) + outside any module + not linked = all device time
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from torch_tb_profiler.model.calls.calltree import CallTree, build_call_tree
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.kernels.families import FAMILIES, family_codes
from torch_tb_profiler.model.kinds import Kind, event_ends, event_lengths, rows_of_kind
from torch_tb_profiler.model.modules import Modules
from torch_tb_profiler.model.origins.replays import replayed_mask
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Int32, Int64, Trace

NEVER_CALLED = int(np.iinfo(np.int64).max)
"""Start of the first call of a place that has no recorded call."""


class DeviceWork(msgspec.Struct, frozen=True):
    """Device events and the sum of their durations, ns."""

    events: int
    time: int


class ModuleTimes(msgspec.Struct, frozen=True):
    """Times per place of the model (m places), int64[m] ns. Totals include the places inside.

    on_host          bool[m]: a call, or an operator in or below it, was recorded. A place that only replays of a
                     graph name was not called: its host time is unknown
    calls            module calls; 0 where only operators name the place (`Module Hierarchy`)
    operators        outermost operators directly in the place, forward
    operators_time   their host time, without the parts that belong to other places
    host_total       durations of the calls; for a place without calls, of all operators in and below it
    host_self        of the calls, outside of modules and operators inside them
    backward_host_*  host time of the backward operators of the place, without module calls inside them
    forward_*        device work launched in the place
    backward_*       device work launched by its backward operators
    unlinked         work whose module is unknown: no launch was recorded, or no capture says it
    event            row to show for the place: its longest call or operator, else the longest kernel in it
    """

    on_host: Bool
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
        """Return the host time of the calls without the places inside: self and operators, int64[m] ns."""
        return self.host_self + self.operators_time

    @property
    def device_time(self) -> int:
        """Return all device time of the trace, ns."""
        placed = int(self.forward_self.sum() + self.backward_self.sum())
        return placed + self.outside.time + self.unlinked.time


class ClassTimes(msgspec.Struct, frozen=True):
    """Times of all modules of one class, ns, without the modules inside, so that nothing counts twice.

    places             of the class
    modules            how many modules these are: one that is called in several places is the same there
    on_host            the host ran at least one of them, so that calls and host times are known
    forward, backward  device work launched in them
    host               of their calls: Python, framework and operators
    backward_host      of their backward operators
    longest            the place with the most device time; if there is none, with the most host time
    """

    name: str
    places: tuple[int, ...]
    modules: int
    on_host: bool
    calls: int
    operators: int
    forward: int
    backward: int
    host: int
    backward_host: int
    longest: int

    @property
    def device(self) -> int:
        """Return the device work, forward and backward."""
        return self.forward + self.backward


def module_times(trace: Trace, model: Modules, operators: ModuleOperators | None = None) -> ModuleTimes:
    """Compute the times of all places; `operators` are those of the same places, if they are known."""
    found = module_operators(trace, model) if operators is None else operators
    count = len(model.names)
    durations = event_ends(trace) - trace.events.start

    def per_place(rows: Int32, times: Int64) -> Int64:
        return _sum_by_code(model.code[rows], times, count)

    nested = _sum_nested_time(trace, model, durations)
    operators_time = per_place(found.rows, found.host_ns)
    calls = np.bincount(model.code[model.calls], minlength=count)
    call_time = per_place(model.calls, durations[model.calls])
    host_self = call_time - per_place(model.calls, nested[model.calls]) - operators_time
    backward_self = per_place(model.tasks, (durations - nested)[model.tasks])
    links = device_links(trace)
    rows, unlinked = links.rows, ((links.launch < 0) & (links.operator < 0)) | replayed_mask(trace)
    direct = np.bincount(model.code[found.direct], minlength=count)
    tasks = np.bincount(model.code[model.tasks], minlength=count)
    placed, backward = model.code[rows] >= 0, model.backward[rows]
    forward_device = per_place(rows[placed & ~backward], durations[rows[placed & ~backward]])
    backward_device = per_place(rows[placed & backward], durations[rows[placed & backward]])
    return ModuleTimes(
        on_host=subtree_sums(calls + direct + tasks, model.parent) > 0,
        calls=calls,
        operators=direct,
        operators_time=operators_time,
        host_total=np.where(calls > 0, call_time, subtree_sums(operators_time, model.parent)),
        host_self=np.where(calls > 0, host_self, 0),
        backward_host_total=subtree_sums(backward_self, model.parent),
        backward_host_self=backward_self,
        forward_total=subtree_sums(forward_device, model.parent),
        forward_self=forward_device,
        backward_total=subtree_sums(backward_device, model.parent),
        backward_self=backward_device,
        event=_choose_events_to_show(
            model, _find_longest(np.concatenate([found.direct, model.calls]), model, durations), rows, durations
        ),
        outside=_device_work(rows[~placed & ~unlinked], durations),
        unlinked=_device_work(rows[~placed & unlinked], durations),
    )


def class_times(model: Modules, times: ModuleTimes, order: Iterable[int]) -> list[ClassTimes]:
    """Sum the times of each class, in order of its first place; a module without a class is its own class."""
    places: dict[str, list[int]] = {}
    for code in order:
        places.setdefault(model.classes[code] or model.names[code], []).append(code)
    device = times.forward_self + times.backward_self
    weight = np.where(device > 0, device, times.host_exclusive)

    def sum_codes(column: np.ndarray, codes: list[int]) -> int:
        return int(column[codes].sum())

    return [
        ClassTimes(
            name=name,
            places=tuple(codes),
            modules=len({_module_of(model, code) for code in codes}),
            on_host=bool(times.on_host[codes].any()),
            calls=sum_codes(times.calls, codes),
            operators=sum_codes(times.operators, codes),
            forward=sum_codes(times.forward_self, codes),
            backward=sum_codes(times.backward_self, codes),
            host=sum_codes(times.host_exclusive, codes),
            backward_host=sum_codes(times.backward_host_self, codes),
            longest=codes[int(weight[codes].argmax())],
        )
        for name, codes in places.items()
    ]


def _module_of(model: Modules, place: int) -> tuple[str, int]:
    """Return what tells the module of a place from others: the number of its class, or else the place.

    A profiler numbers the modules of a class (`Linear_0`). Attributes of several modules may share any other name.
    """
    name, number = model.names[place], model.names[place].removeprefix(f"{model.classes[place]}_")
    return (name, NO_CODE) if model.classes[place] and number != name and number.isdecimal() else (name, place)


def device_times_by_family(trace: Trace, model: Modules) -> Int64:
    """Return device time of each place by family, int64[m, f] ns in order of FAMILIES, without the places inside.

    Forward and backward; a row sums to `forward_self + backward_self` of `module_times`.
    """
    rows = device_links(trace).rows
    rows = rows[model.code[rows] >= 0]
    times = np.zeros((len(model.names), len(FAMILIES)), np.int64)
    np.add.at(times, (model.code[rows], family_codes(trace)[rows]), event_lengths(trace, rows))
    return times


def largest_families(times: Int64) -> dict[str, int]:
    """Return the families that took time, largest first, from a row (or a sum) of `device_times_by_family`."""
    order = np.argsort(-times, kind="stable")
    return {FAMILIES[code]: int(times[code]) for code in order.tolist() if times[code] > 0}


def first_calls(trace: Trace, model: Modules) -> Int64:
    """Return when each place, or one inside it, is first called in forward, int64[m] ns; else NEVER_CALLED."""
    first = np.full(len(model.names), NEVER_CALLED)
    rows = np.flatnonzero((model.code >= 0) & ~model.backward & (trace.events.start != ABSENT))
    np.minimum.at(first, model.code[rows], trace.events.start[rows])
    for code in range(len(first) - 1, -1, -1):
        if model.parent[code] != NO_CODE:
            first[model.parent[code]] = min(first[model.parent[code]], first[code])
    return first


def call_order(trace: Trace, model: Modules) -> list[int]:
    """Return all places in order of their first call, each after the place around it."""
    order: list[int] = np.argsort(first_calls(trace, model), kind="stable").tolist()
    return order


class ModuleOperators(msgspec.Struct, frozen=True):
    """The forward operators of places. One that no other operator of the same call encloses is direct.

    tree     calls among operators, module calls and backward tasks
    direct   int32[k]  rows of the direct operators, ascending
    owner    int32[n]  the direct operator that each forward operator of a place is or is in, else NO_CODE
    rows     int32[j]  the direct operators with time of their own: another event has that of those on side lanes
    host_ns  int64[j]  their host time, without calls and direct operators of others inside them
    """

    tree: CallTree
    direct: Int32
    owner: Int32
    rows: Int32
    host_ns: Int64


def module_operators(trace: Trace, model: Modules) -> ModuleOperators:
    """Find the operators of all places.

    Other events (Python frames, annotations) may overlap an operator without nesting, so they are left out.
    """
    rows = rows_of_kind(trace, Kind.CPU_OP)
    rows = rows[(model.code[rows] >= 0) & ~model.backward[rows]]
    tree = build_call_tree(trace, np.sort(np.concatenate([rows, model.nesting.rows])))
    is_marker = np.zeros(len(trace), np.bool_)
    is_marker[model.nesting.rows] = True
    operators = np.sort(tree.rows[~is_marker[tree.rows]])
    above = tree.parent[operators]
    is_direct = (above < 0) | is_marker[above] | (model.code[above] != model.code[operators])
    direct = operators[is_direct]
    owner = _owners(trace, tree, direct, operators[~is_direct])
    inside = np.concatenate([model.nesting.rows, direct])
    around = tree.parent[inside]
    in_operator = (around >= 0) & ~is_marker[around]
    host_ns = np.zeros(len(trace), np.int64)
    host_ns[direct] = event_lengths(trace, direct)
    np.subtract.at(host_ns, owner[around[in_operator]], event_lengths(trace, inside[in_operator]))
    timed = direct[tree.lane[direct] == 0]
    return ModuleOperators(tree, direct, owner, timed, host_ns[timed])


def _owners(trace: Trace, tree: CallTree, direct: Int32, others: Int32) -> Int32:
    """Return the direct operator that each operator is or is in, int32[n], NO_CODE for all else."""
    owner = np.full(len(trace), NO_CODE, np.int32)
    owner[direct] = direct
    depth = tree.depth[others]
    for level in range(1, int(depth.max(initial=0)) + 1):
        members = others[depth == level]
        owner[members] = owner[tree.parent[members]]
    return owner


def recomputed_calls(trace: Trace, model: Modules) -> Bool:
    """Return a mask of module calls that backward made to recompute activations (checkpointing), bool[n]."""
    recomputed = np.zeros(len(trace), np.bool_)
    rows = model.nesting.rows
    for depth in range(1, int(model.nesting.depth.max(initial=0)) + 1):
        members = rows[model.nesting.depth[rows] == depth]
        above = model.nesting.parent[members]
        recomputed[members] = recomputed[above] | model.backward[above]
    return recomputed


def subtree_sums(values: Int64, parent: Int32) -> Int64:
    """Return each place's value plus those of all places below it, int64[m]."""
    total: Int64 = values.copy()
    for code in range(len(parent) - 1, -1, -1):
        if parent[code] != NO_CODE:
            total[parent[code]] += total[code]
    return total


def _sum_nested_time(trace: Trace, model: Modules, durations: Int64) -> Int64:
    """Return the time of the module calls and backward tasks directly inside each of their kind, int64[n]."""
    rows = model.nesting.rows
    parent = model.nesting.parent[rows]
    return _sum_by_code(parent[parent >= 0], durations[rows[parent >= 0]], len(trace))


def _find_longest(rows: Int32, model: Modules, durations: Int64) -> Int64:
    """Return the longest row of each place, int64[m]; calls are preferred to operators."""
    is_call = np.isin(rows, model.calls)
    order = np.lexsort((-rows, durations[rows], is_call))
    longest = np.full(len(model.names), NO_CODE, np.int64)
    longest[model.code[rows[order]]] = rows[order]
    return longest


def _choose_events_to_show(model: Modules, longest: Int64, work: Int32, durations: Int64) -> Int64:
    """Return the row to show for each place: without calls and operators, its longest kernel or one below."""
    if (longest >= 0).all():
        return longest
    kernels = _find_longest(work[model.code[work] >= 0], model, durations)
    events = np.where(longest >= 0, longest, kernels)
    for code in range(len(events) - 1, -1, -1):
        parent = int(model.parent[code])
        if parent >= 0 and events[parent] < 0:
            events[parent] = events[code]
    return events


def _device_work(rows: Int32, durations: Int64) -> DeviceWork:
    return DeviceWork(len(rows), int(durations[rows].sum()))


def _sum_by_code(codes: Int32, values: Int64, count: int) -> Int64:
    """Return exact integer sums per code; `bincount` would add floats."""
    total = np.zeros(count, np.int64)
    np.add.at(total, codes, values)
    return total
