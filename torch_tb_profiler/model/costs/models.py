"""Cost models of operators: the user's if there is one for the name, else the package's formula."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

import msgspec

from torch_tb_profiler.base.formulas import evaluate_formula
from torch_tb_profiler.base.memo import derived
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
from torch_tb_profiler.model.trace import Trace

MISSING_FORMULA = "the user's model of this operator has no formula for it"

OperatorFamily = Literal["matrix", "norm", "elementwise", "reduction", "movement", "list", "compiled"]
"""Families of operators; if two of one family nest, they do the same work, and the outer one is a wrapper."""


class CostModel(NamedTuple):
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


def find_cost_model(trace: Trace, name: str) -> CostModel | None:
    """Return the model of an operator in a trace, or None if there is none."""
    return _user_models(trace).get(name) or built_in_cost_model(name)


def built_in_cost_model(name: str) -> CostModel | None:
    """Return the package's model of an operator, or None if there is none."""
    if elementwise.FOREACH.match(name):
        return CostModel("list", elementwise.foreach)
    if elementwise.GENERATED.match(name):
        return CostModel("compiled", elementwise.generated_kernel)
    return _MODELS.get(name)


@derived
def _user_models(trace: Trace) -> dict[str, CostModel]:
    return {model.name: _user_model(model) for model in trace.catalog.operator}


def _user_model(model: OperatorModel) -> CostModel:
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
