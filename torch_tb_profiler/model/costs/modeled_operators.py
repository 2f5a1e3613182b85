"""Which operator a launch is work of: the innermost modeled one, unless that is a wrapper.

    aten::linear -------------------|     modeled, but owns nothing: a wrapper
      aten::addmm ----------------|       owns the launch
        cudaLaunchKernel --|

A launch belongs to the innermost modeled operator that is, or is around, the one that made it; without a modeled
one, to the one that made it. What a wrapper launches itself, beside a modeled operator inside it that does the
same work, has no model.
"""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.base.arrays import distinct
from torch_tb_profiler.model.calls.calltree import enclosing_operators
from torch_tb_profiler.model.costs.models import find_cost_model
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int32, Trace


def owning_operators(trace: Trace, operators: Int32) -> tuple[Int32, Bool]:
    """Return the owner of each launch and whether it has a model.

    operators  int32[k]  the operator that made each launch, NO_CODE if none did; its owner is NO_CODE, too
    """
    around = enclosing_operators(trace)
    family = _operator_families(trace).take(trace.events.name)
    owner = _innermost_modeled(operators, around, family >= 0)
    wrappers = _find_wrappers(distinct(owner[owner >= 0]), around, family)
    owner = np.where((owner < 0) | np.isin(owner, wrappers), operators, owner).astype(np.int32)
    modeled: Bool = (owner >= 0) & (family[owner] >= 0) & ~np.isin(owner, wrappers)
    return owner, modeled


def enclosing_modeled_operators(trace: Trace, rows: Int32) -> Int32:
    """Return int32[k]: the innermost modeled operator that is, or is around, each operator; NO_CODE if none."""
    return _innermost_modeled(rows, enclosing_operators(trace), _operator_families(trace)[trace.events.name] >= 0)


def _operator_families(trace: Trace) -> Int32:
    """Return int32[strings + 1]: a number for the family of the operator of each name, NO_CODE without a model."""
    names = trace.strings
    numbers: dict[str, int] = {}
    family = np.full(len(names) + 1, NO_CODE, np.int32)
    for code, name in enumerate(names):
        model = find_cost_model(trace, name)
        if model is not None:
            family[code] = numbers.setdefault(model.family, len(numbers))
    return family


def _innermost_modeled(rows: Int32, around: Int32, modeled: Bool) -> Int32:
    owner: Int32 = rows.copy()
    while (climbing := (owner >= 0) & ~modeled[owner]).any():
        owner[climbing] = around[owner[climbing]]
    return owner


def _find_wrappers(calls: Int32, around: Int32, family: Int32) -> Int32:
    """Return those of `calls` that contain another one of their family."""
    owns = np.zeros(len(around) + 1, np.bool_)
    owns[calls] = True
    outer, inner_family = around[calls], family[calls]
    parts = []
    while (inside := outer >= 0).any():
        outer, inner_family = outer[inside], inner_family[inside]
        parts.append(outer[owns[outer] & (family[outer] == inner_family)])
        outer = around[outer]
    wrappers: Int32 = distinct(np.concatenate(parts)) if parts else calls[:0]
    return wrappers
