"""Reductions: one operation for each element of the input, which is read, and the result, which is written."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from torch_tb_profiler.model.work.cost import Cost, Unknown
from torch_tb_profiler.model.work.formulas.elementwise import FORMULAS as ELEMENTWISE
from torch_tb_profiler.model.work.tensors import Call, Tensor


class _Form(NamedTuple):
    """dim: position of the reduced dimensions, None if all are; width: bytes of a result, 0: the input's."""

    dim: int | None
    width: int = 0


_FORMS = {
    **dict.fromkeys(
        ("sum", "mean", "prod", "amax", "amin", "nansum", "logsumexp", "var", "std", "median"), _Form(1)
    ),
    **dict.fromkeys(("argmax", "argmin"), _Form(1, 8)),
    **dict.fromkeys(("all", "any"), _Form(1, 1)),
    **dict.fromkeys(("norm", "linalg_vector_norm"), _Form(2)),
    **dict.fromkeys(("max", "min"), _Form(1)),
    "var_mean": _Form(1),
}


def reduction(call: Call) -> Cost:
    name = call.name.removeprefix("aten::")
    if name in ("max", "min") and call.given(1) is not None and call.given(1) != call.given(2):
        if not call.spelled or not call.value(1):  # of two tensors, element by element
            return ELEMENTWISE["aten::maximum"](call._replace(name="aten::maximum"))
    form, x = _FORMS[name], call.tensor(0)
    out, known = _results(call, form, x)
    written = out * (form.width or x.width)
    if name in ("max", "min", "median") and out > 1:
        written += 8 * out  # and where it was found
    return Cost(float(x.count), float(x.bytes + written), "vector", x.type, estimated=not known)


def scan(call: Call) -> Cost:
    """cumsum and its like keep the shape."""
    x = call.tensor(0)
    return Cost(float(x.count), float(x.bytes + x.count * x.width), "vector", x.type)


def _results(call: Call, form: _Form, x: Tensor) -> tuple[int, bool]:
    """(elements of the result, whether that is known); old traces do not spell the dimensions."""
    if form.dim is None or len(call.inputs) <= form.dim:
        return 1, True
    if not call.spelled:
        return 1, False
    text = call.value(form.dim)
    if text in ("True", "False") or not text.startswith(("[", "-")) and not text.isdecimal():
        return 1, True  # var(self, unbiased), sum(self, dtype)
    dims = call.numbers(form.dim)
    if text.isdecimal() and call.name == "aten::sum" and len(call.inputs) == 2:
        return 1, True  # sum(self, dtype): the number of a type
    if any(not -len(x.shape) <= dim < len(x.shape) for dim in dims):
        if x.shape:
            raise Unknown("it reduces a dimension that its input does not have")
        return 1, True
    kept = set(range(len(x.shape))) - {dim % len(x.shape) for dim in dims} if dims else set()
    return math.prod(x.shape[dim] for dim in kept), True


FORMULAS: dict[str, Callable[[Call], Cost]] = {
    **{f"aten::{name}": reduction for name in _FORMS},
    **dict.fromkeys(("aten::cumsum", "aten::cumsum_", "aten::cumprod", "aten::logcumsumexp"), scan),
}
