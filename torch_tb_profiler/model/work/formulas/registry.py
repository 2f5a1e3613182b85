"""The formula of an operator, by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

from torch_tb_profiler.model.work.cost import Cost
from torch_tb_profiler.model.work.formulas import (
    attention,
    convolution,
    elementwise,
    lists,
    matrix,
    movement,
    norms,
    reductions,
)
from torch_tb_profiler.model.work.formulas.compiled import GENERATED, generated
from torch_tb_profiler.model.work.tensors import Call

Family = Literal["matrix", "norm", "elementwise", "reduction", "movement", "list", "compiled"]
"""Operators of one family that nest do the same work: the outer one is a wrapper."""


class Model(NamedTuple):
    """A formula and the family of the operators that it holds for."""

    family: Family
    cost: Callable[[Call], Cost]


_FORMULAS: tuple[tuple[Family, Mapping[str, Callable[[Call], Cost]]], ...] = (
    ("matrix", matrix.FORMULAS),
    ("matrix", convolution.FORMULAS),
    ("matrix", attention.FORMULAS),
    ("norm", norms.FORMULAS),
    ("elementwise", elementwise.FORMULAS),
    ("reduction", reductions.FORMULAS),
    ("movement", movement.FORMULAS),
    ("list", lists.FORMULAS),
)
_MODELS = {name: Model(family, cost) for family, formulas in _FORMULAS for name, cost in formulas.items()}


def model_of(name: str) -> Model | None:
    """None for an operator that is not modeled."""
    if lists.FOREACH.match(name):
        return Model("list", lists.foreach)
    return Model("compiled", generated) if GENERATED.match(name) else _MODELS.get(name)
