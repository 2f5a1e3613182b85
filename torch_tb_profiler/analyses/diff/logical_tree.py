"""The logical timeline of a trace: what a step is made of, as a tree of calls.

    step -- DataLoader
         |- Net_0 -- Linear_0 -- aten::linear -- aten::addmm -- gemm        forward modules, operators, device work
         |- Operators -- aten::mse_loss                                     those outside of modules
         |- Backward -- Linear_0 -- AddmmBackward0                          by the module that it differentiates
         |- Optimizer.step#SGD.step
         `- Other threads

Calls nest by time. Plain Python frames are left out: what they call becomes a child of what calls them. Steps are
roots, device work is a child of what launched it (a sibling of its runtime call), and backward tasks of all
threads are grouped under "Backward".
"""

from __future__ import annotations

import msgspec
import numpy as np
from msgspec.structs import replace

from torch_tb_profiler.analyses.diff.counted_steps import counted_steps
from torch_tb_profiler.analyses.diff.roles import GROUP_NAMES, PartRole, autograd_threads, part_roles, step_thread
from torch_tb_profiler.analyses.shared.grouping import group
from torch_tb_profiler.base.markers import MODULE_PREFIX, is_step
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.model.calls.autograd import backward_tasks
from torch_tb_profiler.model.calls.calltree import build_call_tree
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.kinds import Kind, event_ends, event_kinds, rows_of_kind, slice_mask
from torch_tb_profiler.model.modules import has_modules, module_calls, modules
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int8, Int32, Int64, Trace, name_mask

_INSTANCE = lazy_regex(r"_\d+$")


class LogicalTree(msgspec.Struct, frozen=True):
    """The elements of a timeline; columns of length m.

    parent      int32  position of the parent, NO_CODE for children of the step
    depth       int32  1 for children of the step
    role        int8   a PartRole
    name        int32  code into `texts`
    occurrence  int32  number among the siblings of the same name in this call, for modules whose name has none
    step        int32  counted step, NO_CODE outside of them
    start       int64  ns
    host        int64  ns; for a group, the sum of its members
    device      int64  ns of device work launched in it or below; for device work, its own duration
    row         int32  row in the trace, NO_CODE for groups
    main        bool   runs on the thread of the steps
    of_row      int32[n]  position of the element of each event, NO_CODE if the event is no element
    """

    texts: list[str]
    parent: Int32
    depth: Int32
    role: Int8
    name: Int32
    occurrence: Int32
    step: Int32
    start: Int64
    host: Int64
    device: Int64
    row: Int32
    main: Bool
    of_row: Int32

    def __len__(self) -> int:
        return len(self.parent)


@derived
def logical_tree(trace: Trace) -> LogicalTree:
    """Build the timeline of one trace."""
    return _TreeBuilder(trace).build()


class _TreeBuilder:
    """Builds the elements: first one per host call, then the groups, then device work."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.steps = counted_steps(trace)
        self.texts = (
            [text.removeprefix(MODULE_PREFIX) for text in trace.strings]
            + list(GROUP_NAMES.values())
            + ["(no name)"]
        )
        self.durations = event_ends(trace) - trace.events.start

    def build(self) -> LogicalTree:
        trace = self.trace
        rows, around, task_around = self._collect_host_rows()
        count = len(rows)
        self.of_row = np.full(len(trace) + 1, NO_CODE, np.int32)
        self.of_row[rows] = np.arange(count, dtype=np.int32)
        self.row = rows
        self.parent = self.of_row[around[rows]]
        self.role = part_roles(trace, rows)
        name = trace.events.name[rows]
        self.name = np.where(name >= 0, name, len(self.texts) - 1).astype(np.int32)
        self.step = self.steps.of_event[rows]
        self.start = trace.events.start[rows]
        self.host = self.durations[rows].astype(np.int64)
        self.main = trace.events.thread[rows] == step_thread(trace)
        outermost = np.zeros(len(trace), np.bool_)
        tasks = backward_tasks(trace).rows
        outermost[tasks[task_around[tasks] < 0]] = True
        engine = np.isin(trace.events.thread[rows], autograd_threads(trace)) & (self.parent < 0)
        self._group_backward(np.flatnonzero(outermost[rows] | engine))
        self._group_top_level(count)
        self._add_device_work()
        return self._finish()

    def _collect_host_rows(self) -> tuple[Int32, Int32, Int32]:
        """Return the rows of host elements by start, the element around each event, and the task around it."""
        trace = self.trace
        kind = event_kinds(trace)
        is_element = np.zeros(len(trace) + 1, np.bool_)
        is_element[rows_of_kind(trace, Kind.CPU_OP, Kind.ANNOTATION, Kind.RUNTIME, Kind.DRIVER)] = True
        is_element[module_calls(trace)] = True
        step = np.append(name_mask(trace.strings, is_step)[trace.events.name], False)
        step[:-1] &= np.isin(kind, (Kind.CPU_OP, Kind.ANNOTATION))
        # Leave plain frames out: the frame that enters an annotation would push it to a side lane.
        tree = build_call_tree(
            trace, np.flatnonzero((is_element | step)[:-1] & slice_mask(trace)).astype(np.int32)
        )
        is_element &= ~step
        task = np.zeros(len(trace) + 1, np.bool_)
        task[backward_tasks(trace).rows] = True
        around = np.full(len(trace) + 1, NO_CODE, np.int32)
        task_around = around.copy()
        order = tree.rows[np.argsort(tree.depth[tree.rows].astype(np.int16), kind="stable")]
        bounds = np.searchsorted(tree.depth[order], np.arange(int(tree.depth.max(initial=0)) + 2))
        for low, high in zip(bounds[1:-1], bounds[2:], strict=True):
            members = order[low:high]
            above = tree.parent[members]
            around[members] = np.where(is_element[above], above, np.where(step[above], NO_CODE, around[above]))
            task_around[members] = np.where(task[above], above, task_around[above])
        rows = tree.rows[is_element[tree.rows]]
        return rows[np.argsort(trace.events.start[rows], kind="stable")], around[:-1], task_around[:-1]

    def _append(self, role: PartRole, parent: Int32, name: Int32, step: Int32, start: Int64, main: Bool) -> Int32:
        """Append elements without a row and return their positions."""
        first, count = len(self.parent), len(parent)
        self.parent = np.append(self.parent, parent.astype(np.int32))
        self.role = np.append(self.role, np.full(count, role, np.int8))
        self.name = np.append(self.name, name.astype(np.int32))
        self.step = np.append(self.step, step)
        self.start = np.append(self.start, start)
        self.host = np.append(self.host, np.zeros(count, np.int64))
        self.row = np.append(self.row, np.full(count, NO_CODE, np.int32))
        self.main = np.append(self.main, main)
        return np.arange(first, first + count, dtype=np.int32)

    def _group(self, members: Int64, role: PartRole) -> Int32:
        """Put elements under a new group per step and parent, and return the group of each."""
        groups = group(self.parent[members], self.step[members])
        first = members[groups.first]  # elements are in order of time
        name = np.full(len(first), len(self.trace.strings) + list(GROUP_NAMES).index(role))
        parts = self._append(role, self.parent[first], name, self.step[first], self.start[first], self.main[first])
        group_of = parts[groups.which]
        self.parent[members] = group_of
        np.add.at(self.host, group_of, self.host[members])
        return group_of

    def _group_backward(self, tasks: Int64) -> None:
        elsewhere = tasks[~self.main[tasks]]
        self.parent[elsewhere] = NO_CODE
        if len(tasks) == 0:
            return
        part = self._group(tasks, PartRole.BACKWARD)
        if has_modules(self.trace):
            module = modules(self.trace).code[self.row[tasks]]
            known = module >= 0
            self._group_by_module(tasks[known], part[known], module[known])

    def _group_by_module(self, tasks: Int64, part: Int32, module: Int32) -> None:
        """Put backward tasks under the modules that they differentiate, and these under their backward group."""
        places = modules(self.trace)
        count = max(len(places.names), 1)
        # Collect the modules of the tasks and all modules around them, per backward group, outer ones first.
        keys_of_tasks = np.unique(part.astype(np.int64) * count + module)
        keys, grown = keys_of_tasks[:0], keys_of_tasks
        while len(grown) > len(keys):
            keys = grown
            above, inner = np.divmod(keys, count)
            outer = places.parent[inner]
            grown = np.union1d(keys, (above * count + outer)[outer >= 0])
        above, inner = np.divmod(keys, count)
        outer = places.parent[inner]
        first = len(self.parent)
        around = np.searchsorted(keys, above * count + np.maximum(outer, 0)) + first
        no_start = np.full(len(keys), np.iinfo(np.int64).max)
        elements = self._append(
            PartRole.MODULE,
            np.where(outer >= 0, around, above),
            len(self.texts) + inner,
            self.step[above],
            no_start,
            self.main[above],
        )
        self.texts.extend(places.names)
        of_task = elements[np.searchsorted(keys, part.astype(np.int64) * count + module)]
        self.parent[tasks] = of_task
        self._add_upward(of_task, self.host[tasks], self.start[tasks], first)

    def _add_upward(self, elements: Int32, duration: Int64, start: Int64, first: int) -> None:
        """Add durations to elements and their ancestors from number `first` on, and move their starts forward."""
        while len(elements):
            np.add.at(self.host, elements, duration)
            np.minimum.at(self.start, elements, start)
            elements = self.parent[elements]
            inside = elements >= first
            elements, duration, start = elements[inside], duration[inside], start[inside]

    def _group_top_level(self, count: int) -> None:
        top = np.flatnonzero(self.parent[:count] < 0)
        plain = np.isin(self.role[top], (PartRole.OPERATOR, PartRole.RUNTIME))
        self._group(top[self.main[top] & plain], PartRole.OPERATORS)
        self._group(top[~self.main[top]], PartRole.THREADS)

    def _add_device_work(self) -> None:
        trace, links = self.trace, device_links(self.trace)
        source = np.where(links.launch >= 0, self.of_row[links.launch], self.of_row[links.operator])
        source = np.where((links.launch < 0) & (links.operator < 0), NO_CODE, source)
        # Device work is a sibling of its runtime call, whose name differs between platforms.
        linked = np.flatnonzero(source >= 0)
        while len(linked := linked[self.role[source[linked]] == PartRole.RUNTIME]):
            source[linked] = self.parent[source[linked]]
            linked = linked[source[linked] >= 0]
        order = np.argsort(trace.events.start[links.rows], kind="stable")
        rows, source = links.rows[order], source[order]
        name = trace.events.name[rows]
        elements = self._append(
            PartRole.DEVICE,
            source,
            np.where(name >= 0, name, len(trace.strings) + len(GROUP_NAMES)),
            self.steps.of_event[rows],
            trace.events.start[rows],
            np.zeros(len(rows), np.bool_),
        )
        self.row[elements] = rows
        self.of_row[rows] = elements
        self.device = np.zeros(len(self.parent), np.int64)
        self.device[elements] = self.durations[rows]
        self._group(elements[self.parent[elements] < 0].astype(np.int64), PartRole.UNLINKED)
        self.device = np.append(self.device, np.zeros(len(self.parent) - len(self.device), np.int64))

    def _finish(self) -> LogicalTree:
        depth = _compute_depths(self.parent)
        by_depth = np.argsort(depth, kind="stable")
        bounds = np.searchsorted(depth[by_depth], np.arange(int(depth.max(initial=0)) + 2))
        for low, high in zip(bounds[2:-1][::-1], bounds[3:][::-1], strict=True):
            members = by_depth[low:high]
            np.add.at(self.device, self.parent[members], self.device[members])
        tree = LogicalTree(
            texts=self.texts,
            parent=self.parent,
            depth=depth,
            role=self.role,
            name=self.name,
            occurrence=np.zeros(len(depth), np.int32),
            step=self.step,
            start=self.start,
            host=self.host,
            device=self.device,
            row=self.row,
            main=self.main,
            of_row=self.of_row[:-1],
        )
        return replace(tree, occurrence=_number_occurrences(tree))


def _compute_depths(parent: Int32) -> Int32:
    """Return the depth of each element, 1 without a parent; each round looks twice as far up."""
    depth = np.ones(len(parent), np.int32)
    above = parent.astype(np.int64)
    while (pending := np.flatnonzero(above >= 0)).size:
        up = above[pending]
        depth[pending], above[pending] = depth[pending] + depth[up], above[up]
    return depth


def _number_occurrences(tree: LogicalTree) -> Int32:
    """Number the calls of modules whose names have no instance number by their turn in the call, int32[m]."""
    plain = np.array([_INSTANCE.search(text) is None for text in tree.texts])
    calls = np.flatnonzero((tree.role == PartRole.MODULE) & plain[tree.name])
    occurrence = np.zeros(len(tree), np.int32)
    if len(calls):
        calls = calls[np.argsort(tree.start[calls], kind="stable")]
        groups = group(tree.parent[calls], tree.name[calls], tree.step[calls])
        order = np.argsort(groups.which, kind="stable")
        begin = np.cumsum(groups.counts) - groups.counts
        occurrence[calls[order]] = np.arange(len(calls)) - begin[groups.which[order]]
    return occurrence
