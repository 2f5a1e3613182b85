"""Whose work a kernel is: each belongs to one call of an operator, and no work counts twice.

    aten::linear -------------------|     modeled, but owns nothing: a wrapper
      aten::addmm ----------------|       owns the kernel
        cudaLaunchKernel --|
                             gemm ---|

A kernel belongs to the innermost modeled operator that is, or is around, the one that launched it; where none is
modeled to the one that launched it. What a wrapper launches itself, beside a modeled operator inside it that does
the same work, stays unmodeled.
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.calls.calltree import enclosing_operators
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int32, Trace
from torch_tb_profiler.model.work.models import model_in


class Owners(msgspec.Struct, frozen=True):
    """Device events and the calls that they are work of.

    events   int32[m]  rows of kernels, copies and memsets, in file order
    call     int32[m]  position in `calls` of the owner of each, NO_CODE if no operator launched it
    calls    int32[k]  rows of the operators that own device work, in file order
    modeled  bool[k]   by name: the shapes may still be missing
    """

    events: Int32
    call: Int32
    calls: Int32
    modeled: Bool


@derived
def owners(trace: Trace) -> Owners:
    """The owner of every device event."""
    links = device_links(trace)
    around = enclosing_operators(trace)
    family = _families(trace)[trace.events.name]
    owner = _climb(links.operator, around, family >= 0)
    wrappers = _wrappers(np.unique(owner[owner >= 0]), around, family)
    owner = np.where((owner < 0) | np.isin(owner, wrappers), links.operator, owner).astype(np.int32)
    calls, call = np.unique(owner, return_inverse=True)
    call = call.reshape(-1)
    if len(calls) and calls[0] < 0:
        calls, call = calls[1:], call - 1
    modeled = (family[calls] >= 0) & ~np.isin(calls, wrappers)
    return Owners(links.rows, call.astype(np.int32), calls.astype(np.int32), modeled)


def _families(trace: Trace) -> Int32:
    """int32[strings + 1]: a number for the family of the operators of each name, NO_CODE if not modeled."""
    names = trace.strings
    numbers: dict[str, int] = {}
    family = np.full(len(names) + 1, NO_CODE, np.int32)
    for code, name in enumerate(names):
        model = model_in(trace, name)
        if model is not None:
            family[code] = numbers.setdefault(model.family, len(numbers))
    return family


def modeled_around(trace: Trace, rows: Int32) -> Int32:
    """int32[k]: of each operator the innermost modeled one that is, or is around, it; NO_CODE if none."""
    return _climb(rows, enclosing_operators(trace), _families(trace)[trace.events.name] >= 0)


def _climb(rows: Int32, around: Int32, modeled: Bool) -> Int32:
    """int32[m]: of each row the innermost modeled operator that is, or is around, it; NO_CODE if none."""
    owner: Int32 = rows.copy()
    while (climbing := (owner >= 0) & ~modeled[owner]).any():
        owner[climbing] = around[owner[climbing]]
    return owner


def _wrappers(calls: Int32, around: Int32, family: Int32) -> Int32:
    """Those of the calls that have another one of their family inside."""
    owns = np.zeros(len(around) + 1, np.bool_)
    owns[calls] = True
    outer, mine = around[calls], family[calls]
    parts = []
    while (inside := outer >= 0).any():
        outer, mine = outer[inside], mine[inside]
        parts.append(outer[owns[outer] & (family[outer] == mine)])
        outer = around[outer]
    wrappers: Int32 = np.unique(np.concatenate(parts)) if parts else calls[:0]
    return wrappers
