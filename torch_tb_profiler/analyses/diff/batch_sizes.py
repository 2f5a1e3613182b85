"""The batch sizes of both sides: steps over different batches are compared per sample.

    aten::addmm [32, 512]    aten::addmm [64, 512]     a batch of 32 in the base, 64 in the candidate
    aten::t [512, 512]       aten::t [512, 512]        weights stay the same

Where the model has other sizes instead, the weights differ and the inputs of most products don't.
"""

from __future__ import annotations

import json
from collections import Counter

import numpy as np

from torch_tb_profiler.analyses.diff.logical_tree import LogicalTree
from torch_tb_profiler.analyses.diff.roles import PartRole
from torch_tb_profiler.analyses.diff.tree_alignment import AlignedTree
from torch_tb_profiler.analyses.shared.grouping import input_shape_codes, input_shape_texts
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.model.trace import Int32, Int64, Trace, TracePair

MIN_AGREEING_SHARE = 0.5
"""Smallest share of the operators with different inputs that must agree on the two batch sizes,"""

MIN_SAMPLE_SHARE = 0.5
"""and more than this share of all products and convolutions must agree on their ratio, for a comparison per
sample."""

_PRODUCT = lazy_regex(r"^aten::(addmm|mm|bmm|baddbmm|linear|matmul|_?convolution|convolution_backward|conv\dd)$")


def find_batch_sizes(tree: AlignedTree, pair: TracePair) -> tuple[int, int] | None:
    """Return the batch sizes of base and candidate where their input shapes show different ones.

    They are the first dimensions of most inputs that differ; None if these don't agree.
    """
    _, base, candidate = _read_first_dimensions(tree, pair)
    differ = (base != candidate) & (base > 0) & (candidate > 0)
    pairs = Counter(zip(base[differ].tolist(), candidate[differ].tolist(), strict=True))
    if not pairs:
        return None
    sizes, count = pairs.most_common(1)[0]
    return sizes if count >= max(2, MIN_AGREEING_SHARE * int(differ.sum())) else None


def find_sample_counts(tree: AlignedTree, pair: TracePair) -> tuple[int, int] | None:
    """Return the samples per step of base and candidate where most products compute more of them on one side.

    The smallest sizes with that ratio are the samples: larger ones count their tokens or pixels.
    """
    nodes, base, candidate = _read_first_dimensions(tree, pair)
    texts = tree.base.tree.texts
    names = [texts[code] for code in tree.names[0, nodes].tolist()]
    products = np.array([_PRODUCT.match(name) is not None for name in names], np.bool_)
    known = products & (base > 0) & (candidate > 0)
    ratios = Counter((candidate[known] / base[known]).round(6).tolist())
    ratio, count = ratios.most_common(1)[0] if ratios else (1.0, 0)
    if ratio == 1.0 or count <= MIN_SAMPLE_SHARE * int(known.sum()):
        return None
    agreeing = np.flatnonzero(known & ((candidate / np.maximum(base, 1)).round(6) == ratio))
    smallest = int(agreeing[np.argmin(base[agreeing])])
    return int(base[smallest]), int(candidate[smallest])


def _read_first_dimensions(tree: AlignedTree, pair: TracePair) -> tuple[Int64, Int64, Int64]:
    """Return nodes of operators of both sides, and the first dimension of their inputs in base and candidate."""
    nodes = np.flatnonzero((tree.role == PartRole.OPERATOR) & (tree.elements[0] >= 0) & (tree.elements[1] >= 0))
    for which, side in enumerate((tree.base, tree.candidate)):
        nodes = nodes[side.tree.row[tree.elements[which, nodes]] >= 0]  # elements of the first recording have rows
    if len(nodes) == 0:
        return nodes, np.empty(0, np.int64), np.empty(0, np.int64)
    base = _dimensions_of(tree.base.tree, tree.elements[0, nodes], pair.base[0])
    return nodes, base, _dimensions_of(tree.candidate.tree, tree.elements[1, nodes], pair.candidate[0])


def _dimensions_of(tree: LogicalTree, elements: Int32, trace: Trace) -> Int64:
    codes = input_shape_codes(trace)[tree.row[elements]]
    by_code = np.array([_parse_first_dimension(text) for text in input_shape_texts(trace)] + [0], np.int64)
    dimensions: Int64 = by_code[codes]
    return dimensions


def _parse_first_dimension(text: str) -> int:
    """Return the first dimension of the first input with two or more dimensions, 0 if there is none."""
    try:
        inputs = json.loads(text)
    except ValueError:
        return 0
    for shape in inputs if isinstance(inputs, list) else ():
        if isinstance(shape, list) and len(shape) > 1 and isinstance(shape[0], int):
            return shape[0]
    return 0
