"""Data loading that one side does itself and the other leaves to worker processes, which are not recorded."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.diff.roles import Role
from torch_tb_profiler.analyses.diff.trees.tree_alignment import AlignedTree, Side
from torch_tb_profiler.base.markers import is_loaded_elsewhere
from torch_tb_profiler.model.trace import Bool, distinct


class Moved(msgspec.Struct, frozen=True):
    """What is on one side alone because the other side's processes do it.

    nodes  bool[k] of the aligned tree: inside data loading
    names  of the base and of the candidate: operators that only data loading calls
    """

    nodes: Bool
    names: tuple[frozenset[str], frozenset[str]]


def moved(tree: AlignedTree) -> Moved:
    """Nothing, unless exactly one side leaves its data loading to worker processes."""
    elsewhere = [_loads_elsewhere(side) for side in (tree.base, tree.candidate)]
    inside = np.zeros(len(tree), np.bool_)
    if elsewhere[0] == elsewhere[1]:
        return Moved(inside, (frozenset(), frozenset()))
    for node in np.flatnonzero(tree.role == Role.DATALOADER).tolist():
        inside |= tree.inside(node)
    base, candidate = (
        frozenset() if waits else _names_inside(side, inside)
        for side, waits in zip((tree.base, tree.candidate), elsewhere, strict=True)
    )
    return Moved(inside, (base, candidate))


def _loads_elsewhere(side: Side) -> bool:
    loading = side.tree.name[(side.tree.role == Role.DATALOADER) & (side.tree.step >= 0)]
    return any(is_loaded_elsewhere(side.tree.texts[code]) for code in distinct(loading))


def _names_inside(side: Side, nodes: Bool) -> frozenset[str]:
    operators = (side.tree.role == Role.OPERATOR) & (side.tree.step >= 0)
    inside = nodes[side.node]
    within, beside = (
        {side.tree.texts[code] for code in distinct(side.tree.name[operators & chosen])}
        for chosen in (inside, ~inside)
    )
    return frozenset(within - beside)
