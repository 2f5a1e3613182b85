"""Owners of device work: each kernel is work of one call of an operator, so that no work counts twice.

    aten::addmm ------------------|       owns the kernel
      cudaLaunchKernel --|
                           gemm ---|

A kernel that a graph replays is work of the operator that was around its launch at capture. That operator has no
event in the trace of the replays: the first kernel of its work stands for the call.

    capture   aten::mm -- launch, launch      replay   gemm | reduce      one call of aten::mm, in place of gemm
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.costs.models import find_cost_model, find_work_owners
from torch_tb_profiler.model.origins.replayed_kernels import replayed_kernels
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int32, Int64, Trace

INPUT_KEYS = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")
"""Arguments of an operator that its cost depends on."""


class CapturedCall(msgspec.Struct, frozen=True):
    """An operator at the capture of a graph, and the texts of its arguments in the order of `INPUT_KEYS`."""

    operator: str
    inputs: tuple[str | None, ...]


class WorkOwners(msgspec.Struct, frozen=True):
    """Device events and the calls that own them.

    events    int32[m]  rows of kernels, copies and memsets, in file order
    call      int32[m]  position in `calls` of the owner of each, NO_CODE if no operator launched it
    calls     int32[k]  rows of the operators that own device work, in file order; of an operator at capture the
                        first device event of its work
    name      int32[k]  code of the operator's name, an index into `names`
    names     the texts of the trace, and names of operators that only captures have
    modeled   bool[k]   there is a model for the name; the shapes may still be missing
    captured  int32[k]  for an operator at capture an index into `captures`, else NO_CODE
    """

    events: Int32
    call: Int32
    calls: Int32
    name: Int32
    names: Sequence[str]
    modeled: Bool
    captured: Int32
    captures: tuple[CapturedCall, ...]

    def position(self, row: int) -> int:
        """Return the position in `calls` of a row, NO_CODE if it is none of them."""
        at = int(np.searchsorted(self.calls, row))
        return at if at < len(self.calls) and int(self.calls[at]) == row else NO_CODE

    def captured_call(self, row: int) -> CapturedCall | None:
        """Return the operator at capture that a row stands for, None if it stands for itself."""
        if not self.captures:
            return None
        at = self.position(row)
        code = int(self.captured[at]) if at >= 0 else NO_CODE
        return self.captures[code] if code >= 0 else None


@derived
def work_owners(trace: Trace) -> WorkOwners:
    """Return the owner of every device event."""
    links = device_links(trace)
    owner, modeled = find_work_owners(trace, links.operator)
    code, captures = _find_captured_calls(trace)
    replayed = replayed_kernels(trace)
    of_capture = np.flatnonzero((code >= 0) & (replayed.call >= 0))
    owner[of_capture] = _find_first_rows(links.rows[of_capture], replayed.call[of_capture])
    modeled[of_capture] = np.array([_is_modeled(trace, each) for each in captures], np.bool_)[code[of_capture]]
    calls, first, call = np.unique(owner, return_index=True, return_inverse=True)
    call = call.reshape(-1)
    if len(calls) and calls[0] < 0:
        calls, first, call = calls[1:], first[1:], call - 1
    captured = np.full(len(owner), NO_CODE, np.int32)
    captured[of_capture] = code[of_capture]
    names, name = trace.strings, trace.events.name[calls].copy()
    if captures:
        texts = [*trace.strings]
        numbers = {text: number for number, text in enumerate(texts)}
        for each in captures:
            if numbers.setdefault(each.operator, len(texts)) == len(texts):
                texts.append(each.operator)
        names, of_captured = texts, np.array([numbers[each.operator] for each in captures] + [NO_CODE], np.int32)
        name = np.where(captured[first] >= 0, of_captured[captured[first]], name).astype(np.int32)
    return WorkOwners(
        links.rows,
        call.astype(np.int32),
        calls.astype(np.int32),
        name,
        names,
        modeled[first],
        captured[first],
        captures,
    )


def _find_captured_calls(trace: Trace) -> tuple[Int32, tuple[CapturedCall, ...]]:
    """Return (the operator at capture that owns each of `device_links(trace).rows`, int32[k]; these operators)."""
    replayed = replayed_kernels(trace)
    numbers: dict[CapturedCall, int] = {}
    of_value = np.full(len(replayed.values) + 1, NO_CODE, np.int32)
    for value, each in enumerate(replayed.values):
        if each.owner is not None:
            of_value[value] = numbers.setdefault(CapturedCall(each.owner, each.inputs), len(numbers))
    return of_value[replayed.code], tuple(numbers)


def _find_first_rows(rows: Int32, call: Int64) -> Int32:
    """Return for each of `rows` int32[k] the smallest row with its call, int64[k]."""
    _, first, which = np.unique(call, return_index=True, return_inverse=True)
    smallest: Int32 = rows[first].copy()
    np.minimum.at(smallest, which.reshape(-1), rows)
    found: Int32 = smallest[which.reshape(-1)]
    return found


def _is_modeled(trace: Trace, call: CapturedCall) -> bool:
    return bool(call.inputs) and find_cost_model(trace, call.operator) is not None
