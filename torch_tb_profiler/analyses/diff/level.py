"""An open part of the logical timeline: its own parts, and the operators inside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from torch_tb_profiler.analyses.diff.changes import UNKNOWN_CHANGE, ZERO_CHANGE, Change, judge_changes
from torch_tb_profiler.analyses.diff.counted_steps import SideValues, step_durations
from torch_tb_profiler.analyses.diff.flops import FlopsPerStep, flops_by_operator
from torch_tb_profiler.analyses.diff.logical_tree import LogicalTree
from torch_tb_profiler.analyses.diff.name_tables import (
    CallsPerStep,
    ComparedName,
    NameTable,
    build_name_table,
    calls_per_step,
    find_renames,
    join_recordings,
    operator_events,
)
from torch_tb_profiler.analyses.diff.roles import PartRole
from torch_tb_profiler.analyses.diff.step_parts import unknown_by_side, unknown_categories
from torch_tb_profiler.analyses.diff.tree_alignment import AlignedSide, AlignedTree, align
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.base.markers import is_multiprocess_loading
from torch_tb_profiler.model.trace import Bool, Float64, Int32, Int64, Recordings, TracePair, distinct_codes

_GROUPS = (PartRole.BACKWARD, PartRole.OPERATORS, PartRole.THREADS)
"""Parts that may hold runtime calls without being a call themselves."""

OPERATOR_TIMES = ("host_self", "host_total", "device_self", "device_total")
"""The columns of an operator, in this order."""


class ComparedPart(msgspec.Struct, frozen=True):
    """A part of the timeline on both sides.

    path        numbers of the children from the root, joined by "-"; "" is the root
    base_name, candidate_name    None on a side that doesn't have the part
    role        None for the self time of the open part, outside its parts
    parts       how many parts it has of its own
    base_event, candidate_event  row of its first call in the first recording, None if it isn't a call
    moved       only one side has it; the other leaves it to processes that aren't recorded
    unrecorded  only one side has it; the other doesn't record such events
    """

    path: str
    base_name: str | None
    candidate_name: str | None
    role: PartRole | None
    parts: int
    calls: CallsPerStep
    host: Change
    device: Change
    base_event: int | None
    candidate_event: int | None
    moved: bool = False
    unrecorded: bool = False


class ComparedLevel(msgspec.Struct, frozen=True):
    """An open part with what is inside it.

    trail      (path, name) from the root to the open part
    parts      in order of time; the self time of the open part comes last
    operators  operators inside it, with changes of OPERATOR_TIMES
    flops      FLOPs by operator inside it, of the base and of the candidate
    reasons    "host", "device" -> why these times are unknown
    """

    trail: tuple[tuple[str, str], ...]
    part: ComparedPart
    parts: tuple[ComparedPart, ...]
    operators: tuple[ComparedName, ...]
    flops: tuple[Mapping[str, FlopsPerStep], Mapping[str, FlopsPerStep]]
    reasons: Mapping[str, str]


def compare_part(pair: TracePair, path: str, min_effect: float) -> ComparedLevel:
    """Compare the part at `path`; NotFoundError if there is no such part."""
    values = LevelValues(pair, path)
    return values.compare(judge_changes(pair, min_effect, values.blocks).by_block)


class LevelValues:
    """Values per step of an open part.

    tree    both timelines as one
    blocks  name -> values to judge: "host" and "device", with rows for the part and each of its parts ("host" has
            one more for the self time of the part); OPERATOR_TIMES, with a row per operator
    """

    def __init__(self, pair: TracePair, path: str) -> None:
        self.tree: AlignedTree = align(pair)
        self._trail = _find_trail(self.tree, path)
        self._node = self._trail[-1][1]
        self._children: Int32 = self.tree.children_of(self._node)
        self._moved = find_moved_loading(self.tree)
        self._reasons = _unknown_times(pair)
        self._unrecorded = unknown_by_side(pair)
        self._with_calls = any("runtime" in of_side for of_side in self._unrecorded)
        durations = step_durations(pair.base), step_durations(pair.candidate)
        self._calls, host, device = _sum_times(self.tree, self._node, self._children, durations, self._with_calls)
        self._inside = (
            self._find_rows_inside(pair.base, self.tree.base),
            self._find_rows_inside(pair.candidate, self.tree.candidate),
        )
        self._operators = self._build_operator_table(pair)
        self._flops = (
            flops_by_operator(pair.base, self._inside[0]),
            flops_by_operator(pair.candidate, self._inside[1]),
        )
        self.blocks: dict[str, SideValues] = {"host": host, "device": device}
        self.blocks |= dict(zip(OPERATOR_TIMES, self._operators.columns, strict=True))

    def _build_operator_table(self, pair: TracePair) -> NameTable:
        base, candidate = (
            join_recordings(
                [
                    operator_events(trace, rows, self._with_calls)
                    for trace, rows in zip(recordings, inside, strict=True)
                ]
            )
            for recordings, inside in zip((pair.base, pair.candidate), self._inside, strict=True)
        )
        return build_name_table(base, candidate, find_renames(self.tree, PartRole.OPERATOR))

    def _find_rows_inside(self, recordings: Recordings, side: AlignedSide) -> list[Bool | None]:
        """Return the rows of each recording that are inside the part; None for the root, which has all."""
        inside: list[Bool | None] = [None] * len(recordings)
        if self._node:
            nodes = np.append(self.tree.subtree_mask(self._node), False)
            elements = np.append(side.node, len(self.tree))
            rows = nodes[elements[side.tree.of_row]]
            inside = [*np.split(rows, np.cumsum([len(trace) for trace in recordings])[:-1])]
        return inside

    def compare(self, judged: Mapping[str, Sequence[Change]]) -> ComparedLevel:
        """Build the level from the changes of its blocks."""
        changes = {
            name: [UNKNOWN_CHANGE] * len(judged[name]) if name.partition("_")[0] in self._reasons else judged[name]
            for name in self.blocks
        }
        path = self._trail[-1][0]
        parts = [
            self._build_part(int(node), _child_path(path, i), 1 + i, changes)
            for i, node in enumerate(self._children)
            if any(side[1 + i].any() for side in self._calls)  # else it is in no counted step
        ]
        self_time = changes["host"][-1]
        if len(self._children) and (self_time.base_ns or self_time.candidate_ns):
            calls = calls_per_step(self._calls, 0)
            parts.append(ComparedPart(path, None, None, None, 0, calls, self_time, ZERO_CHANGE, None, None))
        return ComparedLevel(
            trail=tuple((above, part_name(self.tree, node)) for above, node in self._trail),
            part=self._build_part(self._node, path, 0, changes),
            parts=tuple(parts),
            operators=tuple(
                replace(
                    row.without(self._lacks("cpu_exec")), moved=self._is_moved(row.base_name, row.candidate_name)
                )
                for row in self._operators.compare(*(changes[time] for time in OPERATOR_TIMES))
            ),
            flops=self._flops,
            reasons=self._reasons,
        )

    def _is_moved(self, base: str | None, candidate: str | None) -> bool:
        first, second = self._moved.names
        return base in first if candidate is None else base is None and candidate in second

    def _lacks(self, category: str) -> tuple[bool, bool]:
        """Return whether the base and the candidate don't record this category."""
        base, candidate = self._unrecorded
        return category in base, category in candidate

    def _unrecorded_sides(self, node: int) -> tuple[bool, bool]:
        """Return which sides lack this part only because they don't record such events."""
        absent = self.tree.elements[:, node] < 0
        children, role = self.tree.children_of(node), self.tree.role
        if not absent.any() or node == 0:
            return False, False
        roles = role[children] if len(children) and role[node] in _GROUPS else role[node : node + 1]
        base, candidate = (
            np.stack([self._sides_without(int(each)) for each in np.unique(roles)]).all(axis=0) & absent
        )
        return bool(base), bool(candidate)

    def _sides_without(self, role: int) -> tuple[bool, bool]:
        """Return which sides don't record parts of this role."""
        if role == PartRole.RUNTIME:
            return self._lacks("runtime")
        if role in (PartRole.DEVICE, PartRole.UNLINKED):
            # Without a host, device work has another place.
            placeless = any(self._lacks("cpu_exec"))
            base, candidate = self._lacks("kernel")
            return base or placeless, candidate or placeless
        return self._lacks("cpu_exec")

    def _build_part(self, node: int, path: str, row: int, changes: Mapping[str, Sequence[Change]]) -> ComparedPart:
        tree, unrecorded = self.tree, self._unrecorded_sides(node)
        is_call = tree.role[node] == PartRole.RUNTIME
        return ComparedPart(
            path=path,
            base_name=tree.text(0, node) if node else "step",
            candidate_name=tree.text(1, node) if node else "step",
            role=PartRole(int(tree.role[node])),
            parts=int(tree.first[node + 1] - tree.first[node]),
            calls=calls_per_step(self._calls, row).without(unrecorded),
            host=UNKNOWN_CHANGE if is_call and self._with_calls else changes["host"][row],
            device=changes["device"][row],
            base_event=_first_event(tree.base, int(tree.elements[0, node])),
            candidate_event=_first_event(tree.candidate, int(tree.elements[1, node])),
            moved=bool(self._moved.nodes[node]) and bool((tree.elements[:, node] < 0).any()),
            unrecorded=any(unrecorded),
        )


def _child_path(path: str, number: int) -> str:
    return f"{path}-{number}" if path else str(number)


def _first_event(side: AlignedSide, element: int) -> int | None:
    row = int(side.tree.row[element]) if element >= 0 else -1
    return row if row >= 0 else None


def _unknown_times(pair: TracePair) -> dict[str, str]:
    """Return "host", "device" -> why these times are unknown on at least one side."""
    unknown = unknown_categories(pair)
    return {
        time: unknown[category]
        for time, category in (("device", "kernel"), ("host", "cpu_exec"))
        if category in unknown
    }


def _find_trail(tree: AlignedTree, path: str) -> list[tuple[str, int]]:
    """Return (path, node) from the root to the part at `path`; NotFoundError if there is none."""
    trail = [("", 0)]
    for text in path.split("-") if path else ():
        above, node = trail[-1]
        children = tree.children_of(node)
        number = int(text) if text.isdecimal() else len(children)
        if number >= len(children):
            name = part_name(tree, node)
            hint = f"parts of {name}: 0 to {len(children) - 1}" if len(children) else f"{name} has no parts"
            raise NotFoundError(f"there is no part {path!r}", hint=hint)
        trail.append((_child_path(above, number), int(children[number])))
    return trail


def part_name(tree: AlignedTree, node: int) -> str:
    """Return a node's name in the base, or in the candidate if it was added."""
    return "step" if node == 0 else tree.text(0, node) or tree.text(1, node) or ""


def _sum_times(
    tree: AlignedTree, node: int, children: Int32, steps: SideValues, with_calls: bool
) -> tuple[SideValues, SideValues, SideValues]:
    """Return (calls, host, device) per step of a node and its children; `host` ends with the node's self time.

    with_calls  runtime calls count as self time of what makes them, and groups are without them, because one side
                doesn't record them
    """
    nodes = np.append(node, children).astype(np.int64)
    base, candidate = (
        _sum_side_times(side, nodes, len(tree), duration[0], with_calls)
        for side, duration in zip((tree.base, tree.candidate), steps, strict=True)
    )
    calls, host, device = zip(base, candidate, strict=True)
    return calls, host, device


def _sum_side_times(
    side: AlignedSide, nodes: Int64, count: int, step: Float64, with_calls: bool
) -> tuple[Float64, Float64, Float64]:
    elements = side.tree
    element_host = _host_without_calls(elements) if with_calls else elements.host
    calls = side.sums(nodes, None, count)
    host = side.sums(nodes, element_host, count)
    device = side.sums(nodes, elements.device, count)
    nested = host[1:]
    if nodes[0] == 0:
        outermost = elements.parent < 0
        calls[0] = 1
        host[0] = step
        device[0] = side.sums(nodes[1:], np.where(outermost, elements.device, 0), count).sum(axis=0)
        nested = side.sums(nodes[1:], np.where(outermost & elements.main, element_host, 0), count)
    self_time = np.maximum(host[0] - nested.sum(axis=0), 0)
    return calls, np.vstack([host, self_time]), device


def _host_without_calls(elements: LogicalTree) -> Int64:
    """Return the host time of each element, int64[m] ns: 0 for runtime calls, and groups without those in them."""
    calls = np.flatnonzero(elements.role == PartRole.RUNTIME)
    above = elements.parent[calls]
    grouped = (above >= 0) & np.isin(elements.role[above], _GROUPS)
    host: Int64 = elements.host.copy()
    np.subtract.at(host, above[grouped], host[calls[grouped]])
    host[calls] = 0
    return host


class MovedLoading(msgspec.Struct, frozen=True):
    """Data loading that one side runs itself and the other leaves to worker processes, which aren't recorded.

    nodes  bool[k] of the aligned tree: inside data loading
    names  of the base and of the candidate: operators that only data loading calls
    """

    nodes: Bool
    names: tuple[frozenset[str], frozenset[str]]


def find_moved_loading(tree: AlignedTree) -> MovedLoading:
    """Return the data loading of one side; empty unless exactly one side has worker processes for it."""
    elsewhere = [_loads_elsewhere(side) for side in (tree.base, tree.candidate)]
    inside = np.zeros(len(tree), np.bool_)
    if elsewhere[0] == elsewhere[1]:
        return MovedLoading(inside, (frozenset(), frozenset()))
    for node in np.flatnonzero(tree.role == PartRole.DATALOADER).tolist():
        inside |= tree.subtree_mask(node)
    base, candidate = (
        frozenset() if waits else _names_only_inside(side, inside)
        for side, waits in zip((tree.base, tree.candidate), elsewhere, strict=True)
    )
    return MovedLoading(inside, (base, candidate))


def _loads_elsewhere(side: AlignedSide) -> bool:
    loading = side.tree.name[(side.tree.role == PartRole.DATALOADER) & (side.tree.step >= 0)]
    return any(is_multiprocess_loading(side.tree.texts[code]) for code in distinct_codes(loading))


def _names_only_inside(side: AlignedSide, nodes: Bool) -> frozenset[str]:
    operators = (side.tree.role == PartRole.OPERATOR) & (side.tree.step >= 0)
    inside = nodes[side.node]
    names_inside, names_outside = (
        {side.tree.texts[code] for code in distinct_codes(side.tree.name[operators & selected])}
        for selected in (inside, ~inside)
    )
    return frozenset(names_inside - names_outside)
