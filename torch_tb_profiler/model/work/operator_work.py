"""Work of every call that owns device work: computed once for each signature, then spread over its calls.

Recomputed calls are forward operators that run a second time inside the backward pass (activation checkpointing):

    evaluate_function: CheckpointFunctionBackward ----|
      aten::conv2d --|    aten::convolution_backward --|
      again: its sequence number is no backward's         Fwd thread id is not 0

They are found without stacks. Of the operator and those around it, the nearest one with a `Sequence number` has
the thread of a forward operator (`Fwd thread id`) if it is part of backward, and 0 if it is forward.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from torch_tb_profiler.base.arrays import highest_by_number
from torch_tb_profiler.base.compiled import column_functions
from torch_tb_profiler.base.intervals import totals_by_owner
from torch_tb_profiler.base.memo import stored
from torch_tb_profiler.model.calls.autograd import backward_tasks, find_marked_around
from torch_tb_profiler.model.calls.calltree import enclosing_operators
from torch_tb_profiler.model.costs.call import Cost, UnknownCostError, read_call
from torch_tb_profiler.model.costs.models import CostModel, find_cost_model
from torch_tb_profiler.model.dtypes import peak_dtype
from torch_tb_profiler.model.kernels.families import FAMILIES, family_codes
from torch_tb_profiler.model.kinds import Kind, event_kinds, event_spans
from torch_tb_profiler.model.trace import (
    ABSENT,
    NO_CODE,
    Bool,
    Float64,
    Int32,
    Int64,
    Trace,
    distinct_codes,
    name_mask,
    rows_mask,
)
from torch_tb_profiler.model.work.measured import measured_call_work
from torch_tb_profiler.model.work.ownership import INPUT_KEYS, WorkOwners, work_owners

NOT_MODELED = "this operator has no formula for FLOPs and bytes"

_HOST_COPIES = ("HtoD", "DtoH", "Host", "Pageable", "Pinned")
"""Texts in the names of copies to or from the host."""

_PRODUCTS = ("matrix product", "convolution", "attention")

_CodedTexts = tuple[Int32, Sequence[str]]
"""An argument of some calls: the code of each one, and the texts."""


class OperatorWork(msgspec.Struct, frozen=True):
    """The k calls of `work_owners` and their work; NaN is unknown.

    owners      the owner of each device event
    flops       float64[k]  executed
    needed      float64[k]  that the mathematics needs (attention's backward executes more)
    bytes       float64[k]  of device memory, read and written
    matrix      bool[k]     the arithmetic is that of Tensor (matrix) cores
    type        int32[k]    code into `types`, NO_CODE without arithmetic
    busy        int64[k]    ns in which any of its device events ran
    device      int64[k]    sum of their durations, ns
    estimated   bool[k]     the bytes are estimated from the arguments
    measured    bool[k]     FLOPs or bytes are from hardware counters
    host        bool[k]     it copies to or from the host
    recomputed  bool[k]     backward computes it a second time
    signature   int32[k]    calls with one signature have one cost
    reason      int32[k]    code into `reasons` why something is unknown, NO_CODE if nothing is
    """

    owners: WorkOwners
    flops: Float64
    needed: Float64
    bytes: Float64
    matrix: Bool
    type: Int32
    types: tuple[str, ...]
    busy: Int64
    device: Int64
    estimated: Bool
    measured: Bool
    host: Bool
    recomputed: Bool
    signature: Int32
    reason: Int32
    reasons: tuple[str, ...]


@stored
def operator_work(trace: Trace) -> OperatorWork:
    """Return FLOPs and bytes of every call that owns device work."""
    owners = work_owners(trace)
    is_owned = owners.call >= 0
    rows, call = owners.events[is_owned], owners.call[is_owned]
    count = len(owners.calls)
    start, end = event_spans(trace, rows)
    length = end - start
    main = _find_main_event(call, length, rows, _are_products(trace, rows), count)
    inputs = _code_inputs(trace, owners.calls)
    signature, first = _number_signatures(trace, owners, main, inputs)
    kernels = _event_names(trace, main[first])
    costs = _compute_owner_costs(trace, owners, first, kernels, _texts_of_inputs(inputs, first))
    types, reasons = _TextCodes(), _TextCodes()
    type_codes = [types.add(peak_dtype(c.type, c.unit, k)) for c, k in zip(costs, kernels, strict=True)]
    reason = np.array([reasons.add(cost.reason or "") for cost in costs], np.int32)[signature]
    flops, needed, moved = (
        np.array(values, np.float64)[signature]  # None becomes NaN
        for values in (
            [cost.flops for cost in costs],
            [cost.needed for cost in costs],
            [cost.bytes for cost in costs],
        )
    )
    estimated = np.array([cost.estimated for cost in costs], np.bool_)[signature]
    copied, host = _sum_copied_bytes(trace, count, rows, call)
    is_copy = ~np.isnan(copied) & (~owners.modeled | (flops == 0) | np.isnan(flops))
    moved, flops, needed = (
        np.where(is_copy, copied, moved),
        np.where(is_copy, 0.0, flops),
        np.where(is_copy, 0.0, needed),
    )
    flops, needed, moved, is_recorded = _replace_by_recorded(trace, owners.calls, flops, needed, moved)
    type_ = np.where(is_copy, NO_CODE, np.array(type_codes, np.int32)[signature]).astype(np.int32)
    measured = np.zeros(count, np.bool_)
    counters = measured_call_work(trace)
    if counters is not None:
        has_flops, has_bytes = ~np.isnan(counters.flops), ~np.isnan(counters.bytes)
        measured = has_flops | has_bytes
        flops = np.where(has_flops, counters.flops, flops)
        moved = np.where(has_bytes, counters.bytes, moved)
        needed = np.where(np.isnan(needed), flops, needed)
        precision = np.where(counters.double, types.add("fp64"), types.add("fp32"))
        type_ = np.where((type_ < 0) & (counters.flops > 0), precision, type_).astype(np.int32)
        estimated &= ~has_bytes
        is_recorded |= measured
    is_known = is_copy | is_recorded
    return OperatorWork(
        owners=owners,
        flops=flops,
        needed=needed,
        bytes=moved,
        matrix=np.array([cost.unit == "matrix" for cost in costs], np.bool_)[signature] & ~is_copy,
        type=type_,
        types=types.texts,
        busy=totals_by_owner(call, start, end, count),
        device=np.bincount(call, length, minlength=count).astype(np.int64),
        estimated=estimated & ~is_known,
        measured=measured,
        host=host,
        recomputed=_find_recomputed_calls(trace, owners),
        signature=signature,
        reason=np.where(is_known & ~np.isnan(flops) & ~np.isnan(moved), NO_CODE, reason).astype(np.int32),
        reasons=reasons.texts,
    )


class _TextCodes:
    """Codes of distinct texts, in order of their addition; "" is NO_CODE."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {"": NO_CODE}

    def add(self, text: str) -> int:
        return self._codes.setdefault(text, len(self._codes) - 1)

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(self._codes)[1:]


def _are_products(trace: Trace, rows: Int32) -> Bool:
    """Return bool[k]: device events that multiply matrices or convolve, whatever runs before or after them."""
    is_product = np.array([family in _PRODUCTS for family in (*FAMILIES, "no family")], np.bool_)
    mask: Bool = is_product.take(family_codes(trace).take(rows))
    return mask


def _find_main_event(call: Int32, length: Int64, rows: Int32, is_product: Bool, count: int) -> Int32:
    """Return int32[k]: the longest product of each call, else its longest device event.

    Its name is that of the kernel that the call ran as; a conversion of layouts may take longer than that.
    """
    main = np.full(count, NO_CODE, np.int32)
    main[call] = rows
    has_several = np.bincount(call, minlength=count) > 1  # most calls launch one kernel
    several = np.flatnonzero(has_several.take(call))
    has_product = np.zeros(count, np.bool_)
    has_product[call[several[is_product[several]]]] = True
    several = several[is_product[several] | ~has_product[call[several]]]
    longest = highest_by_number(call[several], length[several], count)
    several = several[length[several] == longest[call[several]]]
    main[call[several]] = rows[several]  # the last write wins
    return main


def _number_signatures(
    trace: Trace, owners: WorkOwners, main: Int32, inputs: Sequence[_CodedTexts]
) -> tuple[Int32, Int64]:
    """Return (int32[k] signature of each call, int64[s] position of the first call of each signature)."""
    count = len(owners.calls)
    signature, size = np.zeros(count, np.int64), min(count, 1)
    for column in (owners.name, owners.captured, *(codes for codes, _ in inputs), trace.events.name[main]):
        if count == 0 or column.min() == column.max():
            continue  # a column that is the same for all tells none apart
        # These calls have few of the texts: numbered without gaps, the combinations of two columns fit a table.
        codes, distinct = _compact(column.astype(np.int64) + 1)
        signature, size = _compact(signature * distinct + codes)
    first = np.zeros(size, np.int64)
    first[signature[::-1]] = np.arange(count)[::-1]
    return signature.astype(np.int32), first


def _compact(key: Int64) -> tuple[Int64, int]:
    """Return (codes without gaps, their number); `key` may be overwritten by them."""
    top = int(key.max(initial=0)) + 1
    if top > 16 * len(key) + 1024:
        values, codes = np.unique(key, return_inverse=True)
        return codes.reshape(-1), len(values)
    if functions := column_functions(len(key)):
        return key, functions.dense(key, top)
    is_used = np.zeros(top, np.bool_)  # a table is several times faster than sorting
    is_used[key] = True
    return (np.cumsum(is_used) - 1)[key], int(is_used.sum())


def _code_input_shapes(trace: Trace, rows: Int32) -> tuple[Int32, Sequence[str]]:
    """Return (codes, texts) of the input shapes in either spelling of their key."""
    codes, texts = trace.arg_codes("Input Dims", rows)
    older, older_texts = trace.arg_codes("Input dims", rows)
    if len(older_texts) == 0:
        return codes, texts
    both = np.where(codes >= 0, codes, np.where(older >= 0, older + len(texts), NO_CODE))
    return both.astype(np.int32), [*texts, *older_texts]


def call_cost(trace: Trace, row: int, kernel: int) -> Cost:
    """Return the cost of a call that runs as `kernel` (both rows), or an unknown cost with its reason."""
    (texts,) = input_texts(trace, np.array([row], np.int32))
    name, kernel_name = _event_names(trace, np.array([row, kernel], np.int32))
    return _cost(find_cost_model(trace, name), name, texts, kernel_name)


def input_texts(trace: Trace, rows: Int32) -> list[tuple[str | None, ...]]:
    """Return the texts of the arguments of calls that their cost depends on, in the order of `INPUT_KEYS`."""
    return _texts_of_inputs(_code_inputs(trace, rows), np.arange(len(rows)))


def _code_inputs(trace: Trace, rows: Int32) -> list[_CodedTexts]:
    return [_code_input_shapes(trace, rows), *(trace.arg_codes(key, rows) for key in INPUT_KEYS[1:])]


def _texts_of_inputs(inputs: Sequence[_CodedTexts], positions: Int64) -> list[tuple[str | None, ...]]:
    return list(zip(*(_texts_of(codes[positions], texts) for codes, texts in inputs), strict=True))


def _texts_of(codes: Int32, texts: Sequence[str]) -> list[str | None]:
    """Return the text of each code, None for NO_CODE; each distinct one is looked up once."""
    known: dict[int, str | None] = {code: texts[code] for code in distinct_codes(codes)}
    return [known.get(code) for code in codes.tolist()]


def _compute_owner_costs(
    trace: Trace,
    owners: WorkOwners,
    positions: Int64,
    kernels: Sequence[str],
    inputs: Sequence[tuple[str | None, ...]],
) -> list[Cost]:
    """Return the costs of the calls at these positions, with their main kernels and the texts of their inputs."""
    calls, models, costs = owners.calls[positions], _KnownModels(trace), []
    for is_modeled, captured, name, kernel, texts in zip(
        owners.modeled[positions].tolist(),
        owners.captured[positions].tolist(),
        _event_names(trace, calls),
        kernels,
        inputs,
        strict=True,
    ):
        if not is_modeled:
            costs.append(Cost(None, None, reason=NOT_MODELED))
        elif captured < 0:
            costs.append(_cost(models[name], name, texts, kernel))
        else:
            call = owners.captures[captured]
            costs.append(_cost(models[call.operator], call.operator, call.inputs, kernel))
    return costs


class _KnownModels(dict[str, CostModel | None]):
    """The models of operators by name, found when they are first asked for."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def __missing__(self, name: str) -> CostModel | None:
        self[name] = find_cost_model(self._trace, name)
        return self[name]


def _cost(model: CostModel | None, name: str, texts: Sequence[str | None], kernel: str) -> Cost:
    if model is None:
        return Cost(None, None, reason=NOT_MODELED)
    try:
        return model.cost(read_call(name, texts, kernel))
    except UnknownCostError as error:
        return Cost(None, None, unit="matrix" if model.family == "matrix" else None, reason=str(error))


def _event_names(trace: Trace, rows: Int32) -> list[str]:
    return [trace.strings[code] if code >= 0 else "" for code in trace.events.name.take(rows).tolist()]


def _sum_copied_bytes(trace: Trace, count: int, rows: Int32, call: Int32) -> tuple[Float64, Bool]:
    """Return (float64[k] bytes of calls that only copy, else NaN; bool[k] those that copy to or from the host)."""
    kind = event_kinds(trace).take(rows)
    copies = np.flatnonzero((kind == Kind.MEMCPY) | (kind == Kind.MEMSET))
    size = trace.arg_float("bytes", rows[copies])
    names = trace.events.name.take(rows[copies])
    host = name_mask(trace.strings, lambda text: any(word in text for word in _HOST_COPIES), names).take(names)
    is_sized, of_call = ~np.isnan(size), call[copies]
    # A call that does anything else beside copies of known sizes has more entries than these.
    only_copies = np.bincount(of_call[is_sized], minlength=count) == np.bincount(call, minlength=count)
    reads_and_writes = (kind[copies] == Kind.MEMCPY) & ~host
    sums = np.bincount(of_call, np.nan_to_num(size) * (1 + reads_and_writes), minlength=count)
    crosses_host = np.zeros(count, np.bool_)
    crosses_host[of_call[host]] = True
    return np.where(only_copies, sums, np.nan), crosses_host & only_copies


def _replace_by_recorded(
    trace: Trace, calls: Int32, flops: Float64, needed: Float64, moved: Float64
) -> tuple[Float64, Float64, Float64, Bool]:
    """Replace modeled work by what the compiler recorded for a kernel (`kernel_flop`, `kernel_num_gb`).

    Return (flops, needed, bytes, bool[k] calls with such records).
    """
    recorded, size = trace.arg_float("kernel_flop", calls), 1e9 * trace.arg_float("kernel_num_gb", calls)
    recorded, size = (np.where(values > 0, values, np.nan) for values in (recorded, size))
    has_flops = ~np.isnan(recorded)
    return (
        np.where(has_flops, recorded, flops),
        np.where(has_flops, recorded, needed),
        np.where(np.isnan(size), moved, size),
        has_flops | ~np.isnan(size),
    )


def _find_recomputed_calls(trace: Trace, owners: WorkOwners) -> Bool:
    """Return bool[k]: as `is_recomputed`; of an operator at capture nothing says so."""
    recomputed = owners.captured < 0
    recomputed[recomputed] = is_recomputed(trace, owners.calls[recomputed])
    return recomputed


def is_recomputed(trace: Trace, calls: Int32) -> Bool:
    """Return bool[k]: operators that compute again, inside a backward task, what forward computed."""
    tasks = backward_tasks(trace).rows
    recomputed = np.zeros(len(calls), np.bool_)
    if len(tasks) == 0:
        return recomputed
    around, is_task = enclosing_operators(trace), rows_mask(trace, tasks)
    at = calls.copy()
    # Climb to the nearest operator with a number, which the task itself has, too.
    climbing = np.flatnonzero(trace.arg_int("Sequence number", at) == ABSENT)
    while len(climbing):
        at[climbing] = above = around[at[climbing]]
        climbing = climbing[(above >= 0) & (trace.arg_int("Sequence number", above) == ABSENT)]
    numbered = np.flatnonzero(at >= 0)
    forward = numbered[~is_task[at[numbered]] & (trace.arg_int("Fwd thread id", at[numbered]) == 0)]
    recomputed[forward] = find_marked_around(trace, around[at[forward]], is_task) >= 0
    return recomputed
