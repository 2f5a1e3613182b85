"""Chains of elementwise kernels: each reads from memory what the one before wrote there.

add --|mul --|relu --|      three passes over the same tensor; a fused kernel makes one
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from torch_tb_profiler.analyses.overview.finding import Finding
from torch_tb_profiler.analyses.overview.kernel_rules.excess import (
    other_device_work,
    parse_input_shapes,
    times_after_share,
)
from torch_tb_profiler.analyses.overview.kernel_rules.optimizer import in_optimizer
from torch_tb_profiler.analyses.shared.grouping import group
from torch_tb_profiler.model.costs.models import built_in_cost_model
from torch_tb_profiler.model.devices import device_ids, stream_ids
from torch_tb_profiler.model.kinds import Kind, event_ends, event_kinds
from torch_tb_profiler.model.trace import NO_CODE, Int32, Int64, Trace, name_mask
from torch_tb_profiler.model.work.operator_work import operator_work

MIN_CHAIN_LENGTH = 3
"""Fewest kernels in a row that count as a chain."""


def find_elementwise_chains(trace: Trace) -> Iterator[Finding]:
    """Find kernels of different operators in a row, on tensors of one size; fusion would leave the longest."""
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
        times_after_share(trace, fused, np.zeros(len(fused))),
        other_device_work(trace, fused),
        fused,
        on_device=True,
        value=len(chains),
        event=int(mine[0]),
        window=(int(trace.events.start[mine].min()), int(event_ends(trace)[mine].max())),
    )


def _chains(trace: Trace) -> tuple[Int32, Int64]:
    """Return (int32[k] rows of kernels in chains, int64[k] the chain of each)."""
    own = operator_work(trace).owners
    rows, elements = own.events, _elements(trace)
    order = np.lexsort((trace.events.start[rows], stream_ids(trace)[rows], device_ids(trace)[rows]))
    rows, elements = rows[order], elements[order]
    if len(rows) == 0:
        return rows, np.empty(0, np.int64)
    name = np.append(own.name, NO_CODE)[own.call[order]]
    stream, device = stream_ids(trace)[rows], device_ids(trace)[rows]
    follows = (np.diff(elements) == 0) & (np.diff(stream) == 0) & (np.diff(device) == 0) & (elements[1:] > 0)
    chain = np.concatenate([[0], np.cumsum(~follows)])
    differs = np.bincount(chain[1:], follows & (np.diff(name) != 0), minlength=int(chain[-1]) + 1) > 0
    in_chain = (np.bincount(chain)[chain] >= MIN_CHAIN_LENGTH) & differs[chain] & (elements > 0)
    return rows[in_chain], chain[in_chain]


def _elements(trace: Trace) -> Int64:
    """Return int64[m]: the elements of the elementwise call that a device event alone works for, else 0.

    Calls of an optimizer don't count: they follow each other, but each works on another parameter.
    """
    done = operator_work(trace)
    own = done.owners
    elementwise = name_mask(own.names, _is_elementwise)[own.name]
    alone = np.bincount(own.call[own.call >= 0], minlength=len(own.calls)) == 1
    calls = np.flatnonzero(own.modeled & elementwise & alone & ~in_optimizer(trace, own.calls))
    size = np.zeros(len(own.calls) + 1, np.int64)
    if len(calls):
        same = group(done.signature[calls])
        sizes = np.array([_max_elements(trace, int(row)) for row in own.calls[calls[same.first]]], np.int64)
        size[calls] = sizes[same.which]
    return np.where(event_kinds(trace)[own.events] == Kind.KERNEL, size[own.call], 0)


def _is_elementwise(name: str) -> bool:
    model = built_in_cost_model(name)
    return model is not None and model.family == "elementwise"


def _max_elements(trace: Trace, row: int) -> int:
    """Return the elements of the largest input; 0 if no shape is recorded, or one that no tensor has."""
    count = max((math.prod(shape) for shape in parse_input_shapes(trace, row) if shape), default=0)
    return count if 0 < count < 2**62 else 0
