"""An open part of the logical timeline: its parts, and the operators inside it."""

from __future__ import annotations

import msgspec
import numpy as np
from msgspec.structs import replace

from torch_tb_profiler.analyses.diff.counted_steps import counted_steps
from torch_tb_profiler.analyses.diff.logical_tree import Role
from torch_tb_profiler.analyses.diff.name_tables import NameTable, Pair, name_table, operator_items, renames
from torch_tb_profiler.analyses.diff.tree_alignment import AlignedTree, Side, align
from torch_tb_profiler.analyses.shared.breakdown import breakdown
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.model.trace import Bool, Int32, Trace
from torch_tb_profiler.views.diff.payload import (
    Change,
    DiffCrumb,
    DiffLevel,
    DiffOperator,
    DiffPart,
    DiffPartParams,
)
from torch_tb_profiler.views.diff.rows import NOTHING, Judged, magnitude, mean_calls, rules, status

SELF = "between its parts"


def build(candidate: Trace, base: Trace, params: DiffPartParams) -> DiffLevel:
    """The level of a path; NotFoundError if there is no such part."""
    level = Level(base, candidate, params.path)
    judged = Judged(rules(base, candidate, params.min_effect), [steps_pair(base, candidate), *level.blocks])
    return level.draw(judged, 1)


def steps_pair(base: Trace, candidate: Trace) -> Pair:
    """Durations of the steps of both sides, one row."""
    first, second = (counted_steps(trace).durations[None, :].astype(np.float64) for trace in (base, candidate))
    return first, second


def device_reason(trace: Trace) -> str | None:
    """Why times of device work are not known, None if they are."""
    return breakdown(trace).unknown.get("kernel")


def host_reason(trace: Trace) -> str | None:
    """Why times of the host are not known, None if they are."""
    return breakdown(trace).unknown.get("cpu_exec")


class _Rows(msgspec.Struct, frozen=True):
    """Of the part itself, each of its parts, and what lies between: calls, host and device time."""

    calls: Pair
    host: Pair
    device: Pair


class Level:
    """Blocks of values to be judged, and how they are drawn once they are."""

    def __init__(self, base: Trace, candidate: Trace, path: str) -> None:
        self.base, self.candidate = base, candidate
        self.tree: AlignedTree = align(base, candidate)
        self.trail = _trail(self.tree, path)
        self.node = self.trail[-1]
        self.parts: Int32 = self.tree.children_of(self.node)
        self.reasons = {
            field: reason
            for field, why in (("device", device_reason), ("host", host_reason))
            if (reason := why(base) or why(candidate)) is not None
        }
        self.rows = _rows(self.tree, self.node, self.parts, steps_pair(base, candidate))
        self.table: NameTable = self._operators()
        self.blocks: list[Pair] = [self.rows.host, self.rows.device, *self.table.columns]

    def _operators(self) -> NameTable:
        inside: list[Bool | None] = [None, None]
        if self.node:
            nodes = np.append(self.tree.inside(self.node), False)
            for i, side in enumerate((self.tree.base, self.tree.candidate)):
                elements = np.append(side.node, len(self.tree))
                inside[i] = nodes[elements[side.tree.of_row]]
        base, candidate = operator_items(self.base, inside[0]), operator_items(self.candidate, inside[1])
        return name_table(base, candidate, renames(self.tree, Role.OPERATOR))

    def draw(self, judged: Judged, first: int) -> DiffLevel:
        """The payload; `first` is where the level's blocks begin among those judged."""
        path = "-".join(str(number) for number in self._numbers())
        host, device = (
            [NOTHING if field in self.reasons else judged.change(first + block, row) for row in self._all_rows()]
            for block, field in ((0, "host"), (1, "device"))
        )
        parts = [
            self._part(int(node), f"{path}-{i}" if path else str(i), 1 + i, host[1 + i], device[1 + i])
            for i, node in enumerate(self.parts)
            if any(side[1 + i].any() for side in self.rows.calls)  # else it is in no counted step
        ]
        if len(self.parts):
            parts += self._between(path, host[-1])
        return DiffLevel(
            path=path,
            crumbs=self._crumbs(),
            part=self._part(self.node, path, 0, host[0], device[0]),
            parts=_accumulated(parts),
            operators=self._operator_rows(judged, first + 2),
            reasons=self.reasons,
        )

    def _all_rows(self) -> range:
        return range(len(self.rows.host[0]))

    def _numbers(self) -> list[int]:
        pairs = zip(self.trail, self.trail[1:], strict=False)
        return [int(np.flatnonzero(self.tree.children_of(above) == node)[0]) for above, node in pairs]

    def _crumbs(self) -> list[DiffCrumb]:
        numbers = self._numbers()
        return [
            DiffCrumb("-".join(map(str, numbers[:depth])), _name(self.tree, node))
            for depth, node in enumerate(self.trail)
        ]

    def _part(self, node: int, path: str, row: int, host: Change, device: Change) -> DiffPart:
        tree = self.tree
        names = tree.text(0, node), tree.text(1, node)
        events = [self._event(side, which, node) for which, side in enumerate((tree.base, tree.candidate))]
        state = status(*names) if node else "matched"
        return DiffPart(
            path=path,
            name=_name(tree, node),
            candidate_name=names[1] if state == "renamed" else None,
            kind=Role(int(tree.role[node])).name.lower(),
            status=state,
            parts=int(tree.first[node + 1] - tree.first[node]),
            calls=mean_calls(self.rows.calls, row),
            host=host,
            device=device,
            delta_accumulated_ns=None,
            delta_device_accumulated_ns=None,
            base_event=events[0],
            candidate_event=events[1],
        )

    def _event(self, side: Side, which: int, node: int) -> int | None:
        element = int(self.tree.elements[which, node])
        row = int(side.tree.row[element]) if element >= 0 else -1
        return row if row >= 0 else None

    def _between(self, path: str, host: Change) -> list[DiffPart]:
        """What the part itself takes; it has no number, for it cannot be opened."""
        if not (host.base_ns or host.candidate_ns):
            return []
        row = len(self.rows.host[0]) - 1
        calls = mean_calls(self.rows.calls, row)
        device = replace(NOTHING, base_ns=0.0, candidate_ns=0.0, delta_ns=0.0, delta_ratio=0.0, verdict="equal")
        return [
            DiffPart(path, SELF, None, "self", "matched", 0, calls, host, device, None, None, None, None),
        ]

    def _operator_rows(self, judged: Judged, first: int) -> list[DiffOperator]:
        rows = []
        for row, (old, new) in enumerate(self.table.names):
            changes = [
                NOTHING if field in self.reasons else judged.change(first + block, row)
                for block, field in enumerate(("host", "host", "device", "device"))
            ]
            state = status(old, new)
            rows.append(
                DiffOperator(
                    old or new or "",
                    new if state == "renamed" else None,
                    state,
                    mean_calls(self.table.calls, row),
                    *changes,
                )
            )
        return sorted(rows, key=lambda row: magnitude(row.host_self, row.device_self))


def _trail(tree: AlignedTree, path: str) -> list[int]:
    """Nodes from the root to the part of a path."""
    trail = [0]
    for text in path.split("-") if path else ():
        children = tree.children_of(trail[-1])
        number = int(text) if text.isdecimal() else len(children)
        if number >= len(children):
            known = (
                f"parts of {_name(tree, trail[-1])}: 0 to {len(children) - 1}" if len(children) else "it has none"
            )
            raise NotFoundError(f"there is no part {path!r}", hint=known)
        trail.append(int(children[number]))
    return trail


def _name(tree: AlignedTree, node: int) -> str:
    return "step" if node == 0 else tree.text(0, node) or tree.text(1, node) or ""


def _rows(tree: AlignedTree, node: int, parts: Int32, steps: Pair) -> _Rows:
    asked = np.append(node, parts)
    calls, host, device = [], [], []
    for which, side in enumerate((tree.base, tree.candidate)):
        every = side.tree
        counts = side.sums(asked, None, len(tree))
        lasting = side.sums(asked, every.host, len(tree))
        launched = side.sums(asked, every.device, len(tree))
        nested = lasting[1:]
        if node == 0:
            counts[0] = 1
            lasting[0] = steps[which][0]
            outer = every.parent < 0
            launched[0] = side.sums(parts, np.where(outer, every.device, 0), len(tree)).sum(axis=0)
            nested = side.sums(parts, np.where(outer & every.main, every.host, 0), len(tree))
        own = np.maximum(lasting[0] - nested.sum(axis=0), 0)
        calls.append(np.vstack([counts, counts[:1]]))
        host.append(np.vstack([lasting, own]))
        device.append(np.vstack([launched, np.zeros_like(own)]))
    return _Rows((calls[0], calls[1]), (host[0], host[1]), (device[0], device[1]))


def _accumulated(parts: list[DiffPart]) -> list[DiffPart]:
    """With the sums of the differences up to each part; unknown from the first that is unknown."""
    host: float | None = 0.0
    device: float | None = 0.0
    found = []
    for part in parts:
        host = None if host is None or part.host.delta_ns is None else host + part.host.delta_ns
        device = None if device is None or part.device.delta_ns is None else device + part.device.delta_ns
        found.append(replace(part, delta_accumulated_ns=host, delta_device_accumulated_ns=device))
    return found
