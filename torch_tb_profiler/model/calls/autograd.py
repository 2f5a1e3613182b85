"""The backward pass: which backward operator belongs to which forward operator.

A flow leads from the forward to the backward operator (`fwdbwd`, in old files `forward_backward`). In files
without flows, both have the same `Sequence number`, and the backward operator has a `Fwd thread id`.

The backward operator runs inside one of the autograd engine (`evaluate_function`), which also sums gradients and
runs hooks. The operator that adds a gradient to its parameter (`AccumulateGrad`) follows the task that computed
it:

    evaluate_function: AddmmBackward0 ---------|  evaluate_function: AccumulateGrad --|
      AddmmBackward0 <- flow from aten::addmm                 same forward operator

Files of 2020 and 2021 have neither the engine's operators nor links. Backward operators are then found by name,
such as `AddmmBackward` or `aten::cudnn_convolution_backward_weight`.
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.base.arrays import distinct, search_sorted
from torch_tb_profiler.base.markers import BACKWARD_FLOWS
from torch_tb_profiler.base.memo import stored
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.model.calls.calltree import enclosing_operators
from torch_tb_profiler.model.calls.nesting import nesting_order, place_on_one_axis
from torch_tb_profiler.model.kinds import Kind, event_spans, rows_named, rows_of_kind
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Int32, Int64, Trace, rows_mask

ENGINE_PREFIX = "autograd::engine::evaluate_function: "

ACCUMULATE_SUFFIX = "torch::autograd::AccumulateGrad"

_HASH_BITS = 20
_HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""An odd number without a pattern: products of neighboring times differ in their highest bits."""

_BY_NAME = lazy_regex(r"\w*Backward\d*|\w+::\w*_backward(?:_\w+)?")


class BackwardLinks(msgspec.Struct, frozen=True):
    """Pairs of operators: rows of the forward and the backward operators, int32[k] each."""

    forward: Int32
    backward: Int32


@stored
def backward_links(trace: Trace) -> BackwardLinks:
    """Return the pairs of forward and backward operators, by flows, else by sequence numbers."""
    by_flow = _link_by_flow(trace)
    return by_flow if len(by_flow.forward) else _link_by_sequence_number(trace)


class BackwardTasks(msgspec.Struct, frozen=True):
    """The tasks of the backward pass, by thread and start.

    rows     int32[k]  the engine's operators, or else the linked backward operators; and operators outside these
                       whose names say that they are backward
    forward  int32[k]  row of the forward operator that each differentiates, NO_CODE if not linked
    """

    rows: Int32
    forward: Int32


@stored
def backward_tasks(trace: Trace) -> BackwardTasks:
    """Return every task of the backward pass with the forward operator that it differentiates."""
    links = backward_links(trace)
    engine = rows_named(trace, lambda text: text.startswith(ENGINE_PREFIX), Kind.CPU_OP)
    accumulate = rows_named(trace, lambda text: text.endswith(ACCUMULATE_SUFFIX), Kind.CPU_OP)
    is_engine = rows_mask(trace, engine)
    accumulate = accumulate[is_engine[accumulate] | (find_marked_around(trace, accumulate, is_engine) < 0)]
    around = find_marked_around(trace, links.backward, is_engine)
    forward = np.full(len(trace), NO_CODE, np.int32)
    linked = np.where(around >= 0, around, links.backward)
    forward[linked] = links.forward
    tasks = distinct(np.concatenate([engine, linked, accumulate]))
    rows = np.concatenate([tasks, _find_outermost_by_name(trace, tasks)])
    rows = rows[np.lexsort((trace.events.start[rows], trace.events.thread[rows]))]
    accumulates = rows_mask(trace, accumulate)[rows]
    before = np.maximum.accumulate(np.where(accumulates, -1, np.arange(len(rows))))
    follows = accumulates & (before >= 0) & (trace.events.thread[rows[before]] == trace.events.thread[rows])
    return BackwardTasks(rows, np.where(follows, forward[rows[before]], forward[rows]).astype(np.int32))


def _find_outermost_by_name(trace: Trace, tasks: Int32) -> Int32:
    """Return the outermost operators that are backward by name and neither are nor lie in one of `tasks`."""
    named = rows_named(trace, _BY_NAME.fullmatch, Kind.CPU_OP)
    is_task = rows_mask(trace, tasks)
    named = named[~is_task[named]]
    is_task[named] = True
    return named[find_marked_around(trace, enclosing_operators(trace)[named], is_task) < 0]


def find_marked_around(trace: Trace, rows: Int32, is_marked: Bool) -> Int32:
    """Return the innermost marked operator that is, or is around, each operator, int32[k]; NO_CODE if none.

    is_marked  bool[n]
    """
    around = enclosing_operators(trace)
    surrounding: Int32 = rows.copy()
    climbing = np.flatnonzero((rows >= 0) & ~is_marked[rows])
    while len(climbing):
        above = around[surrounding[climbing]]
        surrounding[climbing] = above
        climbing = climbing[(above >= 0) & ~is_marked[above]]
    return surrounding


def _link_by_flow(trace: Trace) -> BackwardLinks:
    events = trace.events
    codes = [code for code, text in enumerate(trace.strings) if text in BACKWARD_FLOWS]
    of_codes = [np.flatnonzero(events.category == code) for code in codes]  # a few codes, quicker than a table
    flows = np.sort(np.concatenate([np.empty(0, np.int64), *of_codes]), kind="stable")
    flows = flows[(events.start.take(flows) != ABSENT) & (events.id.take(flows) != ABSENT)]
    phase = events.phase.take(flows)
    begins, finishes = flows[phase == ord("s")], flows[phase == ord("f")]
    order = np.argsort(events.id.take(begins), kind="stable")
    begins = begins.take(order)
    position = search_sorted(events.id.take(begins), events.id.take(finishes), "left")
    paired = position < len(begins)
    paired[paired] = events.id[begins[position[paired]]] == events.id[finishes[paired]]
    forward, backward = np.split(
        _find_operators_at(trace, np.append(begins[position[paired]], finishes[paired])), 2
    )
    both = (forward >= 0) & (backward >= 0)
    return BackwardLinks(forward[both], backward[both])


def _find_operators_at(trace: Trace, flows: Int64) -> Int32:
    """Return the innermost operator that begins at each flow event on its thread, int32[k]; NO_CODE if none."""
    operators = _find_rows_starting_at(trace, rows_of_kind(trace, Kind.CPU_OP), trace.events.start.take(flows))
    count = len(operators)
    if count == 0:
        return np.full(len(flows), NO_CODE, np.int32)
    rows = np.concatenate([operators, flows])
    start, thread = trace.events.start.take(rows), trace.events.thread.take(rows)
    finish = np.append(event_spans(trace, operators)[1], start[count:])
    begin, end = place_on_one_axis(start, finish, thread)
    # In nesting order, the last of those that begin together is the innermost.
    order = nesting_order(begin[:count], end[:count])
    begins, wanted = begin[order], begin[count:]
    position = search_sorted(begins, wanted, "right") - 1
    same = (position >= 0) & (begins[position] == wanted)
    return np.where(same, operators[order[position]], NO_CODE).astype(np.int32)


def _find_rows_starting_at(trace: Trace, rows: Int32, times: Int64) -> Int32:
    """Return those of `rows` that begin at one of these times, and a few others.

    What follows takes all of them for a sort; here each is looked up in a table by a hash of its start.
    """
    starts = trace.events.start.take(rows)
    is_wanted = np.zeros(1 << _HASH_BITS, np.bool_)
    is_wanted[_hash(times)] = True
    return rows[is_wanted.take(_hash(starts))]


def _hash(times: Int64) -> Int64:
    """Return numbers below 2 ** _HASH_BITS, equal for equal times."""
    numbers = times.astype(np.uint64)
    numbers *= _HASH_FACTOR
    numbers >>= np.uint64(64 - _HASH_BITS)
    return numbers.view(np.int64)


def _link_by_sequence_number(trace: Trace) -> BackwardLinks:
    sequence = trace.arg_int("Sequence number")
    forward_thread = trace.arg_int("Fwd thread id")
    operators = rows_of_kind(trace, Kind.CPU_OP)
    operators = operators[(sequence[operators] != ABSENT) & (sequence[operators] >= 0)]
    is_backward = (forward_thread[operators] != ABSENT) & (forward_thread[operators] != 0)
    forward, backward = operators[~is_backward], operators[is_backward]
    # The last forward operator with a number is the innermost, which is the one that autograd recorded.
    order = np.argsort(sequence[forward], kind="stable")
    forward = forward[order]
    position = np.searchsorted(sequence[forward], sequence[backward], "right") - 1
    paired = position >= 0
    paired[paired] = sequence[forward[position[paired]]] == sequence[backward[paired]]
    return BackwardLinks(forward[position[paired]].astype(np.int32), backward[paired].astype(np.int32))
