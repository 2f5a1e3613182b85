"""The model of an operator in a trace: the user's if there is one of its name, else that of the package."""

from __future__ import annotations

from typing import Any

import msgspec

from torch_tb_profiler.base.formulas import evaluate_formula
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.catalog import OperatorModel
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.model.work.cost import Cost
from torch_tb_profiler.model.work.formulas.registry import Model, model_of
from torch_tb_profiler.model.work.tensors import Call, Tensor

UNSAID = "the user's model of this operator does not say it"


def model_in(trace: Trace, name: str) -> Model | None:
    """None for an operator that is not modeled."""
    return _own(trace).get(name) or model_of(name)


@derived
def _own(trace: Trace) -> dict[str, Model]:
    return {each.name: _model(each) for each in trace.catalog.operator}


def _model(given: OperatorModel) -> Model:
    def cost(call: Call) -> Cost:
        """Unknown where no formula has a value; of two, one may be unknown."""
        amounts: dict[str, float | None] = {}
        reasons, names = [], _names(call)
        for name, text in (("flops", given.flops), ("bytes", given.bytes)):
            try:
                amounts[name] = evaluate_formula(text, names) if text else None
            except ValueError as error:
                amounts[name] = None
                reasons.append(str(error))
            if not text:
                reasons.append(UNSAID)
        kind = next((each.type for each in call.inputs if isinstance(each, Tensor)), "")
        unit = given.unit if given.flops else None
        return Cost(amounts["flops"], amounts["bytes"], unit, kind, reason=reasons[0] if reasons else None)

    return Model("matrix" if given.unit == "matrix" else "elementwise", cost)


def _names(call: Call) -> dict[str, list[Any]]:
    """What formulas call the inputs; what is no tensor has no sizes."""
    inputs = [each if isinstance(each, Tensor) else None for each in call.inputs]
    return {
        "dims": [each.shape if each else () for each in inputs],
        "elements": [each.count if each else 0 for each in inputs],
        "bytes": [each.bytes if each else 0 for each in inputs],
        "values": [_number(value) for value in call.values],
    }


def _number(text: str) -> Any:
    """A recorded value as a number or a list of numbers; None of anything else."""
    try:
        value = msgspec.json.decode(text) if text else None
    except msgspec.DecodeError:
        return None
    numbers = value if isinstance(value, list) else [value]
    return value if all(type(each) in (int, float) for each in numbers) else None
