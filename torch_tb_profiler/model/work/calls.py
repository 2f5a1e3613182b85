"""Work of every call that owns device work: evaluated once for each signature, then spread over its calls."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.base.intervals import merge_by_owner
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.kinds import Kind, event_ends, event_kinds
from torch_tb_profiler.model.trace import NO_CODE, Bool, Float64, Int32, Int64, Trace, name_mask
from torch_tb_profiler.model.work.cost import Cost, Unknown
from torch_tb_profiler.model.work.measured import measured_calls
from torch_tb_profiler.model.work.models import model_in
from torch_tb_profiler.model.work.ownership import Owners, owners
from torch_tb_profiler.model.work.recomputation import recomputed
from torch_tb_profiler.model.work.tensors import read_call
from torch_tb_profiler.model.work.types import peak_type

NOT_MODELED = "what this operator computes is not known"


class Work(msgspec.Struct, frozen=True):
    """The k calls of `owners` and their work; NaN is unknown.

    owners      whose device event is whose
    flops       float64[k]  executed
    needed      float64[k]  of the mathematics alone (attention's backward executes more)
    bytes       float64[k]  of device memory, read and written
    matrix      bool[k]     the arithmetic is that of Tensor (matrix) cores
    type        int32[k]    code into `types`, NO_CODE without arithmetic
    busy        int64[k]    ns in which any of its device events ran
    device      int64[k]    sum of their durations, ns
    estimated   bool[k]     the bytes are a guess from the arguments
    measured    bool[k]     hardware counters tell the FLOPs or the bytes
    host        bool[k]     it copies to or from the host
    again       bool[k]     backward computes it a second time
    signature   int32[k]    calls with one signature have one cost
    reason      int32[k]    code into `reasons` why something is unknown, NO_CODE if nothing is
    """

    owners: Owners
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
    again: Bool
    signature: Int32
    reason: Int32
    reasons: tuple[str, ...]


@derived
def work(trace: Trace) -> Work:
    """FLOPs and bytes of every call that owns device work."""
    own = owners(trace)
    owned = own.call >= 0
    rows, call = own.events[owned], own.call[owned]
    count = len(own.calls)
    length = (event_ends(trace) - trace.events.start)[rows]
    main = _longest(call, length, rows, count)
    signature, first = _signatures(trace, own.calls, main)
    costs = [
        cost_of(trace, row, kernel) if known else Cost(None, None, reason=NOT_MODELED)
        for row, kernel, known in zip(
            own.calls[first].tolist(), main[first].tolist(), own.modeled[first].tolist(), strict=True
        )
    ]
    numbers = _Codes()
    kernels = [_name(trace, row) for row in main[first].tolist()]
    types = [numbers.of(peak_type(c.type, c.unit, k)) for c, k in zip(costs, kernels, strict=True)]
    reasons = _Codes()
    reason = np.array([reasons.of(cost.reason or "") for cost in costs], np.int32)[signature]
    flops, needed, moved = (
        np.array([np.nan if value is None else value for value in values], np.float64)[signature]
        for values in (
            [cost.flops for cost in costs],
            [cost.needed for cost in costs],
            [cost.bytes for cost in costs],
        )
    )
    estimated = np.array([cost.estimated for cost in costs], np.bool_)[signature]
    copied, host = _copies(trace, own, rows, call)
    simple = ~np.isnan(copied) & (~own.modeled | (flops == 0) | np.isnan(flops))
    moved, flops, needed = (
        np.where(simple, copied, moved),
        np.where(simple, 0.0, flops),
        np.where(simple, 0.0, needed),
    )
    flops, needed, moved, recorded = _recorded(trace, own.calls, flops, needed, moved)
    kind = np.where(simple, NO_CODE, np.array(types, np.int32)[signature]).astype(np.int32)
    counted = measured_calls(trace)
    if counted is not None:
        has_flops, has_bytes = ~np.isnan(counted.flops), ~np.isnan(counted.bytes)
        flops, moved = np.where(has_flops, counted.flops, flops), np.where(has_bytes, counted.bytes, moved)
        needed = np.where(np.isnan(needed), flops, needed)
        precision = np.where(counted.double, numbers.of("fp64"), numbers.of("fp32"))
        kind = np.where((kind < 0) & (counted.flops > 0), precision, kind).astype(np.int32)
        estimated &= ~has_bytes
        recorded |= has_flops | has_bytes
    known = simple | recorded
    return Work(
        owners=own,
        flops=flops,
        needed=needed,
        bytes=moved,
        matrix=np.array([cost.unit == "matrix" for cost in costs], np.bool_)[signature] & ~simple,
        type=kind,
        types=numbers.texts,
        busy=merge_by_owner(call, trace.events.start[rows], event_ends(trace)[rows]).totals(count),
        device=np.bincount(call, length, minlength=count).astype(np.int64),
        estimated=estimated & ~known,
        measured=np.zeros(len(own.calls), np.bool_) if counted is None else has_flops | has_bytes,
        host=host,
        again=recomputed(trace, own.calls),
        signature=signature,
        reason=np.where(known & ~np.isnan(flops) & ~np.isnan(moved), NO_CODE, reason).astype(np.int32),
        reasons=reasons.texts,
    )


class _Codes:
    """Numbers texts as they come; "" is NO_CODE."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {"": NO_CODE}

    def of(self, text: str) -> int:
        return self._codes.setdefault(text, len(self._codes) - 1)

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(self._codes)[1:]


def _longest(call: Int32, length: Int64, rows: Int32, count: int) -> Int32:
    """int32[k]: the device event of each call that takes longest; its name tells what the call ran as."""
    order = np.lexsort((length, call))
    main = np.full(count, NO_CODE, np.int32)
    main[call[order]] = rows[order]  # the last write wins
    return main


_KEYS = ("Input type", "Input Strides", "Concrete Inputs")


def _signatures(trace: Trace, calls: Int32, main: Int32) -> tuple[Int32, Int64]:
    """(int32[k] signature of each call, int64[s] position of one call of each)."""
    names = trace.events.name
    signature, size = np.zeros(len(calls), np.int64), 1
    for codes in (
        names[calls],
        _dims(trace, calls)[0],
        *(trace.arg_codes(key, calls)[0] for key in _KEYS),
        names[main],
    ):
        key = signature * (int(codes.max(initial=0)) + 2) + codes + 1
        signature, size = _dense(key)
    first = np.zeros(size, np.int64)
    first[signature[::-1]] = np.arange(len(calls))[::-1]
    return signature.astype(np.int32), first


def _dense(key: Int64) -> tuple[Int64, int]:
    """(codes without gaps, how many)."""
    top = int(key.max(initial=0)) + 1
    if top > 8 * len(key) + 1024:
        values, codes = np.unique(key, return_inverse=True)
        return codes.reshape(-1), len(values)
    seen = np.zeros(top, np.bool_)  # a table is several times faster than sorting
    seen[key] = True
    return (np.cumsum(seen) - 1)[key], int(seen.sum())


def _dims(trace: Trace, rows: Int32) -> tuple[Int32, list[str]]:
    """Input shapes in either spelling of their key."""
    codes, texts = trace.arg_codes("Input Dims", rows)
    older, older_texts = trace.arg_codes("Input dims", rows)
    both = np.where(codes >= 0, codes, np.where(older >= 0, older + len(texts), NO_CODE))
    return both.astype(np.int32), [*texts, *older_texts]


def cost_of(trace: Trace, row: int, kernel: int) -> Cost:
    """The cost of one call that runs as `kernel`, both rows of the trace; unknown with its reason."""
    name = _name(trace, row)
    model = model_in(trace, name)
    if model is None:
        return Cost(None, None, reason=NOT_MODELED)
    rows = np.array([row], np.int32)
    columns = [_dims(trace, rows), *(trace.arg_codes(key, rows) for key in _KEYS)]
    texts = [texts[codes[0]] if codes[0] >= 0 else None for codes, texts in columns]
    try:
        return model.cost(read_call(name, texts, _name(trace, kernel)))
    except Unknown as unknown:
        return Cost(None, None, unit="matrix" if model.family == "matrix" else None, reason=str(unknown))


def _name(trace: Trace, row: int) -> str:
    code = int(trace.events.name[row])
    return trace.strings[code] if code >= 0 else ""


def _copies(trace: Trace, own: Owners, rows: Int32, call: Int32) -> tuple[Float64, Bool]:
    """(float64[k] bytes of calls that copy engines do alone, NaN of others; bool[k] they cross to the host)."""
    count = len(own.calls)
    kind = event_kinds(trace)[rows]
    engine = (kind == Kind.MEMCPY) | (kind == Kind.MEMSET)
    moved = trace.arg_float("bytes", rows)
    host = _names(trace, rows, ("HtoD", "DtoH", "Host", "Pageable", "Pinned"))
    twice = (kind == Kind.MEMCPY) & ~host  # reads here and writes here
    only = np.ones(count, np.bool_)
    only[call[~engine | np.isnan(moved)]] = False
    sums = np.bincount(call, np.where(engine, np.nan_to_num(moved) * (1 + twice), 0.0), minlength=count)
    crosses = np.zeros(count, np.bool_)
    crosses[call[host & engine]] = True
    return np.where(only, sums, np.nan), crosses & only


def _names(trace: Trace, rows: Int32, words: tuple[str, ...]) -> Bool:
    mask: Bool = name_mask(trace.strings, lambda text: any(word in text for word in words))[
        trace.events.name[rows]
    ]
    return mask


def _recorded(
    trace: Trace, calls: Int32, flops: Float64, needed: Float64, moved: Float64
) -> tuple[Float64, Float64, Float64, Bool]:
    """What the compiler wrote beside a kernel (`kernel_flop`, `kernel_num_gb`) wins over the model."""
    given, size = trace.arg_float("kernel_flop", calls), 1e9 * trace.arg_float("kernel_num_gb", calls)
    given, size = (np.where(values > 0, values, np.nan) for values in (given, size))
    has = ~np.isnan(given)
    return (
        np.where(has, given, flops),
        np.where(has, given, needed),
        np.where(np.isnan(size), moved, size),
        has | ~np.isnan(size),
    )
