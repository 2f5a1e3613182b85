"""Join the kernels of compiled graphs that CUDA graphs replay (`mode="reduce-overhead"`) with compile records.

    ## Call CompiledFxGraph fhmur24p... ## --|     the generated code ran once, while the graph was captured;
      cudaGraphLaunch |                            the call replays that

    code     triton_per_fused_0   extern_kernels.mm   extern_kernels.mm      triton_red_fused_1
    replay   triton_per_fused_0   gemm                gemm  splitKreduce     triton_red_fused_1

A record counts only if the replay runs exactly its generated kernels, in this order. Between two of these, kernels
of libraries are known if there are as many as the code calls; what adds up the parts of a split product belongs to
the product before it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from functools import partial

import msgspec
import numpy as np

from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.kinds import Kind, event_ends, event_kinds
from torch_tb_profiler.model.origin_records import CompiledKernel
from torch_tb_profiler.model.origins.compiled import GraphCall, fitting_graphs, graph_calls
from torch_tb_profiler.model.origins.packaged import is_generated
from torch_tb_profiler.model.origins.replays import ReplayOrder, Replays, graph_replays, kernel_label
from torch_tb_profiler.model.trace import NO_CODE, Int32, Int64, Trace

_SPLIT_REDUCTION = lazy_regex(r"splitKreduce", re.IGNORECASE)


class ReplayedCompiledKernel(msgspec.Struct, frozen=True):
    """A kernel of a graph's code that replays run."""

    kernel: CompiledKernel
    compile_id: str | None
    backward: bool


class CompiledReplays(msgspec.Struct, frozen=True):
    """What compile records say of replayed device work.

    code  int32[k]  for each of `device_links(trace).rows` an index into `values`, NO_CODE if nothing
    """

    code: Int32
    values: list[ReplayedCompiledKernel]


@derived
def compiled_replays(trace: Trace) -> CompiledReplays:
    """Return what the compile records beside a trace say of the kernels that graphs replay."""
    code = np.full(len(device_links(trace).rows), NO_CODE, np.int32)
    values: dict[ReplayedCompiledKernel, int] = {}
    graphs, replays = trace.origin_records.graphs, graph_replays(trace)
    if not graphs or len(replays) == 0:
        return CompiledReplays(code, [])
    for call, replay in _find_replaying_calls(trace, replays):
        positions = replays.positions[replays.bounds[replay] : replays.bounds[replay + 1]]
        names, is_kernel = _read_names_of_work(trace, positions)
        fitting = fitting_graphs(call, graphs, partial(pair_replay, names, is_kernel))
        if len(fitting) != 1:
            continue
        graph, kernels = fitting[0]
        for position, kernel in zip(positions.tolist(), kernels, strict=True):
            if kernel is not None:
                value = ReplayedCompiledKernel(kernel, graph.compile_id or call.compile_id, call.backward)
                code[position] = values.setdefault(value, len(values))
    return CompiledReplays(code, list(values))


def _find_replaying_calls(trace: Trace, replays: Replays) -> list[tuple[GraphCall, int]]:
    """Return the calls of compiled graphs that launch one CUDA graph each, with the number of its replay."""
    inside: dict[int, list[int]] = defaultdict(list)
    calls = graph_calls(trace)
    starts, ends, threads = trace.events.start, event_ends(trace), trace.events.thread
    launches = replays.launches
    for number, call in enumerate(calls):
        during = (launches >= 0) & (threads[launches] == threads[call.row])
        during &= (starts[launches] >= starts[call.row]) & (starts[launches] < ends[call.row])
        inside[number] = np.flatnonzero(during).tolist()
    return [
        (calls[number], found[0])
        for number, found in inside.items()
        if len(found) == 1 and replays.order[found[0]] != ReplayOrder.UNKNOWN
    ]


def _read_names_of_work(trace: Trace, positions: Int64) -> tuple[list[str], list[bool]]:
    """Return (name, whether it is a kernel) of device work."""
    rows = device_links(trace).rows[positions]
    codes = trace.events.name[rows].tolist()
    names = [kernel_label(trace.strings[code]) if code >= 0 else "" for code in codes]
    return names, (event_kinds(trace)[rows] == Kind.KERNEL).tolist()


def pair_replay(
    names: Sequence[str], is_kernel: Sequence[bool], kernels: Sequence[CompiledKernel]
) -> list[CompiledKernel | None] | None:
    """Return the call in a graph's code that each piece of replayed work runs, None where that isn't certain.

    Returns None if the replay doesn't run exactly the generated kernels of the code, in its order.
    """
    marks = [at for at, name in enumerate(names) if is_generated(name)]
    calls = [at for at, kernel in enumerate(kernels) if is_generated(kernel.name)]
    if not marks or [names[at] for at in marks] != [kernels[at].name for at in calls]:
        return None
    result: list[CompiledKernel | None] = [None] * len(names)
    for at, call in zip(marks, calls, strict=True):
        result[at] = kernels[call]
    for (low, high), (first, last) in zip(_between(marks, len(names)), _between(calls, len(kernels)), strict=True):
        products = [at for at in range(low, high) if is_kernel[at] and not _SPLIT_REDUCTION.search(names[at])]
        if len(products) == last - first:
            for at, kernel in zip(products, kernels[first:last], strict=True):
                result[at] = kernel
            for at in range(low + 1, high):
                if is_kernel[at] and result[at] is None:
                    result[at] = result[at - 1]
    return result


def _between(marks: Sequence[int], count: int) -> list[tuple[int, int]]:
    """Return the ranges before, between and behind the marks in a sequence."""
    return list(zip([0, *(mark + 1 for mark in marks)], [*marks, count], strict=True))
