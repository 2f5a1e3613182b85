"""Align two logical timelines: what stands at the same place of both becomes one node.

    base       aten::conv2d -- aten::cudnn_convolution -- volta_gemm     another name at the same place: renamed,
    candidate  aten::conv2d -- aten::miopen_convolution -- Cijk_gemm     and their times are compared

Top-down, level by level: calls of one name below one node are one node, on either side and in every step. Nodes
that only one side has are paired with those that only the other has between the same neighbors, if there are as
many of them on both sides, with the same role and called as often; else they are added or removed.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from torch_tb_profiler.analyses.diff.counted_steps import counted_steps, step_counts, sum_per_step
from torch_tb_profiler.analyses.diff.kernel_origins import align_kernels_by_origin
from torch_tb_profiler.analyses.diff.logical_tree import LogicalTree, logical_tree
from torch_tb_profiler.analyses.diff.roles import GROUP_NAMES, PartRole
from torch_tb_profiler.analyses.shared.grouping import group
from torch_tb_profiler.base.memo import Memo
from torch_tb_profiler.model.trace import NO_CODE, Bool, Float64, Int8, Int32, Int64, Recordings, TracePair

MAX_CALLS_DIFFERENCE = 0.1
"""Largest difference in calls per step of a renamed part, as a share of the larger number."""

_IS_GROUP = np.array([role in GROUP_NAMES for role in PartRole])


class AlignedSide(msgspec.Struct, frozen=True):
    """One side of an aligned tree: its own tree, its steps, and the node of each element."""

    tree: LogicalTree
    step_starts: Int64
    node: Int32

    @property
    def steps(self) -> int:
        return len(self.step_starts)

    def sums(self, nodes: Int32 | Int64, values: Int64 | None, count: int) -> Float64:
        """Return sums of element values (counts if None) by node, float64[len(nodes), steps].

        `count` is the number of nodes in the aligned tree.
        """
        place = np.full(count, NO_CODE, np.int64)
        place[nodes] = np.arange(len(nodes))
        return sum_per_step(place[self.node], self.tree.step, values, (len(nodes), self.steps))


class AlignedTree(msgspec.Struct, frozen=True):
    """The nodes of both trees; columns of length k, parents before their children, node 0 is the step.

    parent    int32  NO_CODE for node 0
    role      int8   a PartRole
    names     int32[2, k]  code into the texts of the base's and the candidate's tree, NO_CODE on a side without it
    elements  int32[2, k]  first element of the node on either side, NO_CODE on a side without it
    children  int32  all nodes except the first, by parent and then in order of time
    first     int64[k + 1]  where the children of a node begin in `children`
    """

    base: AlignedSide
    candidate: AlignedSide
    parent: Int32
    role: Int8
    names: Int32
    elements: Int32
    children: Int32
    first: Int64

    def __len__(self) -> int:
        return len(self.parent)

    def children_of(self, node: int) -> Int32:
        """Return the children in order of time in the base; added ones follow what precedes them."""
        return self.children[self.first[node] : self.first[node + 1]]

    def subtree_mask(self, node: int) -> Bool:
        """Return which nodes are this one or below it, bool[k]."""
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
        """Return the name of a node on a side (0: base), None if that side doesn't have it."""
        code = int(self.names[side, node])
        return None if code < 0 else (self.base, self.candidate)[side].tree.texts[code]


def align(pair: TracePair) -> AlignedTree:
    """Align both sides. The tree is cached with the candidate until other recordings are compared with it."""
    memo, key = pair.candidate[0]._memo, f"{__name__}.align"
    others = [trace._memo for trace in (*pair.base, *pair.candidate[1:])]
    with memo.lock_of(key):
        cached = memo.get(key)
        if cached is None or not _are_same(cached[0], others) or cached[1] != len(pair.base):
            cached = [weakref.ref(other) for other in others], len(pair.base), _Aligner(pair).run()
            memo[key] = cached
    aligned: AlignedTree = cached[2]
    return aligned


def _are_same(cached: Sequence[weakref.ref[Memo]], memos: Sequence[Memo]) -> bool:
    return len(cached) == len(memos) and all(a() is b for a, b in zip(cached, memos, strict=True))


@dataclass
class _NodeColumns:
    """Columns of the nodes, one array per level so far."""

    parent: list[Int64] = field(default_factory=lambda: [np.array([NO_CODE])])
    role: list[Int8] = field(default_factory=lambda: [np.array([PartRole.STEP], np.int8)])
    elements: list[Int64] = field(default_factory=lambda: [np.full((2, 1), NO_CODE)])
    count: int = 1


class _Aligner:
    def __init__(self, pair: TracePair) -> None:
        self.trees = join_trees(pair.base), join_trees(pair.candidate)
        self.step_starts = tuple(
            np.concatenate([counted_steps(trace).starts for trace in side]) for side in (pair.base, pair.candidate)
        )
        self.keys = _build_common_keys(self.trees, align_kernels_by_origin(pair))
        self.offsets = tuple(
            _offsets_in_step(tree, starts) for tree, starts in zip(self.trees, self.step_starts, strict=True)
        )
        self.node = tuple(
            np.zeros(len(tree) + 1, np.int32) for tree in self.trees
        )  # the last entry is the step, node 0
        self.nodes = _NodeColumns()

    def run(self) -> AlignedTree:
        orders = [np.argsort(tree.depth, kind="stable") for tree in self.trees]
        deepest = max(int(tree.depth.max(initial=0)) for tree in self.trees)
        bounds = [
            np.searchsorted(tree.depth[order], np.arange(1, deepest + 2))
            for tree, order in zip(self.trees, orders, strict=True)
        ]
        for level in range(deepest):
            self._align_level(*(order[b[level] : b[level + 1]] for order, b in zip(orders, bounds, strict=True)))
        parent = np.concatenate(self.nodes.parent).astype(np.int32)
        elements = np.concatenate(self.nodes.elements, axis=1).astype(np.int32)
        names = np.stack(
            [
                np.where(mine >= 0, np.append(tree.name, NO_CODE)[mine], NO_CODE)
                for tree, mine in zip(self.trees, elements, strict=True)
            ]
        )
        children = self._order_children(parent, elements)
        first = np.searchsorted(parent[children], np.arange(len(parent) + 1))
        base, candidate = (
            AlignedSide(tree, starts, node[:-1])
            for tree, starts, node in zip(self.trees, self.step_starts, self.node, strict=True)
        )
        role = np.concatenate(self.nodes.role)
        return AlignedTree(
            base, candidate, parent, role, names.astype(np.int32), elements, children, first.astype(np.int64)
        )

    def _align_level(self, *members: Int64) -> None:
        """Add the nodes of the elements of one depth."""
        base_count = len(members[0])
        above = np.concatenate(
            [self.node[i][self.trees[i].parent[mine]].astype(np.int64) for i, mine in enumerate(members)]
        )
        keys = np.concatenate([self.keys[i][mine] for i, mine in enumerate(members)])
        distinct, which = np.unique(above * (int(keys.max(initial=0)) + 1) + keys, return_inverse=True)
        which = which.reshape(-1)
        count = len(distinct)
        split = which[:base_count], which[base_count:]
        # The first element of each node; elements are in order of time, so the last write backwards is the first.
        elements = np.full((2, count), NO_CODE)
        for side in (0, 1):
            elements[side, split[side][::-1]] = members[side][::-1]
        sample = np.empty(count, np.int64)  # any element of each node: all have its parent and role
        sample[which] = np.arange(len(which))
        parent = above[sample]
        role = np.concatenate([self.trees[i].role[mine] for i, mine in enumerate(members)])[sample]
        merged = np.arange(count)
        if (elements < 0).any():
            calls = [
                np.bincount(split[side][self.trees[side].step[members[side]] >= 0], minlength=count)
                / max(len(self.step_starts[side]), 1)
                for side in (0, 1)
            ]
            left, right = self._find_pairs(parent, role, elements, calls)
            merged[right] = left
            elements[1, left] = elements[1, right]
        remains = merged == np.arange(count)
        number = np.cumsum(remains) - 1 + self.nodes.count
        for side in (0, 1):
            self.node[side][members[side]] = number[merged[split[side]]]
        self.nodes.parent.append(parent[remains])
        self.nodes.role.append(role[remains])
        self.nodes.elements.append(elements[:, remains])
        self.nodes.count += int(remains.sum())

    def _find_pairs(self, parent: Int64, role: Int8, elements: Int64, calls: list[Float64]) -> tuple[Int64, Int64]:
        """Return pairs of nodes (only in the base, only in the candidate) that stand at the same place."""
        both = (elements[0] >= 0) & (elements[1] >= 0)
        unmatched, gaps = [], []
        for side in (0, 1):
            mine = np.flatnonzero(elements[side] >= 0)
            mine = mine[np.lexsort((self.offsets[side][elements[side, mine]], parent[mine]))]
            # The last node before, below the same parent, that both sides have.
            before = np.maximum.accumulate(np.where(both[mine], np.arange(len(mine)), -1))
            near = (before >= 0) & (parent[mine[before]] == parent[mine])
            alone = ~both[mine] & ~_IS_GROUP[role[mine]]
            unmatched.append(mine[alone])
            gaps.append(np.where(near, mine[before], NO_CODE)[alone])
        nodes = np.concatenate(unmatched)
        if len(unmatched[0]) == 0 or len(unmatched[1]) == 0:
            return nodes[:0], nodes[:0]
        places = group(parent[nodes], np.concatenate(gaps), role[nodes].astype(np.int64))
        which = places.which[: len(unmatched[0])], places.which[len(unmatched[0]) :]
        counts = [np.bincount(place, minlength=len(places)) for place in which]
        even = counts[0] == counts[1]
        # Within a place both are in order of time already: the first of one is paired with the first of the other.
        pairs = [
            alone[np.argsort(place, kind="stable")][even[np.sort(place)]]
            for alone, place in zip(unmatched, which, strict=True)
        ]
        left, right = pairs
        first, second = calls[0][left], calls[1][right]
        similar = (np.abs(first - second) <= MAX_CALLS_DIFFERENCE * np.maximum(first, second)) & (first > 0)
        return left[similar], right[similar]

    def _order_children(self, parent: Int32, elements: Int32) -> Int32:
        """Return all nodes except the first by parent, then as in `AlignedTree.children_of`."""
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


def _offsets_in_step(tree: LogicalTree, step_starts: Int64) -> Int64:
    """Return the start of each element since that of its step, int64[m]; outside of steps, since the trace's."""
    return np.where(tree.step >= 0, tree.start - np.append(step_starts, 0)[tree.step], tree.start)


def _build_common_keys(trees: tuple[LogicalTree, LogicalTree], aligned: Mapping[str, str]) -> tuple[Int64, Int64]:
    """Return dense keys that are equal for elements of the same role, name and occurrence, int64[m] per tree.

    aligned  kernel of the base -> that of the candidate with the same origin
    """
    matched = set(aligned.values())
    codes: dict[tuple[int, str], int] = {}
    keys = []
    occurrences = 1 + max(int(tree.occurrence.max(initial=0)) for tree in trees)
    for side, tree in enumerate(trees):
        pairs = tree.name.astype(np.int64) * len(PartRole) + tree.role
        distinct, which = np.unique(pairs, return_inverse=True)
        of_pair = np.empty(len(distinct), np.int64)
        for i, pair in enumerate(distinct.tolist()):
            name, role = divmod(pair, len(PartRole))
            # All iterators over data count as the same: one process or several, DataLoader or DataPipe.
            text = "" if role == PartRole.DATALOADER else tree.texts[name]
            if side == 0 and role == PartRole.DEVICE:
                text = aligned.get(text, f"{text}\0base" if text in matched else text)
            of_pair[i] = codes.setdefault((role, text), len(codes))
        keys.append(of_pair[which.reshape(-1)] * occurrences + tree.occurrence)
    return keys[0], keys[1]


def join_trees(recordings: Recordings) -> LogicalTree:
    """Return the timelines of the recordings of a side as one, recording after recording.

    Steps are numbered consecutively, and only elements of the first recording have a `row`.
    """
    trees = [logical_tree(trace) for trace in recordings]
    if len(trees) == 1:
        return trees[0]
    elements = _running_counts([len(tree) for tree in trees])
    texts = _running_counts([len(tree.texts) for tree in trees])
    steps = _running_counts(step_counts(recordings))
    return LogicalTree(
        texts=[text for tree in trees for text in tree.texts],
        parent=_shift([tree.parent for tree in trees], elements),
        depth=np.concatenate([tree.depth for tree in trees]),
        role=np.concatenate([tree.role for tree in trees]),
        name=_shift([tree.name for tree in trees], texts),
        occurrence=np.concatenate([tree.occurrence for tree in trees]),
        step=_shift([tree.step for tree in trees], steps),
        start=np.concatenate([tree.start for tree in trees]),
        host=np.concatenate([tree.host for tree in trees]),
        device=np.concatenate([tree.device for tree in trees]),
        row=np.concatenate([trees[0].row, *(np.full(len(tree), NO_CODE, np.int32) for tree in trees[1:])]),
        main=np.concatenate([tree.main for tree in trees]),
        of_row=_shift([tree.of_row for tree in trees], elements),
    )


def _running_counts(counts: Sequence[int]) -> list[int]:
    return [sum(counts[:i]) for i in range(len(counts))]


def _shift(columns: Sequence[Int32], offsets: Sequence[int]) -> Int32:
    shifted = [np.where(column >= 0, column + by, NO_CODE) for column, by in zip(columns, offsets, strict=True)]
    return np.concatenate(shifted).astype(np.int32)
