"""Owners of device work: each kernel is work of one call of an operator, so that no work counts twice.

    aten::linear -------------------|     modeled, but owns nothing: a wrapper
      aten::addmm ----------------|       owns the kernel
        cudaLaunchKernel --|
                             gemm ---|

A kernel belongs to the innermost modeled operator that is, or is around, the one that launched it; without a
modeled one, to the one that launched it. What a wrapper launches itself, beside a modeled operator inside it that
does the same work, has no model.
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.calls.calltree import enclosing_operators
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int32, Trace
from torch_tb_profiler.model.work.models import find_cost_model


class WorkOwners(msgspec.Struct, frozen=True):
    """Device events and the calls that own them.

    events   int32[m]  rows of kernels, copies and memsets, in file order
    call     int32[m]  position in `calls` of the owner of each, NO_CODE if no operator launched it
    calls    int32[k]  rows of the operators that own device work, in file order
    modeled  bool[k]   there is a model for the name; the shapes may still be missing
    """

    events: Int32
    call: Int32
    calls: Int32
    modeled: Bool


@derived
def work_owners(trace: Trace) -> WorkOwners:
    """Return the owner of every device event."""
    links = device_links(trace)
    around = enclosing_operators(trace)
    family = _operator_families(trace)[trace.events.name]
    owner = _innermost_modeled(links.operator, around, family >= 0)
    wrappers = _find_wrappers(np.unique(owner[owner >= 0]), around, family)
    owner = np.where((owner < 0) | np.isin(owner, wrappers), links.operator, owner).astype(np.int32)
    calls, call = np.unique(owner, return_inverse=True)
    call = call.reshape(-1)
    if len(calls) and calls[0] < 0:
        calls, call = calls[1:], call - 1
    modeled = (family[calls] >= 0) & ~np.isin(calls, wrappers)
    return WorkOwners(links.rows, call.astype(np.int32), calls.astype(np.int32), modeled)


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


def enclosing_modeled_operators(trace: Trace, rows: Int32) -> Int32:
    """Return int32[k]: the innermost modeled operator that is, or is around, each operator; NO_CODE if none."""
    return _innermost_modeled(rows, enclosing_operators(trace), _operator_families(trace)[trace.events.name] >= 0)


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
    wrappers: Int32 = np.unique(np.concatenate(parts)) if parts else calls[:0]
    return wrappers
