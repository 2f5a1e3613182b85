"""Chains of elementwise kernels: each reads from memory what the one before wrote there.

add --|mul --|relu --|      three passes over the same tensor; a fused kernel makes one

The file doesn't say which tensors are the same one, so the fused kernel may read a single one and write another.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from torch_tb_profiler.analyses.overview.finding import Finding
from torch_tb_profiler.analyses.overview.kernel_rules.excess import (
    first_element_bytes,
    host_times,
    other_device_work,
    parse_shapes,
    recorded_shapes,
    times_after_share,
)
from torch_tb_profiler.analyses.overview.kernel_rules.optimizer import in_optimizer
from torch_tb_profiler.analyses.shared.attainable import attainable_ns, owning_calls
from torch_tb_profiler.analyses.shared.grouping import (
    dense_codes,
    group,
    input_shape_codes,
    input_shape_texts,
    launch_times,
    positions_by_value,
    stable_order,
)
from torch_tb_profiler.base.arrays import search_sorted
from torch_tb_profiler.model.costs.models import built_in_cost_model
from torch_tb_profiler.model.devices import device_ids, stream_ids
from torch_tb_profiler.model.kinds import Kind, event_ends, event_kinds, rows_of_kind
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int32, Int64, Trace, name_mask
from torch_tb_profiler.model.work.operator_work import operator_work

MIN_CHAIN_LENGTH = 3
"""Fewest kernels in a row that count as a chain."""


def find_elementwise_chains(trace: Trace) -> Iterator[Finding]:
    """Find kernels of different operators in a row, on tensors of one size, and their time beyond a fused kernel.

    That takes as long as its roofline allows, but no less than the shortest kernel of the file.
    """
    rows, chain = _find_chains(trace)
    if len(rows) == 0:
        return
    length, chains = trace.events.duration[rows], group(chain)
    sums = chains.sums(length)
    share = np.ones(len(chains))
    fused: dict[tuple[int, ...], float] = {}
    signature, calls = operator_work(trace).signature, owning_calls(trace, rows)
    members = positions_by_value(chains.which, len(chains))
    shortest = trace.events.duration[rows_of_kind(trace, Kind.KERNEL)].min()
    for number, mine in enumerate(members):
        key = tuple(signature[calls[mine]].tolist())
        if key not in fused:
            fused[key] = _estimate_fused_ns(trace, calls[mine].astype(np.int64))
        share[number] = min(max(fused[key], shortest) / max(sums[number], 1), 1.0)
    longest = rows[members[int(np.argmax(sums))]]
    yield Finding(
        "elementwise_chains",
        times_after_share(trace, rows, share[chains.which]),
        other_device_work(trace, rows),
        np.sort(rows),
        on_device=True,
        host=host_times(trace, calls.astype(np.int64), chains.which),
        value=len(chains),
        event=int(longest[0]),
        window=(int(trace.events.start[longest].min()), int(event_ends(trace)[longest].max())),
    )


def _estimate_fused_ns(trace: Trace, calls: Int64) -> float:
    """Return the least ns of one kernel for these calls, 0 where that is unknown.

    It reads what the first one works on and writes what the last one makes, each of these a single tensor.
    """
    work = operator_work(trace)
    rows = work.owners.calls[calls].tolist()
    in_and_out = sum(
        _max_elements(recorded_shapes(trace, row)) * first_element_bytes(trace, row) for row in (rows[0], rows[-1])
    )
    # A call moves less if it makes truth values, or an input is expanded.
    moved = min(float(in_and_out), float(work.bytes[calls].min()))
    return float(np.nan_to_num(attainable_ns(trace, calls, moved_bytes=moved)[0]))


def _find_chains(trace: Trace) -> tuple[Int32, Int64]:
    """Return (int32[k] rows of kernels in chains, int64[k] the chain of each)."""
    own = operator_work(trace).owners
    rows, may_chain = own.events, _are_elementwise(trace)
    if not may_chain.any():
        return rows[:0], np.empty(0, np.int64)
    order = np.argsort(trace.events.start.take(rows), kind="stable")
    by_start = rows.take(order)
    queue, _ = dense_codes(device_ids(trace).take(by_start), stream_ids(trace).take(by_start))
    by_queue = stable_order(queue)
    order, queue = order[by_queue], queue[by_queue]
    rows, may_chain = rows[order], may_chain[order]
    # No kernel does work of two steps. A trace without steps is one: its loop can't be seen.
    step = search_sorted(steps(trace).host_starts, launch_times(trace, rows), "right")
    may_follow = may_chain[1:] & may_chain[:-1] & (queue[1:] == queue[:-1]) & (step[1:] == step[:-1])
    # Sizes are read from texts: only of kernels in a long enough row of such kernels, not all of one operator.
    name = np.append(own.name, NO_CODE)[own.call[order]]
    row = np.concatenate([[0], np.cumsum(~may_follow)])
    counts = (np.bincount(row) >= MIN_CHAIN_LENGTH) & _has_pair(row, may_follow & (name[1:] != name[:-1]))
    in_row = may_chain & counts[row]
    elements = np.zeros(len(rows), np.int64)
    elements[in_row] = _elements(trace, own.call[order[in_row]])
    follows = may_follow & (elements[1:] == elements[:-1]) & (elements[1:] > 0)
    chain = np.concatenate([[0], np.cumsum(~follows)])
    differs = _has_pair(chain, follows & (name[1:] != name[:-1]))
    in_chain = (np.bincount(chain)[chain] >= MIN_CHAIN_LENGTH) & differs[chain] & (elements > 0)
    return rows[in_chain], chain[in_chain]


def _has_pair(number: Int64, counts: Bool) -> Bool:
    """Return bool[numbers]: whether any two neighbors count that both have the number, of numbers that ascend."""
    found: Bool = np.bincount(number[1:], counts, minlength=int(number[-1]) + 1) > 0
    return found


def _are_elementwise(trace: Trace) -> Bool:
    """Return bool[m]: kernels that alone work for an elementwise call.

    Calls of an optimizer don't count: they follow each other, but each works on another parameter.
    """
    own = operator_work(trace).owners
    elementwise = name_mask(own.names, _is_elementwise, own.name)[own.name]
    alone = np.bincount(own.call[own.call >= 0], minlength=len(own.calls)) == 1
    calls = np.flatnonzero(own.modeled & elementwise & alone)
    calls = calls[~in_optimizer(trace, own.calls[calls])]
    counts = np.zeros(len(own.calls) + 1, np.bool_)
    counts[calls] = True
    mask: Bool = (event_kinds(trace)[own.events] == Kind.KERNEL) & counts[own.call]
    return mask


def _elements(trace: Trace, calls: Int32) -> Int64:
    """Return int64[k]: the elements of the largest input of these calls of `operator_work`."""
    work = operator_work(trace)
    rows = work.owners.calls[calls]
    if work.owners.captures:  # calls of a capture have shapes of their own
        same = group(work.signature[calls])
        texts = [recorded_shapes(trace, row) for row in rows[same.first].tolist()]
    else:  # few differ
        codes, spelled = input_shape_codes(trace).take(rows), input_shape_texts(trace)
        same = group(codes)
        texts = [spelled[code] if code >= 0 else "" for code in codes[same.first].tolist()]
    return np.array([*map(_max_elements, texts)], np.int64)[same.which]


def _is_elementwise(name: str) -> bool:
    model = built_in_cost_model(name)
    return model is not None and model.family == "elementwise"


def _max_elements(shapes: str) -> int:
    """Return the elements of the largest input; 0 if no shape is recorded, or one that no tensor has."""
    count = max((math.prod(shape) for shape in parse_shapes(shapes) if shape), default=0)
    return count if 0 < count < 2**62 else 0
