"""Communication operations: the calls and kernels that each consists of.

    c10d::allreduce_ --------------|      thread       one operation: the outermost of the calls that nest,
      record_param_comms ---------|       thread         with the metadata of those inside
        nccl:all_reduce --------|         thread
                      ncclAllReduce ---|  stream       and the kernels launched in it

    c10d::send ---|                       thread       the back end's own call may end later
             gloo:send ---|               thread

    c10d::allreduce_ -|                   thread       only issues: the operation is the back end's own call
                   gloo:all_reduce ---|   thread 2

A kernel that no such call launched (a replayed graph, a launch before the recording) is an operation by itself.
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.base.arrays import distinct
from torch_tb_profiler.base.memo import stored
from torch_tb_profiler.model.calls.calltree import CallTree, build_call_tree, innermost_enclosing
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.communication.events import (
    backend_of_call,
    collective_from_name,
    is_communication_call,
    is_communication_kernel,
)
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int32, Int64, Trace, name_mask


class CollectiveCalls(msgspec.Struct, frozen=True):
    """The events of k operations; columns of length k, NO_CODE where there is no such event.

    call      int32  outermost host call
    named     int32  the back end's own call (`nccl:all_reduce`)
    recorded  int32  the event with the metadata
    kernels   int32[j]  rows of the kernels, by start; those of a batch once for each operation in it
    owner     int64[j]  position of the operation of each kernel
    """

    call: Int32
    named: Int32
    recorded: Int32
    kernels: Int32
    owner: Int64

    def __len__(self) -> int:
        return len(self.call)

    def first_kernel(self) -> Int32:
        """Return int32[k]: the earliest kernel of each operation, NO_CODE if it has none."""
        first = np.full(len(self), NO_CODE, np.int32)
        first[self.owner[::-1]] = self.kernels[::-1]
        return first


@stored
def collective_calls(trace: Trace) -> CollectiveCalls:
    """Return the operations of a trace, in no particular order."""
    rows = np.flatnonzero(is_communication_call(trace)).astype(np.int32)
    tree = build_call_tree(trace, rows)
    chains = _find_chains(trace, tree)
    kernels = np.flatnonzero(is_communication_kernel(trace)).astype(np.int32)
    kernels = kernels[np.argsort(trace.events.start[kernels], kind="stable")]
    chain = _find_launching_chains(trace, tree, chains, kernels)
    kernels, chain, batches = _unbatch(trace, chains, kernels, chain)
    operation_chains = np.flatnonzero(_is_operation(trace, chains, chain) & ~batches)

    position = np.full(len(chains.root) + 1, NO_CODE, np.int64)
    position[operation_chains] = np.arange(len(operation_chains))
    owner = position[chain]
    without_call = np.flatnonzero(owner < 0)
    owner[without_call] = len(operation_chains) + np.arange(len(without_call))
    none = np.full(len(without_call), NO_CODE, np.int32)
    operations = CollectiveCalls(
        call=np.append(chains.root[operation_chains], none),
        named=np.append(chains.named[operation_chains], none),
        recorded=np.append(chains.recorded[operation_chains], none),
        kernels=kernels,
        owner=owner,
    )
    lacks_metadata = operations.recorded < 0
    # Kineto copies the metadata to the kernels.
    operations.recorded[lacks_metadata] = operations.first_kernel()[lacks_metadata]
    return operations


class _Chains(msgspec.Struct, frozen=True):
    """Chains of calls that nest in one another; columns of length c.

    root             int32  the outermost call
    by_row           int32[n + 1]  the chain of a row of the trace, NO_CODE for none
    named, recorded  int32  as in CollectiveCalls
    """

    root: Int32
    by_row: Int32
    named: Int32
    recorded: Int32


def _find_chains(trace: Trace, tree: CallTree) -> _Chains:
    rows = tree.rows
    outer = _find_outermost_calls(tree, rows)
    sticks_out = tree.lane[outer] > 0
    outside = outer[sticks_out]
    around = innermost_enclosing(trace, tree, among=outside)
    outer[sticks_out] = np.where(around >= 0, _find_outermost_calls(tree, around), outside)
    roots = distinct(outer).astype(np.int32)
    by_row = np.full(len(trace) + 1, NO_CODE, np.int32)
    by_row[rows] = np.searchsorted(roots, outer)

    def outermost_of(which: Bool) -> Int32:
        outermost = np.full(len(roots), NO_CODE, np.int32)
        outermost[by_row[rows[which]][::-1]] = rows[which][::-1]  # the last write wins: outer before inner
        return outermost

    is_backend_call = name_mask(trace.strings, lambda text: backend_of_call(text) and collective_from_name(text))
    codes, names = trace.arg_codes("Collective name", rows)
    moves_data = name_mask(names, collective_from_name)
    named = outermost_of(is_backend_call[trace.events.name[rows]])
    return _Chains(roots, by_row, named, outermost_of(moves_data[codes]))


def _find_outermost_calls(tree: CallTree, rows: Int32) -> Int32:
    """Return int32[k]: the roots of these rows; NO_CODE for NO_CODE."""
    outer: Int32 = rows.copy()
    moves = True
    while moves:
        above = np.where(outer >= 0, tree.parent[outer], NO_CODE)
        moves = bool((above >= 0).any())
        outer = np.where(above >= 0, above, outer).astype(np.int32)
    return outer


def _find_launching_chains(trace: Trace, tree: CallTree, chains: _Chains, kernels: Int32) -> Int32:
    """Return int32[j]: the chain in which each kernel was launched, NO_CODE if in none."""
    links = device_links(trace)
    at = np.searchsorted(links.rows, kernels)
    launch, operator = links.launch[at], links.operator[at]
    chain, linked = chains.by_row[operator], np.flatnonzero(launch >= 0)
    by_launch = chains.by_row[innermost_enclosing(trace, tree, among=launch[linked])]
    chain[linked] = np.where(by_launch >= 0, by_launch, chain[linked])
    return chain


def _unbatch(trace: Trace, chains: _Chains, kernels: Int32, chain: Int32) -> tuple[Int32, Int32, Bool]:
    """Count the kernels of a coalesced batch for each operation in it.

    These are the operations on its thread before it that launched nothing themselves. Return (kernels, their
    chains, bool[c] chains that are such batches).
    """
    batches = np.zeros(len(chains.root), np.bool_)
    names = np.where(chains.named >= 0, trace.events.name[chains.named], NO_CODE)
    coalesced = name_mask(trace.strings, lambda text: collective_from_name(text) == "coalesced", names)[names]
    if not coalesced.any():
        return kernels, chain, batches
    has_kernels = np.bincount(chain[chain >= 0], minlength=len(chains.root)) > 0
    start, thread = trace.events.start[chains.root], trace.events.thread[chains.root]
    pending = (chains.recorded >= 0) & ~has_kernels & ~coalesced
    more_kernels, more_chains = [kernels], [chain]
    for batch in np.flatnonzero(coalesced & has_kernels)[
        np.argsort(start[coalesced & has_kernels], kind="stable")
    ]:
        members = np.flatnonzero(pending & (thread == thread[batch]) & (start < start[batch]))
        if len(members):
            batch_kernels = kernels[chain == batch]
            more_kernels.append(np.tile(batch_kernels, len(members)))
            more_chains.append(np.repeat(members, len(batch_kernels)).astype(np.int32))
            pending[members] = False
            batches[batch] = True
    outside = ~np.append(batches, False)[chain]
    more_kernels[0], more_chains[0] = kernels[outside], chain[outside]
    kernels, chain = np.concatenate(more_kernels), np.concatenate(more_chains)
    order = np.argsort(trace.events.start[kernels], kind="stable")
    return kernels[order], chain[order], batches


def _is_operation(trace: Trace, chains: _Chains, chain: Int32) -> Bool:
    """Return bool[c]: chains that are operations, neither waits nor calls that only pass on to another thread."""
    kernel_count: Int64 = np.bincount(chain[chain >= 0], minlength=len(chains.root))
    recorded: Bool = (chains.named >= 0) | (chains.recorded >= 0) | (kernel_count > 0)
    if recorded.any() or len(chain):
        return recorded
    names = trace.events.name[chains.root]
    by_name: Bool = name_mask(trace.strings, collective_from_name, names)[names]
    return by_name
