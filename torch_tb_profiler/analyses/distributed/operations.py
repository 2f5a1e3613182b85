"""The communication operations of one rank: as a table, and packed into 60 bytes each for the cache.

`operation_table` adds to the recorded operations what the comparison of ranks needs: the step, the exposed time,
the bytes that cross the link, and how long the computation stalled for the operation:

    compute   |== backward ==|.................|== optimizer ==
    nccl         |------ all_reduce ----------|
                             |<--- stall ---->|

`pack_operations` stores what operations have in common once, as a kind, since they mostly differ in numbers and
times:

    kinds   0: all_reduce of 4 MB in group 2 ...        rows   0  step 3  number 17  start ...  latency ...
            1: all_gather ...                                  1  step 3  number 18  start ...  latency ...
                                                               0  step 4  number 19  start ...  latency ...
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec
import numpy as np
import numpy.typing as npt

from torch_tb_profiler.base.intervals import Intervals, OwnedIntervals, covered_time, merge, subtract
from torch_tb_profiler.model.calls.links import device_launches
from torch_tb_profiler.model.communication.collectives import Collectives
from torch_tb_profiler.model.communication.events import ALL_TO_ALL, is_communication_call, is_communication_kernel
from torch_tb_profiler.model.devices import device_ids
from torch_tb_profiler.model.kinds import Kind, event_ends, event_intervals, rows_of_kind
from torch_tb_profiler.model.steps import Steps
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Float64, Int32, Int64, Trace

OPERATION: np.dtype[np.void] = np.dtype(
    [
        ("group", "<i4"), ("step", "<i4"), ("collective", "<i4"), ("backend", "<i4"), ("dtype", "<i4"),
        ("timing", "i1"), ("sequence", "<i8"), ("source", "<i8"), ("target", "<i8"),
        ("issue", "<i8"), ("start", "<i8"), ("end", "<i8"), ("latency", "<i8"), ("exposed", "<i8"),
        ("stall", "<i8"), ("bytes_in", "<i8"), ("bytes_out", "<i8"), ("message", "<i8"), ("bus", "<f8"),
        ("window", "<i8"), ("computed", "<i8"), ("held", "<i8"),
    ]
)  # fmt: skip
"""One communication operation: the fields of `model.communication.collectives.Collectives`, and in addition

step       index among the summary's steps of the step in which the host issued it, NO_CODE outside of all steps
latency    ns in which it runs, and exposed: ns of that not overlapped with computation; ABSENT without timing
stall      ns before its end in which the computation waited for it, 0 if it did not wait
message    bytes that bandwidth refers to, and bus: bytes that cross the slowest link by NCCL's factors (NaN:
           unknown)
window     ns from the start of the rank's previous operation (for the first: from the start of the first step) to
           its own start; ABSENT without timing
computed   ns of the window in which the rank computes
held       ns before its start from which on it could have started at the latest: the host had issued it, and all
           kernels launched before it had ended; 0 without recorded launches
"""

Operations = npt.NDArray[np.void]
"""An array of OPERATION."""

_END_LAG_DIVISOR = 20
"""Without a GPU, a communication thread may record the end of an operation later than the waiting thread resumes:
by at most the operation's duration divided by this."""


def operation_table(trace: Trace, operations: Collectives, spans: Steps, computation: Intervals) -> Operations:
    """Return the recorded `operations` of a rank as an array of OPERATION."""
    table = np.zeros(len(operations), OPERATION)
    recorded = (
        "group", "collective", "backend", "dtype", "timing", "sequence", "source", "target",
        "issue", "start", "end", "bytes_in", "bytes_out",
    )  # fmt: skip
    for name in recorded:
        table[name] = getattr(operations, name)
    table["step"] = _find_step_indices(operations, spans)
    timed = operations.start != ABSENT
    latency = operations.parts.totals(len(operations))
    exposed = latency - overlapped_times(operations.parts, computation, len(operations))
    table["latency"] = np.where(timed, latency, ABSENT)
    table["exposed"] = np.where(timed, exposed, ABSENT)
    table["stall"] = computation_stalls(trace, operations, computation)
    table["message"], table["bus"] = _compute_message_sizes(operations)
    rows, starts, ends_ = operation_windows(operations, spans)
    table["window"] = ABSENT
    table["window"][rows] = ends_ - starts
    computed = np.zeros(len(operations), np.int64)
    computed[rows] = covered_time(computation, starts, ends_)
    table["computed"] = computed
    table["held"] = held_times(trace, operations)
    return table


def held_times(trace: Trace, operations: Collectives) -> Int64:
    """Return int64[k], the ns that each operation waited for nothing but its stream at least; 0 if unknown.

    A back end makes its stream wait for the kernels that its caller launched before. They may be on any of the
    streams that compute, so when the last of all of them ends is the latest time at which its data is ready.
    """
    rows, launch = device_launches(trace)
    computes = np.isin(rows, rows_of_kind(trace, Kind.KERNEL)) & ~is_communication_kernel(trace)[rows]
    if not computes.any():
        return np.zeros(len(operations), np.int64)
    # What has no launch was launched before the recording began, or at an unknown time.
    launched = np.where(launch >= 0, trace.events.start[launch], trace.events.start.min())[computes]
    ended = event_ends(trace)[rows[computes]]
    order = np.argsort(launched, kind="stable")
    last_end = np.append(0, np.maximum.accumulate(ended[order]))
    before = np.searchsorted(launched[order], operations.issue, "left")
    # One launch of a graph starts operations and kernels, in an order that isn't recorded.
    alone = np.searchsorted(launched[order], operations.issue, "right") == before
    known = (operations.start != ABSENT) & (operations.issue != ABSENT) & alone
    ready = np.maximum(last_end[before], operations.issue)
    return np.where(known, np.maximum(operations.start - ready, 0), 0)


def overlapped_times(parts: OwnedIntervals, computation: Intervals, count: int) -> Int64:
    """Return int64[count], the ns of each owner that `computation` overlaps."""
    overlapped = np.zeros(count, np.int64)
    np.add.at(overlapped, parts.owner, covered_time(computation, parts.starts, parts.ends))
    return overlapped


def operation_windows(operations: Collectives, spans: Steps) -> tuple[Int64, Int64, Int64]:
    """Return (rows, starts, ends) of the windows before all operations with a time.

    A window reaches from the start of the previous operation to the start of the operation itself.
    """
    rows = np.flatnonzero(operations.start != ABSENT)
    end = operations.start[rows]
    start = np.append(spans.starts.min(initial=int(end[0])) if len(rows) else [], end[:-1]).astype(np.int64)
    return rows, np.minimum(start, end), end


def _find_step_indices(operations: Collectives, spans: Steps) -> Int64:
    """Return the step in which the host issued each operation or, if that is not recorded, in which it ran."""
    issued = operations.issue != ABSENT
    on_host = _find_containing_step(operations.issue, spans.host_starts, spans.host_ends)
    return np.where(issued, on_host, _find_containing_step(operations.start, spans.starts, spans.ends))


def _find_containing_step(times: Int64, starts: Int64, ends_: Int64) -> Int64:
    if len(starts) == 0:
        return np.full(len(times), NO_CODE)
    index = np.searchsorted(starts, times, "right") - 1
    return np.where((index >= 0) & (times <= ends_[index]), index, NO_CODE)


def _compute_message_sizes(operations: Collectives) -> tuple[Int64, Float64]:
    """Return (message bytes, bytes over the slowest link) by NCCL's conventions; ABSENT and NaN where unknown.

    https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
    """
    sizes = np.array([group.size or 0 for group in operations.groups] or [0], np.float64)[operations.group]
    names = np.array([*operations.names, ""])[operations.collective] if len(operations) else np.empty(0, "U1")
    bytes_in, bytes_out = operations.bytes_in, operations.bytes_out
    by_size = np.where((bytes_in != ABSENT) & (sizes > 0), bytes_in * sizes.astype(np.int64), ABSENT)
    gathered = np.where(bytes_out != ABSENT, bytes_out, by_size)
    sent = np.where(names == "recv", np.maximum(bytes_in, bytes_out), bytes_in)
    # The message of a gather is what the root receives, which the other ranks do not record.
    message = np.where(names == "all_gather", gathered, np.where(names == "gather", by_size, sent))
    message = np.where((names == "barrier") | (message < 0), ABSENT, message)
    bus = np.where(message == ABSENT, np.nan, message * _compute_bus_factors(names, sizes))
    return message, np.where(operations.egress_bytes != ABSENT, operations.egress_bytes, bus)


def _compute_bus_factors(names: npt.NDArray[np.str_], sizes: Float64) -> Float64:
    """Return the ratio of bytes over the slowest link to message bytes, NaN where unknown."""
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.where(sizes > 0, (sizes - 1) / sizes, np.nan)
    factors = np.full(len(names), np.nan)
    for collectives, value in (
        (("all_reduce",), 2 * spread),
        (("all_gather", "reduce_scatter", "gather", "scatter", *ALL_TO_ALL), spread),
        (("broadcast", "reduce", "send", "recv"), np.ones(len(names))),
    ):
        which = np.isin(names, collectives)
        factors[which] = value[which]
    return factors


def computation_stalls(trace: Trace, operations: Collectives, computation: Intervals) -> Int64:
    """Return int64[k], the ns that the computation waited for the end of each operation; 0 where it did not wait.

    Communication that no computation overlaps, up to its end, stalled the computation. If a kernel starts before
    the communication ends, the device was idle for another reason. Without a GPU the host's operators are the
    computation. A process may compute on several devices: what one of them does is no sign that another, on which
    the operation runs, goes on.
    """
    stall = np.zeros(len(operations), np.int64)
    kernels = rows_of_kind(trace, Kind.KERNEL)
    kernels = kernels[~is_communication_kernel(trace)[kernels]]
    computing = device_ids(trace)[kernels]
    device = device_ids(trace)[operations.event] if len(operations) else stall
    several = len(np.unique(computing)) > 1
    for number in np.unique(device).tolist() if several else []:
        # An operation on no device that computes, such as one of the host, is for all of them.
        on_it = computing == number
        own = event_intervals(trace, kernels[on_it]) if on_it.any() else computation
        stall += _measure_stalls(trace, operations, device == number, own)
    return (
        stall if several else _measure_stalls(trace, operations, np.ones(len(operations), np.bool_), computation)
    )


def _measure_stalls(trace: Trace, operations: Collectives, counted: Bool, computation: Intervals) -> Int64:
    """Return int64[k], the ns that this computation waited for each operation of `counted`; 0 for the others."""
    timed = counted & (operations.start != ABSENT)
    end = operations.end
    lag = np.zeros(len(timed), np.int64)
    if not len(rows_of_kind(trace, Kind.KERNEL)):
        rows = rows_of_kind(trace, Kind.CPU_OP)
        rows = rows[~is_communication_call(trace)[rows]]
        computation = event_intervals(trace, rows)
        lag = np.where(timed, end - operations.start, 0) // _END_LAG_DIVISOR
    mine = counted[operations.parts.owner]
    bare = subtract(merge(operations.parts.starts[mine], operations.parts.ends[mine]), computation)
    first = np.searchsorted(bare.ends, end - lag, "left")
    last = np.searchsorted(bare.ends, end, "right")
    stalled = np.flatnonzero(timed & (first < last))
    stall = np.zeros(len(timed), np.int64)
    matched: set[int] = set()
    for row in stalled.tolist():
        reach = slice(int(first[row]), int(last[row]))
        longest = reach.start + int(np.argmax(bare.ends[reach] - bare.starts[reach]))
        if longest not in matched:  # a stall counts once where several operations end together
            matched.add(longest)
            stall[row] = end[row] - bare.starts[longest]
    return stall


# ---- packed ---------------------------------------------------------------------------------------------

_KIND_FIELDS = (
    "group", "collective", "backend", "dtype", "timing", "source", "target",
    "bytes_in", "bytes_out", "message", "bus",
)  # fmt: skip
_COPIED_FIELDS = ("step", "sequence", "issue", "start")
_DURATION_FIELDS: tuple[str, ...] = ("end", "latency", "exposed", "stall", "window", "computed", "held")
"""Fields stored as durations, `end` as ns since the start; those of untimed operations are stored as 0."""


def _build_packed_dtype(duration: str) -> np.dtype[np.void]:
    copied = [(name, OPERATION[name].str) for name in _COPIED_FIELDS]
    return np.dtype([("kind", "<u4"), *copied, *((name, duration) for name in _DURATION_FIELDS)])


OPERATION_KIND = np.dtype([(name, OPERATION[name].str) for name in _KIND_FIELDS])
PACKED_ROW, WIDE_PACKED_ROW = _build_packed_dtype("<u4"), _build_packed_dtype("<i8")

_KIND_CODE, _NAME_CODES = struct.Struct("<I"), struct.Struct("<iii")
"""The first fields of a packed row, and of a kind: group, collective, and back end."""

_READ_ON_DEMAND = ("sequence", "issue", "exposed", "stall", "window", "computed", "held")
"""Fields that PackedColumn reads."""

_ABSENT_WITHOUT_TIME = ("end", "latency", "exposed", "window")
"""Durations that are unknown of an operation without a time; the others are 0."""

_COMPARED = "a column is compared by its entries: column[:] == value"

_RANKS_PER_BATCH = 128
"""Ranks whose operations are unpacked at once, so that the data stays in the processor's cache."""


class PackedOperations(msgspec.Struct, frozen=True):
    """The operations of one rank as bytes.

    kinds  array of OPERATION_KIND: the distinct combinations of fields that operations share
    rows   array of PACKED_ROW, or of WIDE_PACKED_ROW if `wide`: a duration exceeds 4.29 s
    """

    kinds: Annotated[bytes, OPERATION_KIND]
    rows: Annotated[bytes, PACKED_ROW, WIDE_PACKED_ROW]
    wide: bool

    def __len__(self) -> int:
        return len(self.rows) // self._dtype.itemsize

    @property
    def _dtype(self) -> np.dtype[np.void]:
        return WIDE_PACKED_ROW if self.wide else PACKED_ROW

    def array(self) -> npt.NDArray[np.void]:
        """Return the packed rows (read-only)."""
        return np.frombuffer(self.rows, self._dtype)

    def name_codes(self, rows: Sequence[int]) -> list[tuple[int, int, int]]:
        """Return the (group, collective, backend) codes of the operations in `rows`."""
        size = self._dtype.itemsize
        kinds = [_KIND_CODE.unpack_from(self.rows, row * size)[0] for row in rows]
        return [_NAME_CODES.unpack_from(self.kinds, kind * OPERATION_KIND.itemsize) for kind in kinds]


def pack_operations(table: Operations) -> PackedOperations:
    """Pack an array of OPERATION without loss."""
    kinds = np.zeros(len(table), OPERATION_KIND)
    for name in _KIND_FIELDS:
        kinds[name] = table[name]
    # Comparing bytes makes NaN equal to itself.
    distinct, which = np.unique(kinds.view(np.dtype((np.void, OPERATION_KIND.itemsize))), return_inverse=True)
    rows = np.zeros(len(table), WIDE_PACKED_ROW)
    rows["kind"] = which.reshape(-1)
    for name in _COPIED_FIELDS:
        rows[name] = table[name]
    timed = table["start"] != ABSENT
    for name in _DURATION_FIELDS:
        rows[name][timed] = table[name][timed]
    rows["end"][timed] -= table["start"][timed]
    wide = any((rows[name] < 0).any() or (rows[name] >= 2**32).any() for name in _DURATION_FIELDS)
    return PackedOperations(distinct.tobytes(), (rows if wide else rows.astype(PACKED_ROW)).tobytes(), wide)


def unpack_operations(rank: PackedOperations) -> Operations:
    """Return the operations of one rank as an array of OPERATION."""
    concatenated = concatenate_operations([rank])
    table = np.empty(len(rank), OPERATION)
    for name in _KIND_FIELDS:
        table[name] = concatenated.kinds[name][concatenated.kind]
    for name, values in concatenated.columns.items():
        table[name] = values[:]
    return table


class PackedColumn:
    """A field of the operations of several ranks that is read from their rows each time it is indexed.

    For fields that few questions need: at 10,000 ranks with 600 operations each, a column takes 48 MB.
    """

    def __init__(self, ranks: Sequence[PackedOperations], name: str) -> None:
        self._ranks, self._name = ranks, name
        self._starts = np.cumsum([0, *map(len, ranks)])
        self.dtype: np.dtype[Any] = OPERATION[name].newbyteorder("=")

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, int | np.integer):
            rank = int(np.searchsorted(self._starts, rows, "right")) - 1
            row = self._ranks[rank].array()[int(rows) - int(self._starts[rank])]
            is_absent = self._name in _ABSENT_WITHOUT_TIME and row["start"] == ABSENT
            return self.dtype.type(ABSENT if is_absent else row[self._name])
        if isinstance(rows, np.ndarray) and len(rows) and rows.dtype != np.bool_:
            begin = int(rows.min())
            return self._values_between(begin, int(rows.max()) + 1)[rows - begin]
        return self._values_between(0, len(self))[rows]

    def _values_between(self, begin: int, end: int) -> npt.NDArray[Any]:
        """Return the values of the rows from `begin` to `end`."""
        column = np.empty(end - begin, self.dtype)
        first, last = (np.searchsorted(self._starts, [begin, end - 1], "right") - 1).tolist()
        done = 0
        for rank in range(first, last + 1, _RANKS_PER_BATCH):
            batch = _concatenate_rows(self._ranks[rank : min(rank + _RANKS_PER_BATCH, last + 1)])
            skipped = max(begin - int(self._starts[rank]), 0)
            rows = batch[skipped : skipped + end - begin - done]
            part = column[done : done + len(rows)]
            part[:] = rows[self._name]
            if self._name in _ABSENT_WITHOUT_TIME:
                part[rows["start"] == ABSENT] = ABSENT
            done += len(rows)
        return column

    def __eq__(self, other: object) -> bool:
        raise TypeError(_COMPARED)

    __hash__ = None  # type: ignore[assignment]


class SharedColumn:
    """A field that operations of one kind share: its value for each kind, and int32[k] the kind of each operation.

    As PackedColumn, it is put together each time it is indexed.
    """

    def __init__(self, values: npt.NDArray[Any], kind: Int32) -> None:
        self.values, self._kind = values, kind

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.values.dtype

    def __len__(self) -> int:
        return len(self._kind)

    def __getitem__(self, rows: Any) -> Any:
        return self.values[self._kind[rows]]

    def spread(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the entry of each operation, given one for each kind."""
        return values[self._kind]

    def collect(self, values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], Int64]:
        """Return what operations of each kind share, given an entry for each operation, and how many there are."""
        shared = np.zeros(len(self.values), values.dtype)
        shared[self._kind] = values
        return shared, np.bincount(self._kind, minlength=len(shared))

    def __eq__(self, other: object) -> bool:
        raise TypeError(_COMPARED)

    __hash__ = None  # type: ignore[assignment]


Column = npt.NDArray[Any] | PackedColumn | SharedColumn
"""A column whose entries `[rows]` are, and whose `[:]` is all of it."""


def select(column: Column, rows: Int64 | Bool) -> npt.NDArray[Any]:
    """Return the entries in ascending rows, or of those that are True: the column itself if these are all of them.

    In a job that runs well they are, and a copy takes as long as most questions about it.
    """
    everything = bool(rows.all()) if rows.dtype == np.bool_ else len(rows) == len(column)
    selected: npt.NDArray[Any] = column[:] if everything else column[rows]
    return selected


def map_kinds(function: Callable[..., npt.NDArray[Any]], *columns: Column) -> npt.NDArray[Any]:
    """Return what a function of single entries makes of columns; where all are shared, it sees each kind once."""
    shared = [column for column in columns if isinstance(column, SharedColumn)]
    if len(shared) == len(columns):
        return shared[0].spread(function(*(column.values for column in shared)))
    return function(*(column[:] for column in columns))


class OperationColumns(msgspec.Struct, frozen=True):
    """The operations of several ranks as columns of length k, one rank after the other.

    kinds        columns of OPERATION_KIND: the kinds of all ranks
    kind_starts  int64[ranks + 1]  where the kinds of each rank start
    kind         int32[k]  index into `kinds`
    columns      the other fields of OPERATION
    """

    kinds: dict[str, npt.NDArray[Any]]
    kind_starts: Int64
    kind: Int32
    columns: dict[str, npt.NDArray[Any] | PackedColumn]


def concatenate_operations(ranks: Sequence[PackedOperations]) -> OperationColumns:
    """Unpack the operations of several ranks into common columns."""
    counts = [len(rank) for rank in ranks]
    total = sum(counts)
    kind_starts = np.cumsum([0, *(len(rank.kinds) // OPERATION_KIND.itemsize for rank in ranks)])
    kind = np.empty(total, np.int32)
    fields = [name for name in (*_COPIED_FIELDS, *_DURATION_FIELDS) if name not in _READ_ON_DEMAND]
    columns = {name: np.empty(total, OPERATION[name].newbyteorder("=")) for name in fields}
    done = 0
    for first in range(0, len(ranks), _RANKS_PER_BATCH):
        batch = slice(first, first + _RANKS_PER_BATCH)
        rows = _concatenate_rows(ranks[batch])
        target = slice(done, done + len(rows))
        kind[target] = rows["kind"]
        kind[target] += np.repeat(kind_starts[:-1][batch], counts[batch]).astype(np.int32)
        for name in fields:
            columns[name][target] = rows[name]
        done = target.stop
    untimed = np.flatnonzero(columns["start"] == ABSENT)
    columns["end"] += columns["start"]
    for name in fields:
        if name in _ABSENT_WITHOUT_TIME:
            columns[name][untimed] = ABSENT
    packed_kinds = np.frombuffer(b"".join([rank.kinds for rank in ranks]), OPERATION_KIND)
    kinds = {name: packed_kinds[name].astype(OPERATION_KIND[name].newbyteorder("=")) for name in _KIND_FIELDS}
    on_demand = {name: PackedColumn(ranks, name) for name in _READ_ON_DEMAND}
    return OperationColumns(kinds, kind_starts, kind, {**columns, **on_demand})


def _concatenate_rows(ranks: Sequence[PackedOperations]) -> npt.NDArray[np.void]:
    """Return the rows as PACKED_ROW if no rank is wide, else as WIDE_PACKED_ROW."""
    if not any(rank.wide for rank in ranks):
        return np.frombuffer(b"".join([rank.rows for rank in ranks]), PACKED_ROW)
    return np.concatenate([rank.array().astype(WIDE_PACKED_ROW) for rank in ranks])
