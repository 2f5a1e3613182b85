"""Two logical timelines as one tree: what stands at the same place of both meets in one node.

    base       aten::conv2d -- aten::cudnn_convolution -- volta_gemm     other names at the same place: renamed,
    candidate  aten::conv2d -- aten::miopen_convolution -- Cijk_gemm     and their times are compared

Top-down, level by level: calls of one name below one node are one node, on either side and in every step. What is
left on one side alone is paired with what is left on the other between the same neighbors, if it is of the same
role and called as often, and if there are as many of them on both sides; else it is added or removed.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from torch_tb_profiler.analyses.diff.counted_steps import counted_steps, per_step
from torch_tb_profiler.analyses.diff.roles import GATHERED, Role
from torch_tb_profiler.analyses.diff.trees.joined_tree import joined_tree
from torch_tb_profiler.analyses.diff.trees.logical_tree import LogicalTree
from torch_tb_profiler.analyses.shared.grouping import group
from torch_tb_profiler.base.memo import Memo
from torch_tb_profiler.model.pair import Pair
from torch_tb_profiler.model.trace import NO_CODE, Bool, Float64, Int8, Int32, Int64

SAME_CALLS = 0.1
"""Calls per step of a renamed part may differ by this share of the larger number."""

_FIXED_NAMES = np.array([role in GATHERED for role in Role])


class Side(msgspec.Struct, frozen=True):
    """One of the two: its tree, its steps, and the node of each element."""

    tree: LogicalTree
    step_starts: Int64
    node: Int32

    @property
    def steps(self) -> int:
        return len(self.step_starts)

    def sums(self, nodes: Int32 | Int64, values: Int64 | None, count: int) -> Float64:
        """float64[len(nodes), steps]: sums of values of elements (None: counts) by node; `count` of all nodes."""
        place = np.full(count, NO_CODE, np.int64)
        place[nodes] = np.arange(len(nodes))
        return per_step(place[self.node], self.tree.step, values, (len(nodes), self.steps))


class AlignedTree(msgspec.Struct, frozen=True):
    """Nodes of both trees; columns of length k, parents before their children, node 0 is the step.

    parent    int32  NO_CODE for node 0
    role      int8   a Role
    names     int32[2, k]  code into the texts of the base's and of the candidate's tree, NO_CODE: not there
    elements  int32[2, k]  first element of the node on either side, NO_CODE: not there
    children  int32  nodes but the first, by parent and then in order of time
    first     int64[k + 1]  where the children of a node begin in `children`
    """

    base: Side
    candidate: Side
    parent: Int32
    role: Int8
    names: Int32
    elements: Int32
    children: Int32
    first: Int64

    def __len__(self) -> int:
        return len(self.parent)

    def children_of(self, node: int) -> Int32:
        """In order of time in the base; what is only in the candidate after what precedes it there."""
        return self.children[self.first[node] : self.first[node + 1]]

    def inside(self, node: int) -> Bool:
        """bool[k]: the node and all below it."""
        inside = np.zeros(len(self), np.bool_)
        inside[node] = True
        level = self.children_of(node)
        while len(level):
            inside[level] = True
            starts, counts = self.first[level], self.first[level + 1] - self.first[level]
            begin = np.repeat(starts - np.cumsum(counts) + counts, counts)
            level = self.children[begin + np.arange(int(counts.sum()))]
        return inside

    def text(self, side: int, node: int) -> str | None:
        """Name of a node on a side (0: base), None if it is not there."""
        code = int(self.names[side, node])
        return None if code < 0 else (self.base, self.candidate)[side].tree.texts[code]


def align(pair: Pair) -> AlignedTree:
    """Both timelines as one. Kept with the candidate until other recordings are compared with it."""
    memo, key = pair.candidate[0]._memo, f"{__name__}.align"
    others = [trace._memo for trace in (*pair.base, *pair.candidate[1:])]
    with memo.lock_of(key):
        kept = memo.get(key)
        if kept is None or not _same(kept[0], others) or kept[1] != len(pair.base):
            kept = [weakref.ref(each) for each in others], len(pair.base), _Aligner(pair).run()
            memo[key] = kept
    aligned: AlignedTree = kept[2]
    return aligned


def _same(kept: Sequence[weakref.ref[Memo]], memos: Sequence[Memo]) -> bool:
    return len(kept) == len(memos) and all(a() is b for a, b in zip(kept, memos, strict=True))


@dataclass
class _Nodes:
    """Columns in the making."""

    parent: list[Int64] = field(default_factory=lambda: [np.array([NO_CODE])])
    role: list[Int8] = field(default_factory=lambda: [np.array([Role.STEP], np.int8)])
    elements: list[Int64] = field(default_factory=lambda: [np.full((2, 1), NO_CODE)])
    count: int = 1


class _Aligner:
    def __init__(self, pair: Pair) -> None:
        self.trees = joined_tree(pair.base), joined_tree(pair.candidate)
        self.step_starts = tuple(
            np.concatenate([counted_steps(trace).starts for trace in side]) for side in (pair.base, pair.candidate)
        )
        self.keys = _common_keys(self.trees)
        self.offsets = tuple(
            _offsets(tree, starts) for tree, starts in zip(self.trees, self.step_starts, strict=True)
        )
        self.node = tuple(np.zeros(len(tree) + 1, np.int32) for tree in self.trees)  # the last: the step's, 0
        self.nodes = _Nodes()

    def run(self) -> AlignedTree:
        orders = [np.argsort(tree.depth, kind="stable") for tree in self.trees]
        deepest = max(int(tree.depth.max(initial=0)) for tree in self.trees)
        bounds = [
            np.searchsorted(tree.depth[order], np.arange(1, deepest + 2))
            for tree, order in zip(self.trees, orders, strict=True)
        ]
        for level in range(deepest):
            self._level(*(order[b[level] : b[level + 1]] for order, b in zip(orders, bounds, strict=True)))
        parent = np.concatenate(self.nodes.parent).astype(np.int32)
        elements = np.concatenate(self.nodes.elements, axis=1).astype(np.int32)
        names = np.stack(
            [
                np.where(mine >= 0, np.append(tree.name, NO_CODE)[mine], NO_CODE)
                for tree, mine in zip(self.trees, elements, strict=True)
            ]
        )
        children = self._in_order(parent, elements)
        first = np.searchsorted(parent[children], np.arange(len(parent) + 1))
        base, candidate = (
            Side(tree, starts, node[:-1])
            for tree, starts, node in zip(self.trees, self.step_starts, self.node, strict=True)
        )
        role = np.concatenate(self.nodes.role)
        return AlignedTree(
            base, candidate, parent, role, names.astype(np.int32), elements, children, first.astype(np.int64)
        )

    def _level(self, *members: Int64) -> None:
        """Nodes of the elements of one depth."""
        many = len(members[0])
        above = np.concatenate(
            [self.node[i][self.trees[i].parent[mine]].astype(np.int64) for i, mine in enumerate(members)]
        )
        keys = np.concatenate([self.keys[i][mine] for i, mine in enumerate(members)])
        distinct, which = np.unique(above * (int(keys.max(initial=0)) + 1) + keys, return_inverse=True)
        which = which.reshape(-1)
        count = len(distinct)
        split = which[:many], which[many:]
        # The first element of each node; elements are in order of time, so the last write backwards is the first.
        elements = np.full((2, count), NO_CODE)
        for side in (0, 1):
            elements[side, split[side][::-1]] = members[side][::-1]
        some = np.empty(count, np.int64)
        some[which] = np.arange(len(which))
        parent = above[some]
        role = np.concatenate([self.trees[i].role[mine] for i, mine in enumerate(members)])[some]
        merged = np.arange(count)
        if (elements < 0).any():
            calls = [
                np.bincount(split[side][self.trees[side].step[members[side]] >= 0], minlength=count)
                / max(len(self.step_starts[side]), 1)
                for side in (0, 1)
            ]
            left, right = self._renamed(parent, role, elements, calls)
            merged[right] = left
            elements[1, left] = elements[1, right]
        kept = merged == np.arange(count)
        number = np.cumsum(kept) - 1 + self.nodes.count
        for side in (0, 1):
            self.node[side][members[side]] = number[merged[split[side]]]
        self.nodes.parent.append(parent[kept])
        self.nodes.role.append(role[kept])
        self.nodes.elements.append(elements[:, kept])
        self.nodes.count += int(kept.sum())

    def _renamed(self, parent: Int64, role: Int8, elements: Int64, calls: list[Float64]) -> tuple[Int64, Int64]:
        """Pairs of nodes (of the base alone, of the candidate alone) that stand at the same place."""
        both = (elements[0] >= 0) & (elements[1] >= 0)
        unmatched, gaps = [], []
        for side in (0, 1):
            mine = np.flatnonzero(elements[side] >= 0)
            mine = mine[np.lexsort((self.offsets[side][elements[side, mine]], parent[mine]))]
            # The last one before, below the same parent, that both sides have.
            before = np.maximum.accumulate(np.where(both[mine], np.arange(len(mine)), -1))
            near = (before >= 0) & (parent[mine[before]] == parent[mine])
            alone = ~both[mine] & ~_FIXED_NAMES[role[mine]]
            unmatched.append(mine[alone])
            gaps.append(np.where(near, mine[before], NO_CODE)[alone])
        nodes = np.concatenate(unmatched)
        if len(unmatched[0]) == 0 or len(unmatched[1]) == 0:
            return nodes[:0], nodes[:0]
        places = group(parent[nodes], np.concatenate(gaps), role[nodes].astype(np.int64))
        which = places.which[: len(unmatched[0])], places.which[len(unmatched[0]) :]
        counts = [np.bincount(each, minlength=len(places)) for each in which]
        even = counts[0] == counts[1]
        # Within a place both are in order of time already: the first of one meets the first of the other.
        pairs = [
            alone[np.argsort(each, kind="stable")][even[np.sort(each)]]
            for alone, each in zip(unmatched, which, strict=True)
        ]
        left, right = pairs
        first, second = calls[0][left], calls[1][right]
        similar = (np.abs(first - second) <= SAME_CALLS * np.maximum(first, second)) & (first > 0)
        return left[similar], right[similar]

    def _in_order(self, parent: Int32, elements: Int32) -> Int32:
        """Nodes but the first by parent; below it by time in the base, new ones after what precedes them."""
        times = [
            np.where(mine >= 0, np.append(offset, 0)[mine], np.iinfo(np.int64).min)
            for offset, mine in zip(self.offsets, elements, strict=True)
        ]
        new = elements[0] < 0
        there = np.flatnonzero(elements[1] >= 0)
        there = there[np.lexsort((times[1][there], parent[there]))]
        before = np.maximum.accumulate(np.where(new[there], -1, np.arange(len(there))))
        near = (before >= 0) & (parent[there[before]] == parent[there])
        anchor = times[0].copy()
        anchor[there] = np.where(near, times[0][there[before]], np.iinfo(np.int64).min)
        anchor[~new] = times[0][~new]
        order = np.lexsort((times[1], new, anchor, parent))
        return order[parent[order] >= 0].astype(np.int32)


def _offsets(tree: LogicalTree, step_starts: Int64) -> Int64:
    """int64[m]: start since the step's start; since the trace's for what is in no counted step."""
    return np.where(tree.step >= 0, tree.start - np.append(step_starts, 0)[tree.step], tree.start)


def _common_keys(trees: tuple[LogicalTree, LogicalTree]) -> tuple[Int64, Int64]:
    """int64[m] of each: equal for elements of the same role, name and occurrence; dense."""
    codes: dict[tuple[int, str], int] = {}
    keys = []
    occurrences = 1 + max(int(tree.occurrence.max(initial=0)) for tree in trees)
    for tree in trees:
        pairs = tree.name.astype(np.int64) * len(Role) + tree.role
        distinct, which = np.unique(pairs, return_inverse=True)
        of_pair = np.empty(len(distinct), np.int64)
        for i, pair in enumerate(distinct.tolist()):
            name, role = divmod(pair, len(Role))
            # All iterators over data are alike: one process or several, DataLoader or DataPipe.
            text = "" if role == Role.DATALOADER else tree.texts[name]
            of_pair[i] = codes.setdefault((role, text), len(codes))
        keys.append(of_pair[which.reshape(-1)] * occurrences + tree.occurrence)
    return keys[0], keys[1]
