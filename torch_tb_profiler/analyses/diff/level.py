"""An open part of the logical timeline: its own parts, and the operators inside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from torch_tb_profiler.analyses.diff.changes import NO_TIME, NOT_KNOWN, Change, changes
from torch_tb_profiler.analyses.diff.computed import Computed, computed_by_operator
from torch_tb_profiler.analyses.diff.counted_steps import Values, step_durations
from torch_tb_profiler.analyses.diff.moved import moved
from torch_tb_profiler.analyses.diff.name_tables import (
    Calls,
    ComparedName,
    NameTable,
    joined,
    mean_calls,
    name_table,
    operator_items,
    renames,
)
from torch_tb_profiler.analyses.diff.roles import Role
from torch_tb_profiler.analyses.diff.trees.tree_alignment import AlignedTree, Side, align
from torch_tb_profiler.analyses.shared.breakdown import breakdown
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.model.pair import Pair, Recordings
from torch_tb_profiler.model.trace import Bool, Float64, Int32, Int64

OPERATOR_TIMES = ("host_self", "host_total", "device_self", "device_total")
"""The columns of an operator, in this order."""


class ComparedPart(msgspec.Struct, frozen=True):
    """A part on both sides.

    path        numbers of the children from the root, joined by "-"; "" is the root
    base_name, candidate_name    None where it is not there
    role        None: the time of the open part itself, outside its parts
    parts       how many parts it has of its own
    base_event, candidate_event  row of its first call in the first recording, None where it has none of its own
    moved       it is on one side alone, the other leaves it to processes that are not recorded
    """

    path: str
    base_name: str | None
    candidate_name: str | None
    role: Role | None
    parts: int
    calls: Calls
    host: Change
    device: Change
    base_event: int | None
    candidate_event: int | None
    moved: bool = False


class ComparedLevel(msgspec.Struct, frozen=True):
    """An open part.

    trail      (path, name) from the root to the open part
    parts      in order of time; the time of the part itself last
    operators  inside it, with changes of OPERATOR_TIMES
    computed   name -> what its calls inside the part compute, in the base and in the candidate
    reasons    "host", "device" -> why these times are not known
    """

    trail: tuple[tuple[str, str], ...]
    part: ComparedPart
    parts: tuple[ComparedPart, ...]
    operators: tuple[ComparedName, ...]
    computed: tuple[Mapping[str, Computed], Mapping[str, Computed]]
    reasons: Mapping[str, str]


def compare_part(pair: Pair, path: str, min_effect: float) -> ComparedLevel:
    """The level of a path; NotFoundError if there is no such part."""
    values = LevelValues(pair, path)
    return values.compared(changes(pair, min_effect, values.blocks).of)


class LevelValues:
    """Values per step of an open part.

    tree    both timelines as one
    blocks  name -> what is to be judged: "host" and "device", with rows for the part and each of its parts ("host"
            has another for the time outside of these); OPERATOR_TIMES, with a row per operator
    """

    def __init__(self, pair: Pair, path: str) -> None:
        self.tree: AlignedTree = align(pair)
        self._trail = _trail(self.tree, path)
        self._node = self._trail[-1][1]
        self._children: Int32 = self.tree.children_of(self._node)
        self._moved = moved(self.tree)
        self._reasons = _reasons(pair)
        durations = step_durations(pair.base), step_durations(pair.candidate)
        self._calls, host, device = _times(self.tree, self._node, self._children, durations)
        self._inside = (
            self._rows_inside(pair.base, self.tree.base),
            self._rows_inside(pair.candidate, self.tree.candidate),
        )
        self._operators = self._operator_table(pair)
        self._computed = (
            computed_by_operator(pair.base, self._inside[0]),
            computed_by_operator(pair.candidate, self._inside[1]),
        )
        self.blocks: dict[str, Values] = {"host": host, "device": device}
        self.blocks |= dict(zip(OPERATOR_TIMES, self._operators.columns, strict=True))

    def _operator_table(self, pair: Pair) -> NameTable:
        base, candidate = (
            joined([operator_items(trace, kept) for trace, kept in zip(recordings, inside, strict=True)])
            for recordings, inside in zip((pair.base, pair.candidate), self._inside, strict=True)
        )
        return name_table(base, candidate, renames(self.tree, Role.OPERATOR))

    def _rows_inside(self, recordings: Recordings, side: Side) -> list[Bool | None]:
        """Of each recording which rows are inside the part; None for the root, which has all."""
        inside: list[Bool | None] = [None] * len(recordings)
        if self._node:
            nodes = np.append(self.tree.inside(self._node), False)
            elements = np.append(side.node, len(self.tree))
            rows = nodes[elements[side.tree.of_row]]
            inside = [*np.split(rows, np.cumsum([len(trace) for trace in recordings])[:-1])]
        return inside

    def compared(self, judged: Mapping[str, Sequence[Change]]) -> ComparedLevel:
        """The level, from the changes of its blocks."""
        known = {
            name: [NOT_KNOWN] * len(judged[name]) if name.partition("_")[0] in self._reasons else judged[name]
            for name in self.blocks
        }
        path = self._trail[-1][0]
        parts = [
            self._part(int(node), _joined(path, i), 1 + i, known)
            for i, node in enumerate(self._children)
            if any(side[1 + i].any() for side in self._calls)  # else it is in no counted step
        ]
        self_time = known["host"][-1]
        if len(self._children) and (self_time.base_ns or self_time.candidate_ns):
            calls = mean_calls(self._calls, 0)
            parts.append(ComparedPart(path, None, None, None, 0, calls, self_time, NO_TIME, None, None))
        return ComparedLevel(
            trail=tuple((above, part_name(self.tree, node)) for above, node in self._trail),
            part=self._part(self._node, path, 0, known),
            parts=tuple(parts),
            operators=tuple(
                replace(row, moved=self._is_moved(row.base_name, row.candidate_name))
                for row in self._operators.compared(*(known[time] for time in OPERATOR_TIMES))
            ),
            computed=self._computed,
            reasons=self._reasons,
        )

    def _is_moved(self, base: str | None, candidate: str | None) -> bool:
        first, second = self._moved.names
        return base in first if candidate is None else base is None and candidate in second

    def _part(self, node: int, path: str, row: int, judged: Mapping[str, Sequence[Change]]) -> ComparedPart:
        tree = self.tree
        return ComparedPart(
            path=path,
            base_name=tree.text(0, node) if node else "step",
            candidate_name=tree.text(1, node) if node else "step",
            role=Role(int(tree.role[node])),
            parts=int(tree.first[node + 1] - tree.first[node]),
            calls=mean_calls(self._calls, row),
            host=judged["host"][row],
            device=judged["device"][row],
            base_event=_first_event(tree.base, int(tree.elements[0, node])),
            candidate_event=_first_event(tree.candidate, int(tree.elements[1, node])),
            moved=bool(self._moved.nodes[node]) and bool((tree.elements[:, node] < 0).any()),
        )


def _joined(path: str, number: int) -> str:
    return f"{path}-{number}" if path else str(number)


def _first_event(side: Side, element: int) -> int | None:
    row = int(side.tree.row[element]) if element >= 0 else -1
    return row if row >= 0 else None


def _reasons(pair: Pair) -> dict[str, str]:
    """ "host", "device" -> why these times are not known on one side."""
    unknown = [breakdown(trace).unknown for trace in (*pair.base, *pair.candidate)]
    reasons = {}
    for time, category in (("device", "kernel"), ("host", "cpu_exec")):
        given = [each[category] for each in unknown if category in each]
        if given:
            reasons[time] = given[0]
    return reasons


def _trail(tree: AlignedTree, path: str) -> list[tuple[str, int]]:
    """(path, node) from the root to the part of a path; NotFoundError if there is none."""
    trail = [("", 0)]
    for text in path.split("-") if path else ():
        above, node = trail[-1]
        children = tree.children_of(node)
        number = int(text) if text.isdecimal() else len(children)
        if number >= len(children):
            name = part_name(tree, node)
            hint = f"parts of {name}: 0 to {len(children) - 1}" if len(children) else f"{name} has no parts"
            raise NotFoundError(f"there is no part {path!r}", hint=hint)
        trail.append((_joined(above, number), int(children[number])))
    return trail


def part_name(tree: AlignedTree, node: int) -> str:
    """In the base; in the candidate if it was added."""
    return "step" if node == 0 else tree.text(0, node) or tree.text(1, node) or ""


def _times(tree: AlignedTree, node: int, children: Int32, steps: Values) -> tuple[Values, Values, Values]:
    """(calls, host, device) per step of a node and each of its children; `host` ends with the node's self time."""
    nodes = np.append(node, children).astype(np.int64)
    base, candidate = (
        _times_of_side(side, nodes, len(tree), duration[0])
        for side, duration in zip((tree.base, tree.candidate), steps, strict=True)
    )
    calls, host, device = zip(base, candidate, strict=True)
    return calls, host, device


def _times_of_side(side: Side, nodes: Int64, count: int, step: Float64) -> tuple[Float64, Float64, Float64]:
    elements = side.tree
    calls = side.sums(nodes, None, count)
    host = side.sums(nodes, elements.host, count)
    device = side.sums(nodes, elements.device, count)
    nested = host[1:]
    if nodes[0] == 0:
        outermost = elements.parent < 0
        calls[0] = 1
        host[0] = step
        device[0] = side.sums(nodes[1:], np.where(outermost, elements.device, 0), count).sum(axis=0)
        nested = side.sums(nodes[1:], np.where(outermost & elements.main, elements.host, 0), count)
    self_time = np.maximum(host[0] - nested.sum(axis=0), 0)
    return calls, np.vstack([host, self_time]), device
