"""Elementwise kernels one after the other: each reads from memory what the one before wrote there.

add --|mul --|relu --|      three passes over the same tensor; a fused kernel makes one
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from torch_tb_profiler.analyses.overview.finding import Finding
from torch_tb_profiler.analyses.overview.kernel_rules.excess import after_share, elsewhere, input_shapes
from torch_tb_profiler.analyses.overview.kernel_rules.optimizer import in_optimizer
from torch_tb_profiler.analyses.shared.grouping import group
from torch_tb_profiler.model.devices import device_ids, stream_ids
from torch_tb_profiler.model.kinds import Kind, event_ends, event_kinds
from torch_tb_profiler.model.trace import NO_CODE, Int32, Int64, Trace, name_mask
from torch_tb_profiler.model.work.models import built_in_cost_model
from torch_tb_profiler.model.work.operator_work import operator_work

LEAST = 3
"""Kernels in a row that are called a chain."""


def elementwise_chains(trace: Trace) -> Iterator[Finding]:
    """Kernels of different operators in a row on a stream, on tensors of one size; the longest of each remains."""
    rows, chain = _chains(trace)
    if len(rows) == 0:
        return
    length = trace.events.duration[rows]
    by_length = np.lexsort((length, chain))
    longest = np.append(np.diff(chain[by_length]) != 0, True)
    fused = np.sort(rows[by_length[~longest]])
    chains = group(chain)
    mine = rows[chains.members(int(np.argmax(chains.sums(length))))]
    yield Finding(
        "elementwise_chains",
        after_share(trace, fused, np.zeros(len(fused))),
        elsewhere(trace, fused),
        fused,
        on_device=True,
        value=len(chains),
        event=int(mine[0]),
        window=(int(trace.events.start[mine].min()), int(event_ends(trace)[mine].max())),
    )


def _chains(trace: Trace) -> tuple[Int32, Int64]:
    """(int32[k] rows of kernels in chains, int64[k] the chain of each)."""
    own = operator_work(trace).owners
    rows, elements = own.events, _elements(trace)
    order = np.lexsort((trace.events.start[rows], stream_ids(trace)[rows], device_ids(trace)[rows]))
    rows, elements = rows[order], elements[order]
    if len(rows) == 0:
        return rows, np.empty(0, np.int64)
    name = np.append(trace.events.name[own.calls], NO_CODE)[own.call[order]]
    stream, device = stream_ids(trace)[rows], device_ids(trace)[rows]
    follows = (np.diff(elements) == 0) & (np.diff(stream) == 0) & (np.diff(device) == 0) & (elements[1:] > 0)
    chain = np.concatenate([[0], np.cumsum(~follows)])
    differs = np.bincount(chain[1:], follows & (np.diff(name) != 0), minlength=int(chain[-1]) + 1) > 0
    kept = (np.bincount(chain)[chain] >= LEAST) & differs[chain] & (elements > 0)
    return rows[kept], chain[kept]


def _elements(trace: Trace) -> Int64:
    """int64[m]: of each device event the elements of the elementwise call that it alone works for, 0 of others.

    Calls of an optimizer are none: they follow each other, but on one parameter after the other.
    """
    done = operator_work(trace)
    own = done.owners
    elementwise = name_mask(trace.strings, _is_elementwise)[trace.events.name[own.calls]]
    alone = np.bincount(own.call[own.call >= 0], minlength=len(own.calls)) == 1
    calls = np.flatnonzero(own.modeled & elementwise & alone & ~in_optimizer(trace, own.calls))
    size = np.zeros(len(own.calls) + 1, np.int64)
    if len(calls):
        same = group(done.signature[calls])
        sizes = np.array([_most(trace, int(row)) for row in own.calls[calls[same.first]]], np.int64)
        size[calls] = sizes[same.which]
    return np.where(event_kinds(trace)[own.events] == Kind.KERNEL, size[own.call], 0)


def _is_elementwise(name: str) -> bool:
    model = built_in_cost_model(name)
    return model is not None and model.family == "elementwise"


def _most(trace: Trace, row: int) -> int:
    """Elements of the largest input; 0 if no shape is recorded, or one that no tensor has."""
    count = max((math.prod(shape) for shape in input_shapes(trace, row) if shape), default=0)
    return count if 0 < count < 2**62 else 0
