"""Operators over lists of tensors: `_foreach_*` and the fused optimizers.

A list's element type is not recorded; the kernel's template arguments name it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from torch_tb_profiler.model.work.cost import Cost
from torch_tb_profiler.model.work.tensors import Call, Tensor

_FUSED_OPTIMIZER = {"adam": (12, 7), "adamw": (12, 7), "sgd": (4, 3), "adagrad": (6, 5)}
"""Operations an element; elements read and written for each parameter (Adam reads 4 and writes 3)."""

_ADAPTED = re.compile(r"^aten::_fused_(adamw?|sgd|adagrad)_$")
FOREACH = re.compile(r"^aten::_foreach_([a-z_]+?)_?$")


def foreach(call: Call) -> Cost:
    """Every list is read and one written; copy and zero compute nothing and do not read what they overwrite."""
    match = FOREACH.match(call.name)
    what = match[1] if match else ""
    lists = [each for each in call.inputs if isinstance(each, tuple) and not isinstance(each, Tensor)]
    first = call.tensors(0)
    read = lists[1:] if what == "copy" else [] if what == "zero" else lists
    moved = sum(tensor.bytes for tensors in read for tensor in tensors) + sum(
        each.count * each.width for each in first
    )
    each_element = 0 if what in ("copy", "zero") else 2 if what in ("addcmul", "addcdiv", "lerp") else 1
    flops = float(each_element * sum(each.count for each in first))
    return Cost(flops, float(moved), "vector" if flops else None, first[0].type)


def optimizer(call: Call) -> Cost:
    match = _ADAPTED.match(call.name)
    operations, passes = _FUSED_OPTIMIZER[match[1] if match else "adam"]
    parameters = call.tensors(0)
    count = sum(each.count for each in parameters)
    return Cost(
        float(operations * count), float(passes * count * parameters[0].width), "vector", parameters[0].type
    )


FORMULAS: dict[str, Callable[[Call], Cost]] = {f"aten::_fused_{name}_": optimizer for name in _FUSED_OPTIMIZER}
