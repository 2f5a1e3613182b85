"""A trace as columns.

One row per object of `traceEvents`, in file order; nothing is dropped. Names, categories, and texts are
interned: a column holds codes into a table of texts. Times are int64 nanoseconds since the trace's start and never
pass through float64.

    phase  category  name           thread  start   duration
    X      cpu_op    aten::empty    0         200        40
    X      kernel    void gemm<..>  1        1200       900
    i      -         [memory]       0         215    ABSENT

The arguments of the events are sparse columns by key (`Trace.args`), as most keys belong to one category.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from torch_tb_profiler.base.compiled import column_functions
from torch_tb_profiler.base.memo import Memo
from torch_tb_profiler.model.hardware_catalog import EMPTY_CATALOG, HardwareCatalog
from torch_tb_profiler.model.health import HealthNote
from torch_tb_profiler.model.origin_records import NO_RECORDS, OriginRecords

if TYPE_CHECKING:
    from torch_tb_profiler.model.snapshots import RecordedSnapshot

Int8 = npt.NDArray[np.int8]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]

ABSENT = np.iinfo(np.int64).min
"""An int64 cell without a value (times, ids, integer arguments)."""

NO_CODE = -1
"""An int32 code or row number that points nowhere."""

FIRST_TEXT_ID = -(2**62)
"""The first number that stands for an id that is a text."""

MAX_RECORDING_NS = 7 * 24 * 3600 * 10**9
"""A week in ns. No recording lasts longer, so times further away are damage."""

_BEFORE_PROFILERS_NS = 1_483_228_800 * 10**9
"""The year 2017 in ns since the epoch. Times since boot are smaller, times since the epoch are larger."""

ArgKind = Literal["int", "float", "text", "json"]

ClockKind = Literal["epoch", "boot", "iteration", "local"]
"""What a trace's times count from.

epoch      the Unix epoch; all processes of a machine share this clock
boot       the machine's boot; shared as well
iteration  the start of each iteration; the time between iterations is unknown, so they are laid end to end
local      the local time of day, in a time zone that the file doesn't name
"""

PYTORCH = "PyTorch"
ROCPROF = "rocprofv3"
COMPOSER = "Composer"
AORTA = "AORTA"


class Events(msgspec.Struct, frozen=True, eq=False):
    """Columns of equal length n, one row per event in file order.

    phase      uint8   ASCII code of "ph" (0 if missing)
    category   int32   code into Trace.strings, NO_CODE if the event has none
    name       int32   code into Trace.strings, NO_CODE if the event has none
    thread     int32   code into Trace.threads (a distinct pair of "pid" and "tid")
    start      int64   ns since the trace's start, ABSENT if "ts" is missing or no number
    duration   int64   ns; of "X" events and of matched "B" events (end - begin); may be negative in a
                       damaged file; ABSENT if unknown
    id         int64   "id" of flow and async events, ABSENT if none; an id that is text has a number of its
                       own: FIRST_TEXT_ID + index into Trace.text_ids
    """

    phase: npt.NDArray[np.uint8]
    category: Int32
    name: Int32
    thread: Int32
    start: Int64
    duration: Int64
    id: Int64

    def __len__(self) -> int:
        return len(self.phase)


class Thread(msgspec.Struct, frozen=True):
    """A distinct (pid, tid) pair of the file, spelled as in the file (int, str, or None)."""

    pid: int | str | None
    tid: int | str | None

    @property
    def label(self) -> str:
        """Return `pid/tid`, the form of the views' `thread` parameter."""
        return f"{self.pid}/{self.tid}"


class ArgColumn(msgspec.Struct, frozen=True):
    """The values of one argument key.

    rows    int32, ascending, the events that carry the key
    values  int64 or float64 by `kind`; for "text" and "json" int32 codes into `dictionary`

    "json" holds the raw JSON of lists and objects, and of every value where kinds are mixed.
    """

    kind: ArgKind
    rows: Int32
    values: npt.NDArray[Any]
    dictionary: Sequence[str] = ()


class Trace(msgspec.Struct, frozen=True, eq=False):
    """Everything that one file, or one rank of a merged file, contains.

    trace_start_ns  what `Events.start` counts from, in the file's own clock (ts x 1000)
    base_ns         `baseTimeNanoseconds`, 0 if absent; epoch ns = base_ns + trace_start_ns + start
    metadata        the top-level keys beside `traceEvents`, decoded
    catalog         the user's own devices and operator models; not from the file
    producer        the profiler that wrote the file
    clock           what its times count from
    recordings      first row of each recording if the file holds several in a row; () if it holds one
    merged          True for a rank of a merged file, whose ranks are on one clock already
    origin_records  what files beside it say about the origin of its kernels
    snapshot        the CUDA memory snapshot that the file is; it has no events then
    """

    events: Events
    strings: Sequence[str]
    threads: Sequence[Thread]
    text_ids: Sequence[str]
    args: Mapping[str, ArgColumn]
    metadata: Mapping[str, Any]
    trace_start_ns: int
    base_ns: int
    health: tuple[HealthNote, ...] = ()
    catalog: HardwareCatalog = EMPTY_CATALOG
    producer: str = PYTORCH
    clock: ClockKind = "epoch"
    recordings: tuple[int, ...] = ()
    merged: bool = False
    origin_records: OriginRecords = NO_RECORDS
    snapshot: RecordedSnapshot | None = None
    _memo: Memo = msgspec.field(default_factory=Memo)

    def __len__(self) -> int:
        return len(self.events)

    @property
    def wall_start_ns(self) -> int | None:
        """Return the trace's start in ns since the epoch (UTC), or None if its clock isn't wall time."""
        start = self.base_ns + self.trace_start_ns
        return start if self.clock == "epoch" and start >= _BEFORE_PROFILERS_NS else None

    def arg_int(self, key: str, rows: Int32 | None = None) -> Int64:
        """Return the integer argument `key` of all events (int64[n]) or of `rows` (int64[k]), or ABSENT."""
        result = np.full(len(self) if rows is None else len(rows), ABSENT, np.int64)
        column = self.args.get(key)
        if column is None:
            return result
        if column.kind == "int":
            _fill(result, column, rows)
            return result
        where, values = _select_cells(column, rows)
        if column.kind == "float":
            finite = np.isfinite(values)
            result[where[finite]] = values[finite].astype(np.int64)
        elif column.dictionary:
            result[where] = np.array([_parse_int_or_absent(text) for text in column.dictionary], np.int64)[values]
        return result

    def arg_float(self, key: str, rows: Int32 | None = None) -> Float64:
        """Return the numeric argument `key` of all events (float64[n]) or of `rows` (float64[k]), or NaN."""
        result = np.full(len(self) if rows is None else len(rows), np.nan)
        column = self.args.get(key)
        if column is None:
            return result
        if column.kind == "float":
            _fill(result, column, rows)
            return result
        where, values = _select_cells(column, rows)
        if column.kind == "int":
            result[where] = values
        elif column.dictionary:
            result[where] = np.array([_parse_float_or_nan(text) for text in column.dictionary])[values]
        return result

    def arg_codes(self, key: str, rows: Int32 | None = None) -> tuple[Int32, Sequence[str]]:
        """Return the argument `key` of all events (int32[n]) or of `rows` (int32[k]) as codes, and their texts.

        Events without it have NO_CODE. JSON is raw (`[32, 64]`), texts have no quotes, numbers are decimal.
        """
        result = np.full(len(self) if rows is None else len(rows), NO_CODE, np.int32)
        column = self.args.get(key)
        if column is None:
            return result, ()
        if column.kind in ("text", "json"):
            _fill(result, column, rows)
            return result, column.dictionary
        where, values = _select_cells(column, rows)
        distinct, codes = np.unique(values, return_inverse=True)
        result[where] = codes
        return result, [str(value) for value in distinct.tolist()]


def _select_cells(column: ArgColumn, rows: Int32 | None) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the positions among `rows` (None: all events) that have an argument, and their values."""
    if rows is None:
        return column.rows, column.values
    if functions := column_functions(len(rows)):
        place = np.full(len(rows), NO_CODE, np.int32)
        functions.pick(column.rows, np.arange(len(column.rows), dtype=np.int32), rows, place)
        found = np.flatnonzero(place >= 0)
        return found, column.values.take(place.take(found))
    cell = np.searchsorted(column.rows, rows)
    where = np.flatnonzero(np.take(column.rows, cell, mode="clip") == rows) if len(column.rows) else cell[:0]
    return where, column.values[cell[where]]


def _fill(result: npt.NDArray[Any], column: ArgColumn, rows: Int32 | None) -> None:
    """Write the values of an argument where `rows` (None: all events) have one."""
    functions = None if rows is None else column_functions(len(rows))
    if functions is None or rows is None or column.values.dtype != result.dtype:
        where, values = _select_cells(column, rows)
        result[where] = values
    else:
        functions.pick(column.rows, column.values, rows, result)


Recordings = Sequence[Trace]
"""One or more recordings; where only one can be shown (memory, batch sizes) it is the first."""


class TracePair(msgspec.Struct, frozen=True):
    """The recordings that Diff compares: base and candidate.

    one_run  True if all are recordings of one worker of one run, hence of one program
    """

    base: Recordings
    candidate: Recordings
    one_run: bool = False


def name_mask(
    texts: Sequence[str], predicate: Callable[[str], object], among: Int32 | Int64 | None = None
) -> Bool:
    """Return for which of the texts `predicate` is true, bool[texts + 1]; the last cell is False, for NO_CODE.

    name_mask(trace.strings, is_step)[trace.events.name]      bool[n]: events with the name of a step

    Only the codes `among`, int[k], are tested if given: most names of a trace belong to other events.
    """
    if among is None:
        return np.array([*map(bool, map(predicate, texts)), False], np.bool_)
    mask = np.zeros(len(texts) + 1, np.bool_)
    for code in distinct_codes(among):
        mask[code] = bool(predicate(texts[code]))
    return mask


def rows_mask(trace: Trace, rows: Int32 | Int64) -> Bool:
    """Return which events these rows are, bool[n]: quicker to look up other rows in than `np.isin`."""
    mask = np.zeros(len(trace), np.bool_)
    mask[rows] = True
    return mask


def distinct_codes(codes: Int32 | Int64) -> list[int]:
    """Return the codes that occur, ascending, without NO_CODE."""
    highest, functions = int(codes.max(initial=0)), column_functions(len(codes))
    if functions is not None and codes.dtype == np.int32:
        codes_seen: list[int] = np.flatnonzero(functions.mark(codes, highest + 1)).tolist()
        return codes_seen
    seen = np.zeros(highest + 2, np.bool_)  # the last cell is that of NO_CODE
    seen[codes] = True
    codes_seen = np.flatnonzero(seen[:-1]).tolist()
    return codes_seen


def _parse_int_or_absent(text: str) -> int:
    """Parse an integer ("12", "-1", "0x1f"), wrapped to 64 bits as in C++."""
    try:
        value = int(text.strip('"'), 0)
    except ValueError:
        return int(ABSENT)
    return (value + 2**63) % 2**64 - 2**63


def _parse_float_or_nan(text: str) -> float:
    try:
        return float(text.strip('"'))
    except ValueError:
        return float("nan")
