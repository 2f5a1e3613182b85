"""The logical timelines of the recordings of a side as one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from torch_tb_profiler.analyses.diff.counted_steps import step_counts
from torch_tb_profiler.analyses.diff.trees.logical_tree import LogicalTree, logical_tree
from torch_tb_profiler.model.pair import Recordings
from torch_tb_profiler.model.trace import NO_CODE, Int32


def joined_tree(recordings: Recordings) -> LogicalTree:
    """Recording after recording: steps are numbered on, and only elements of the first recording have a `row`."""
    trees = [logical_tree(trace) for trace in recordings]
    if len(trees) == 1:
        return trees[0]
    elements = _offsets([len(tree) for tree in trees])
    texts = _offsets([len(tree.texts) for tree in trees])
    steps = _offsets(step_counts(recordings))
    return LogicalTree(
        texts=[text for tree in trees for text in tree.texts],
        parent=_shifted([tree.parent for tree in trees], elements),
        depth=np.concatenate([tree.depth for tree in trees]),
        role=np.concatenate([tree.role for tree in trees]),
        name=_shifted([tree.name for tree in trees], texts),
        occurrence=np.concatenate([tree.occurrence for tree in trees]),
        step=_shifted([tree.step for tree in trees], steps),
        start=np.concatenate([tree.start for tree in trees]),
        host=np.concatenate([tree.host for tree in trees]),
        device=np.concatenate([tree.device for tree in trees]),
        row=np.concatenate([trees[0].row, *(np.full(len(tree), NO_CODE, np.int32) for tree in trees[1:])]),
        main=np.concatenate([tree.main for tree in trees]),
        of_row=_shifted([tree.of_row for tree in trees], elements),
    )


def _offsets(counts: Sequence[int]) -> list[int]:
    return [sum(counts[:at]) for at in range(len(counts))]


def _shifted(columns: Sequence[Int32], offsets: Sequence[int]) -> Int32:
    moved = [np.where(column >= 0, column + by, NO_CODE) for column, by in zip(columns, offsets, strict=True)]
    return np.concatenate(moved).astype(np.int32)
