"""Whether two traces work on batches of different sizes, judged by the shapes of their inputs."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np

from torch_tb_profiler.analyses.diff.roles import Role
from torch_tb_profiler.analyses.diff.trees.tree_alignment import AlignedTree
from torch_tb_profiler.analyses.shared.shapes import shape_texts, shapes
from torch_tb_profiler.model.pair import Pair

AGREEMENT = 0.5
"""Share of the operators with different inputs that must agree on the two sizes."""


def batch_sizes(tree: AlignedTree, pair: Pair) -> tuple[int, int] | None:
    """(base, candidate): the first dimension that most differing inputs have; None where they do not agree."""
    nodes = np.flatnonzero((tree.role == Role.OPERATOR) & (tree.elements[0] >= 0) & (tree.elements[1] >= 0))
    for which, side in enumerate((tree.base, tree.candidate)):
        nodes = nodes[side.tree.row[tree.elements[which, nodes]] >= 0]  # in the first recording
    if len(nodes) == 0:
        return None
    sides = []
    for which, (side, trace) in enumerate(((tree.base, pair.base[0]), (tree.candidate, pair.candidate[0]))):
        codes = shapes(trace)[side.tree.row[tree.elements[which, nodes]]]
        firsts = [_first_dimension(text) for text in shape_texts(trace)] + [0]
        sides.append(np.array(firsts)[codes])
    differ = (sides[0] != sides[1]) & (sides[0] > 0) & (sides[1] > 0)
    pairs = Counter(zip(sides[0][differ].tolist(), sides[1][differ].tolist(), strict=True))
    if not pairs:
        return None
    sizes, count = pairs.most_common(1)[0]
    return sizes if count >= max(2, AGREEMENT * int(differ.sum())) else None


def _first_dimension(text: str) -> int:
    """First dimension of the first input that has two or more; 0 if none has."""
    try:
        listed = json.loads(text)
    except ValueError:
        return 0
    for shape in listed if isinstance(listed, list) else ():
        if isinstance(shape, list) and len(shape) > 1 and isinstance(shape[0], int):
            return shape[0]
    return 0
