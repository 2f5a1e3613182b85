"""Kernels that a compiler made: what they compute is not recorded, what they were given is."""

from __future__ import annotations

import re

from torch_tb_profiler.model.work.cost import Cost, Unknown
from torch_tb_profiler.model.work.tensors import Call, Tensor

GENERATED = re.compile(r"^triton_(?:poi|red|per)_")
"""TorchInductor's names of elementwise kernels and of reductions."""


def generated(call: Call) -> Cost:
    """Every tensor argument once: too little where one is read and written, too much where a part is used."""
    tensors = [each for each in call.inputs if isinstance(each, Tensor)]
    if not tensors:
        raise Unknown("the shapes of its inputs are not recorded")
    moved = float(sum(each.bytes for each in tensors))
    reason = "what a compiled kernel computes is not recorded"
    return Cost(None, moved, "vector", tensors[0].type, estimated=True, reason=reason)
