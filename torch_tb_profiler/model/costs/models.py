"""Find the cost model of an operator, and the operator that a launch is work of.

The model is the user's if there is one for the name, else the package's formula. A launch is work of the innermost
modeled operator, unless that is a wrapper:

    aten::linear -------------------|     modeled, but owns nothing: a wrapper
      aten::addmm ----------------|       owns the launch
        cudaLaunchKernel --|

A launch belongs to the innermost modeled operator that is, or is around, the one that made it; without a modeled
one, to the one that made it. What a wrapper launches itself, beside a modeled operator inside it that does the
same work, has no model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Literal

import msgspec
import numpy as np

from torch_tb_profiler.base.arrays import distinct
from torch_tb_profiler.base.formulas import evaluate_formula
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.calls.calltree import enclosing_operators
from torch_tb_profiler.model.costs.call import Cost, OperatorCall, Tensor
from torch_tb_profiler.model.costs.formulas import (
    attention,
    convolution,
    elementwise,
    matrix,
    movement,
    reductions,
)
from torch_tb_profiler.model.hardware_catalog import OperatorModel
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int32, Trace, rows_mask

MISSING_FORMULA = "the user's model of this operator has no formula for it"

OperatorFamily = Literal["matrix", "norm", "elementwise", "reduction", "movement", "list", "compiled"]
"""Families of operators; if two of one family nest, they do the same work, and the outer one is a wrapper."""


class CostModel(msgspec.Struct, frozen=True):
    """A formula and the family of the operators that it is for."""

    family: OperatorFamily
    cost: Callable[[OperatorCall], Cost]


_FORMULAS: tuple[tuple[OperatorFamily, Mapping[str, Callable[[OperatorCall], Cost]]], ...] = (
    ("matrix", matrix.FORMULAS),
    ("matrix", convolution.FORMULAS),
    ("matrix", attention.FORMULAS),
    ("norm", reductions.NORM_FORMULAS),
    ("elementwise", elementwise.FORMULAS),
    ("reduction", reductions.FORMULAS),
    ("movement", movement.FORMULAS),
    ("list", elementwise.OPTIMIZER_FORMULAS),
)
_MODELS = {name: CostModel(family, cost) for family, formulas in _FORMULAS for name, cost in formulas.items()}

_KNOWN_NAMES = 200
"""Names of operators whose model is remembered; a trace has thousands of calls with a cost of their own."""


def find_cost_model(trace: Trace, name: str) -> CostModel | None:
    """Return the model of an operator in a trace, or None if there is none."""
    return _user_models(trace).get(name) or built_in_cost_model(name)


@lru_cache(_KNOWN_NAMES)
def built_in_cost_model(name: str) -> CostModel | None:
    """Return the package's model of an operator, or None if there is none."""
    if name.startswith("aten::_foreach_") and elementwise.FOREACH.match(name):
        return CostModel("list", elementwise.foreach)
    if name.startswith("triton_") and elementwise.GENERATED.match(name):
        return CostModel("compiled", elementwise.generated_kernel)
    return _MODELS.get(name)


@derived
def _user_models(trace: Trace) -> dict[str, CostModel]:
    return {model.name: _build_user_model(model) for model in trace.catalog.operator}


def _build_user_model(model: OperatorModel) -> CostModel:
    def cost(call: OperatorCall) -> Cost:
        """Evaluate both formulas; what has no formula or no value is unknown."""
        amounts: dict[str, float | None] = {}
        reasons, names = [], _formula_names(call)
        for name, formula in (("flops", model.flops), ("bytes", model.bytes)):
            try:
                amounts[name] = evaluate_formula(formula, names) if formula else None
            except ValueError as error:
                amounts[name] = None
                reasons.append(str(error))
            if not formula:
                reasons.append(MISSING_FORMULA)
        dtype = next((tensor.type for tensor in call.inputs if isinstance(tensor, Tensor)), "")
        unit = model.unit if model.flops else None
        return Cost(amounts["flops"], amounts["bytes"], unit, dtype, reason=reasons[0] if reasons else None)

    return CostModel("matrix" if model.unit == "matrix" else "elementwise", cost)


def _formula_names(call: OperatorCall) -> dict[str, list[Any]]:
    """Return the names that formulas use for the inputs; an input that is no tensor has no sizes."""
    inputs = [tensor if isinstance(tensor, Tensor) else None for tensor in call.inputs]
    return {
        "dims": [tensor.shape if tensor else () for tensor in inputs],
        "elements": [tensor.count if tensor else 0 for tensor in inputs],
        "bytes": [tensor.bytes if tensor else 0 for tensor in inputs],
        "values": [_parse_numbers(value) for value in call.values],
    }


def _parse_numbers(text: str) -> Any:
    """Parse a recorded value that is a number or a list of numbers; return None for anything else."""
    try:
        value = msgspec.json.decode(text) if text else None
    except msgspec.DecodeError:
        return None
    numbers = value if isinstance(value, list) else [value]
    return value if all(type(number) in (int, float) for number in numbers) else None


def find_work_owners(trace: Trace, operators: Int32) -> tuple[Int32, Bool]:
    """Return the owner of each launch and whether it has a model.

    operators  int32[k]  the operator that made each launch, NO_CODE if none did; its owner is NO_CODE, too
    """
    around, families = enclosing_operators(trace), _NamedFamilies(trace)
    owner = _find_innermost_modeled(operators, around, families)
    is_wrapper = rows_mask(trace, _find_wrappers(distinct(owner[owner >= 0]), around, families))
    owner = np.where((owner < 0) | is_wrapper.take(owner), operators, owner).astype(np.int32)
    modeled: Bool = (owner >= 0) & (families.of(owner) >= 0) & ~is_wrapper.take(owner)
    return owner, modeled


def enclosing_modeled_operators(trace: Trace, rows: Int32) -> Int32:
    """Return int32[k]: the innermost modeled operator that is, or is around, each operator; NO_CODE if none."""
    return _find_innermost_modeled(rows, enclosing_operators(trace), _NamedFamilies(trace))


class _NamedFamilies:
    """The families of the operators of a trace by their names, which are looked up for some rows only."""

    def __init__(self, trace: Trace) -> None:
        self._names, self._family = trace.events.name, _find_operator_families(trace)

    def of(self, rows: Int32) -> Int32:
        """Return the family of each row, NO_CODE without a model; of a row that is NO_CODE, any."""
        return self._family.take(self._names.take(rows))


@derived
def _find_operator_families(trace: Trace) -> Int32:
    """Return int32[strings + 1]: a number for the family of the operator of each name, NO_CODE without a model."""
    names = trace.strings
    numbers: dict[str, int] = {}
    family = np.full(len(names) + 1, NO_CODE, np.int32)
    for code, name in enumerate(names):
        model = find_cost_model(trace, name)
        if model is not None:
            family[code] = numbers.setdefault(model.family, len(numbers))
    return family


def _find_innermost_modeled(rows: Int32, around: Int32, families: _NamedFamilies) -> Int32:
    owner: Int32 = rows.copy()
    climbing = np.flatnonzero((owner >= 0) & (families.of(owner) < 0))
    while len(climbing):
        owner[climbing] = above = around[owner[climbing]]
        climbing = climbing[(above >= 0) & (families.of(above) < 0)]
    return owner


def _find_wrappers(calls: Int32, around: Int32, families: _NamedFamilies) -> Int32:
    """Return those of `calls` that contain another one of their family."""
    owns = np.zeros(len(around) + 1, np.bool_)
    owns[calls] = True
    outer, inner_family = around[calls], families.of(calls)
    parts = []
    while (inside := outer >= 0).any():
        outer, inner_family = outer[inside], inner_family[inside]
        found = np.flatnonzero(owns[outer])
        parts.append(outer[found[families.of(outer[found]) == inner_family[found]]])
        outer = around[outer]
    wrappers: Int32 = distinct(np.concatenate(parts)) if parts else calls[:0]
    return wrappers
