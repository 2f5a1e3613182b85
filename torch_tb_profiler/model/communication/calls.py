"""Which events make up one communication operation.

    c10d::allreduce_ --------------|      thread       one operation: the outermost of the calls that nest,
      record_param_comms ---------|       thread         with the metadata of those inside
        nccl:all_reduce --------|         thread
                      ncclAllReduce ---|  stream       and the kernels launched in it

    c10d::send ---|                       thread       the back end's own call may end later
             gloo:send ---|               thread

    c10d::allreduce_ -|                   thread       issues only: the operation is the back end's own call
                   gloo:all_reduce ---|   thread 2

A kernel that no such call launched (a replayed graph, a launch before the recording) is an operation of its own.
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.calls.calltree import CallTree, build_call_tree, innermost_enclosing
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.communication.events import communication_calls, communication_kernels
from torch_tb_profiler.model.communication.names import BACKEND, collective_in
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int32, Int64, Trace, name_mask


class CollectiveCalls(msgspec.Struct, frozen=True):
    """Events by operation; columns of length k, NO_CODE where there is no such event.

    call      int32  outermost host call
    named     int32  the back end's own call (`nccl:all_reduce`)
    recorded  int32  the event with the metadata
    kernels   int32[j]  rows of the kernels, in order of start; a batch's count for each operation it carries
    owner     int64[j]  position of each one's operation
    """

    call: Int32
    named: Int32
    recorded: Int32
    kernels: Int32
    owner: Int64

    def __len__(self) -> int:
        return len(self.call)

    def first_kernel(self) -> Int32:
        """int32[k]: the earliest kernel of each operation, NO_CODE if it has none."""
        first = np.full(len(self), NO_CODE, np.int32)
        first[self.owner[::-1]] = self.kernels[::-1]
        return first


@derived
def collective_calls(trace: Trace) -> CollectiveCalls:
    """The operations of a trace, in no particular order."""
    rows = np.flatnonzero(communication_calls(trace)).astype(np.int32)
    tree = build_call_tree(trace, rows)
    chains = _chains(trace, tree)
    kernels = np.flatnonzero(communication_kernels(trace)).astype(np.int32)
    kernels = kernels[np.argsort(trace.events.start[kernels], kind="stable")]
    chain = _launching(trace, tree, chains, kernels)
    kernels, chain, batches = _unbatch(trace, chains, kernels, chain)
    kept = np.flatnonzero(_is_operation(trace, chains, chain) & ~batches)

    position = np.full(len(chains.root) + 1, NO_CODE, np.int64)
    position[kept] = np.arange(len(kept))
    owner = position[chain]
    loose = np.flatnonzero(owner < 0)
    owner[loose] = len(kept) + np.arange(len(loose))
    none = np.full(len(loose), NO_CODE, np.int32)
    operations = CollectiveCalls(
        call=np.append(chains.root[kept], none),
        named=np.append(chains.named[kept], none),
        recorded=np.append(chains.recorded[kept], none),
        kernels=kernels,
        owner=owner,
    )
    bare = operations.recorded < 0
    operations.recorded[bare] = operations.first_kernel()[bare]  # Kineto copies the metadata to the kernels
    return operations


class _Chains(msgspec.Struct, frozen=True):
    """Calls that nest in one another are one chain: `root` int32[c] its outermost, `of` int32[n + 1] the chain of
    a row, NO_CODE for none; `named` and `recorded` int32[c] as in CollectiveCalls."""

    root: Int32
    of: Int32
    named: Int32
    recorded: Int32


def _chains(trace: Trace, tree: CallTree) -> _Chains:
    rows = tree.rows
    outer = _outermost(tree, rows)
    sticks_out = tree.lane[outer] > 0
    around = innermost_enclosing(trace, tree)[outer[sticks_out]]
    outer[sticks_out] = np.where(around >= 0, _outermost(tree, around), outer[sticks_out])
    roots = np.unique(outer).astype(np.int32)
    of = np.full(len(trace) + 1, NO_CODE, np.int32)
    of[rows] = np.searchsorted(roots, outer)

    def first(which: Bool) -> Int32:
        outermost = np.full(len(roots), NO_CODE, np.int32)
        outermost[of[rows[which]][::-1]] = rows[which][::-1]  # the last write wins: outer before inner
        return outermost

    by_backend = name_mask(trace.strings, lambda text: BACKEND.match(text) and collective_in(text))
    codes, names = trace.arg_codes("Collective name")
    data = name_mask(names, collective_in)
    return _Chains(roots, of, first(by_backend[trace.events.name[rows]]), first(data[codes[rows]]))


def _outermost(tree: CallTree, rows: Int32) -> Int32:
    """int32[k]: the roots of these rows; NO_CODE for NO_CODE."""
    outer: Int32 = rows.copy()
    moves = True
    while moves:
        above = np.where(outer >= 0, tree.parent[outer], NO_CODE)
        moves = bool((above >= 0).any())
        outer = np.where(above >= 0, above, outer).astype(np.int32)
    return outer


def _launching(trace: Trace, tree: CallTree, chains: _Chains, kernels: Int32) -> Int32:
    """int32[j]: the chain in which each kernel was launched, NO_CODE if in none."""
    links = device_links(trace)
    at = np.searchsorted(links.rows, kernels)
    launch, operator = links.launch[at], links.operator[at]
    by_launch = np.where(launch >= 0, chains.of[innermost_enclosing(trace, tree)[launch]], NO_CODE)
    return np.where(by_launch >= 0, by_launch, chains.of[operator]).astype(np.int32)


def _unbatch(trace: Trace, chains: _Chains, kernels: Int32, chain: Int32) -> tuple[Int32, Int32, Bool]:
    """Let the kernels of a coalesced batch count for the operations that it carries: those on its thread before
    it that launched nothing themselves. Returns (kernels, their chains, bool[c] which chains are such batches)."""
    batches = np.zeros(len(chains.root), np.bool_)
    names = np.where(chains.named >= 0, trace.events.name[chains.named], NO_CODE)
    coalesced = name_mask(trace.strings, lambda text: collective_in(text) == "coalesced", names)[names]
    if not coalesced.any():
        return kernels, chain, batches
    launched = np.bincount(chain[chain >= 0], minlength=len(chains.root)) > 0
    start, thread = trace.events.start[chains.root], trace.events.thread[chains.root]
    waiting = (chains.recorded >= 0) & ~launched & ~coalesced
    more_kernels, more_chains = [kernels], [chain]
    for batch in np.flatnonzero(coalesced & launched)[np.argsort(start[coalesced & launched], kind="stable")]:
        carried = np.flatnonzero(waiting & (thread == thread[batch]) & (start < start[batch]))
        if len(carried):
            own = kernels[chain == batch]
            more_kernels.append(np.tile(own, len(carried)))
            more_chains.append(np.repeat(carried, len(own)).astype(np.int32))
            waiting[carried] = False
            batches[batch] = True
    keep = ~np.append(batches, False)[chain]
    more_kernels[0], more_chains[0] = kernels[keep], chain[keep]
    kernels, chain = np.concatenate(more_kernels), np.concatenate(more_chains)
    order = np.argsort(trace.events.start[kernels], kind="stable")
    return kernels[order], chain[order], batches


def _is_operation(trace: Trace, chains: _Chains, chain: Int32) -> Bool:
    """bool[c]: chains that are operations: not waits, nor calls that only hand over to another thread."""
    launched: Int64 = np.bincount(chain[chain >= 0], minlength=len(chains.root))
    recorded: Bool = (chains.named >= 0) | (chains.recorded >= 0) | (launched > 0)
    if recorded.any() or len(chain):
        return recorded
    names = trace.events.name[chains.root]
    by_name: Bool = name_mask(trace.strings, collective_in, names)[names]
    return by_name
