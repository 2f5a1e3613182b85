"""Kernels of models that AOTInductor compiled ahead of time, joined with the record in their package.

    kernel_information.json    aoti_torch_cpu_addmm_out:1    model.py:3
                               cpp_fused_silu_0:2            model.py:4
                               aoti_torch_cpu_addmm_out:3    model.py:5    called again, for another line

Nothing in a trace marks the calls of such a model, or says which package it is. So the record counts only in a
trace that calls no graph compiled in its own process, and only if it has every generated kernel of the trace. If
a thread calls just these kernels in this order, again and again, each is known; otherwise only what all calls of a
name agree on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.kinds import Kind, rows_of_kind
from torch_tb_profiler.model.origin_records import CompiledKernel
from torch_tb_profiler.model.origins.frames import COMPILED_CALL
from torch_tb_profiler.model.origins.replays import kernel_label
from torch_tb_profiler.model.trace import NO_CODE, Int32, Trace, distinct_codes

_GENERATED = lazy_regex(r"^(?:cpp|triton|cutlass|cutedsl|pallas)_\w+")
_CPP = lazy_regex(r"^graph_\d+_(?P<name>cpp_fused_\w+)$")

OTHER_PACKAGE = "the record of AOTInductor beside the trace is of another model: it lacks kernels of this trace"
SEVERAL_CALLS = "the record of AOTInductor has several calls of this kernel, for different source lines"

PackagedKernel = tuple[CompiledKernel | None, str | None]
"""What the record says of a kernel, None if nothing, and why something is unknown."""


class PackagedKernels(msgspec.Struct, frozen=True):
    """What the record of a package says of events.

    of_event  int32[n + 1]  an index into `values` of each event, NO_CODE if nothing
    """

    of_event: Int32
    values: list[PackagedKernel]


def kernel_name(text: str) -> str:
    """Return the name in the generated code of the kernel that an operator is the call of."""
    match = _CPP.match(text)
    return match["name"] if match else text


def is_generated(name: str) -> bool:
    """Return whether a kernel has a name that torch.compile and AOTInductor give to what they generate."""
    return _GENERATED.match(name) is not None


def may_be_packaged(trace: Trace) -> bool:
    """Return whether generated kernels ran in a trace that calls no graph compiled in its own process."""
    if any(COMPILED_CALL.match(text) for text in trace.strings):
        return False
    return any(map(is_generated, _strip_names(trace).values()))


@derived
def packaged_kernels(trace: Trace) -> PackagedKernels:
    """Return what the record of a package says of each operator and kernel."""
    of_event = np.full(len(trace) + 1, NO_CODE, np.int32)
    record = trace.origin_records.packaged
    if not record or not may_be_packaged(trace):
        return PackagedKernels(of_event, [])
    calls: dict[str, list[CompiledKernel]] = defaultdict(list)
    for kernel in record:
        calls[kernel.name].append(kernel)
    names = _strip_names(trace)
    lacks = any(is_generated(name) and name not in calls for name in names.values())
    if lacks:
        known: dict[str, PackagedKernel] = {
            name: (None, OTHER_PACKAGE) for name in names.values() if is_generated(name)
        }
    else:
        known = {name: _merge_calls(each) for name, each in calls.items()}
    index = {name: number for number, name in enumerate(known)}
    of_code = np.full(len(trace.strings) + 1, NO_CODE, np.int32)
    for code, name in names.items():
        of_code[code] = index.get(name, NO_CODE)
    rows = rows_of_kind(trace, Kind.CPU_OP, Kind.KERNEL)
    of_event[rows] = of_code[trace.events.name[rows]]
    if not lacks:
        for part in _group_calls_by_thread(trace, of_event):
            _number_calls(
                of_event, part, np.array([index[kernel.name] for kernel in record], np.int32), len(known)
            )
    return PackagedKernels(of_event, [*known.values(), *((kernel, None) for kernel in record)])


def _group_calls_by_thread(trace: Trace, of_event: Int32) -> Iterator[Int32]:
    """Yield the rows of named operators of each thread, and of kernels that it launched, in order of calls."""
    links = device_links(trace)
    operators = rows_of_kind(trace, Kind.CPU_OP)
    for rows, calls in ((operators, operators), (links.rows, links.launch)):
        named = (of_event[rows] >= 0) & (calls >= 0)
        rows, calls = rows[named], calls[named]
        thread = trace.events.thread[calls]
        order = np.lexsort((calls, trace.events.start[calls], thread))
        yield from np.split(rows[order], np.flatnonzero(np.diff(thread[order])) + 1)


def _number_calls(of_event: Int32, rows: Int32, record: Int32, first: int) -> None:
    """Set the index of events that are, in order, the calls of the record again and again; `first` is its first.

    Calls with names that don't occur were not recorded: those of libraries are so only on request.
    """
    names = of_event[rows]
    recorded = np.flatnonzero(np.isin(record, names))
    if len(recorded) == 0 or len(rows) % len(recorded):
        return
    if (names.reshape(-1, len(recorded)) == record[recorded]).all():
        of_event[rows] = np.resize(first + recorded, len(rows))


def _strip_names(trace: Trace) -> dict[int, str]:
    """Return the names of operators and kernels, without prefixes and suffixes of symbols, by their code."""
    rows = rows_of_kind(trace, Kind.CPU_OP, Kind.KERNEL)
    codes = distinct_codes(trace.events.name[rows])
    return {code: kernel_name(kernel_label(trace.strings[code])) for code in codes}


def _merge_calls(calls: Sequence[CompiledKernel]) -> PackagedKernel:
    """Return what all calls of a kernel agree on, with the reason if they differ in something."""
    first = calls[0]
    if all(each == first for each in calls):
        return first, None
    nodes = first.nodes if all(each.nodes == first.nodes for each in calls) else None
    lines = first.lines if all(each.lines == first.lines for each in calls) else None
    return CompiledKernel(first.name, nodes, None, lines), SEVERAL_CALLS
