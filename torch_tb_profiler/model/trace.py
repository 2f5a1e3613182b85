"""A trace as columns.

One row per object of `traceEvents`, in file order; nothing of the file is dropped. Names, categories
and texts are interned: a column holds codes, the table beside it the text. Times are int64
nanoseconds since the trace's start, so that no number ever passes through float64.

    phase  category  name           thread  start   duration
    X      cpu_op    aten::empty    0         200        40
    X      kernel    void gemm<..>  1        1200       900
    i      -         [memory]       0         215    ABSENT

The arguments of the events are sparse columns by key (`Trace.args`): most keys belong to one category.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from inspect import signature
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from torch_tb_profiler.base.memo import Memo
from torch_tb_profiler.model.catalog import EMPTY_CATALOG, Catalog
from torch_tb_profiler.model.health import HealthNote

Int8 = npt.NDArray[np.int8]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]

ABSENT = np.iinfo(np.int64).min
"""An int64 cell without a value (times, ids, integer args)."""

NO_CODE = -1
"""An int32 code or row number that points nowhere."""

FIRST_TEXT_ID = -(2**62)
"""Ids that are no integers are numbered from here upwards."""

MAX_RECORDING_NS = 7 * 24 * 3600 * 10**9
"""No recording lasts longer: times further away than this are damage."""

_BEFORE_PROFILERS_NS = 1_483_228_800 * 10**9
"""The year 2017: what counts from the epoch lies behind it, what counts since a machine booted before it."""

ArgKind = Literal["int", "float", "text", "json"]

ClockKind = Literal["epoch", "boot", "iteration", "local"]
"""epoch: a clock that the machine's processes share; boot: one that they share too, counting since the machine
booted; iteration: each iteration counts from its own start, so that the time between iterations is unknown and
they are laid end to end; local: the time of day somewhere, of a zone that the file does not say."""

PYTORCH = "PyTorch"
ROCPROF = "rocprofv3"
COMPOSER = "Composer"
AORTA = "AORTA"


@dataclass(frozen=True, slots=True)
class Events:
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


@dataclass(frozen=True, slots=True)
class Thread:
    """A distinct (pid, tid) pair of the file; both as the file spells them (int, str or None)."""

    pid: int | str | None
    tid: int | str | None

    @property
    def label(self) -> str:
        """`pid/tid`, as the `thread` parameter of the views takes it."""
        return f"{self.pid}/{self.tid}"


@dataclass(frozen=True, slots=True)
class ArgColumn:
    """The values of one argument key.

    rows    int32, ascending, the events that carry the key
    values  int64 | float64 by `kind`; for "text" and "json" int32 codes into `dictionary`

    "json" holds the raw JSON text of lists, objects, and of any value where kinds are mixed.
    """

    kind: ArgKind
    rows: Int32
    values: npt.NDArray[Any]
    dictionary: Sequence[str] = ()


@dataclass(frozen=True)
class Trace:
    """Everything one file (or one rank of a merged file) says.

    trace_start_ns  what `Events.start` counts from, in the file's own clock (ts x 1000)
    base_ns         `baseTimeNanoseconds`, 0 if absent; epoch ns = base_ns + trace_start_ns + start
    metadata        the top-level keys beside `traceEvents`, decoded
    catalog         devices that the user describes, whose peaks figures may rest on; not of the file
    producer        what wrote the file
    clock           what its times count from
    recordings      rows where recordings begin that lie in the file one after the other; () if it holds one
    merged          it is one of the ranks of a file whose tool has brought them to one clock
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
    catalog: Catalog = EMPTY_CATALOG
    producer: str = PYTORCH
    clock: ClockKind = "epoch"
    recordings: tuple[int, ...] = ()
    merged: bool = False
    _memo: Memo = field(default_factory=Memo, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.events)

    @property
    def wall_start_ns(self) -> int | None:
        """ns since the epoch (UTC) at the trace's start; None where its clock is not known to be the wall's."""
        start = self.base_ns + self.trace_start_ns
        return start if self.clock == "epoch" and start >= _BEFORE_PROFILERS_NS else None

    def arg_int(self, key: str, rows: Int32 | None = None) -> Int64:
        """int64[n]: the integer argument `key`, ABSENT where an event has none; int64[k]: of `rows` (or -1)."""
        cells, result = (
            self._places(key, rows),
            np.full(len(self) if rows is None else len(rows), ABSENT, np.int64),
        )
        if cells is None:
            return result
        where, values, column = cells
        if column.kind == "int":
            result[where] = values
        elif column.kind == "float":
            finite = np.isfinite(values)
            result[where[finite]] = values[finite].astype(np.int64)
        elif column.dictionary:
            result[where] = np.array([_int_or_absent(text) for text in column.dictionary], np.int64)[values]
        return result

    def arg_float(self, key: str, rows: Int32 | None = None) -> Float64:
        """float64[n]: the numeric argument `key`, NaN where an event has none; float64[k]: of `rows`."""
        cells, result = self._places(key, rows), np.full(len(self) if rows is None else len(rows), np.nan)
        if cells is None:
            return result
        where, values, column = cells
        if column.kind in ("int", "float"):
            result[where] = values
        elif column.dictionary:
            result[where] = np.array([_float_or_nan(text) for text in column.dictionary])[values]
        return result

    def arg_codes(self, key: str, rows: Int32 | None = None) -> tuple[Int32, Sequence[str]]:
        """int32[n] codes and their texts for a text or JSON argument, NO_CODE where none; int32[k]: of `rows`.

        JSON texts are raw (`[32, 64]`); texts are the strings themselves, without quotes. A numeric
        column is spelled as decimal text.
        """
        cells, result = (
            self._places(key, rows),
            np.full(len(self) if rows is None else len(rows), NO_CODE, np.int32),
        )
        if cells is None:
            return result, ()
        where, values, column = cells
        if column.kind in ("text", "json"):
            result[where] = values
            return result, column.dictionary
        distinct, codes = np.unique(values, return_inverse=True)
        result[where] = codes
        return result, [str(value) for value in distinct.tolist()]

    def _places(self, key: str, rows: Int32 | None) -> tuple[Any, npt.NDArray[Any], ArgColumn] | None:
        """(positions among `rows` that have the argument, their values, its column)."""
        column = self.args.get(key)
        if column is None:
            return None
        if rows is None:
            return column.rows, column.values, column
        at = np.searchsorted(column.rows, rows)
        where = np.flatnonzero(np.take(column.rows, at, mode="clip") == rows) if len(column.rows) else at[:0]
        return where, column.values[at[where]], column


def name_mask(texts: Sequence[str], holds: Callable[[str], object], among: Int32 | Int64 | None = None) -> Bool:
    """bool[texts + 1]: for which of the texts it holds (is true of them); the last cell answers for NO_CODE.

    name_mask(trace.strings, is_step)[trace.events.name]      bool[n]: events with the name of a step

    among  int[k] codes; no others are asked: most names of a trace are of other events
    """
    if among is None:
        return np.array([*map(bool, map(holds, texts)), False], np.bool_)
    mask = np.zeros(len(texts) + 1, np.bool_)
    for code in distinct_codes(among):
        mask[code] = bool(holds(texts[code]))
    return mask


def distinct_codes(codes: Int32 | Int64) -> list[int]:
    """The codes that occur, ascending, without NO_CODE."""
    seen = np.zeros(int(codes.max(initial=0)) + 2, np.bool_)  # the last cell answers for NO_CODE
    seen[codes] = True
    codes_seen: list[int] = np.flatnonzero(seen[:-1]).tolist()
    return codes_seen


def _int_or_absent(text: str) -> int:
    """An integer spelled as text ("12", "-1", "0x1f"); wrapped to 64 bits as C++ would."""
    try:
        value = int(text.strip('"'), 0)
    except ValueError:
        return int(ABSENT)
    return (value + 2**63) % 2**64 - 2**63


def _float_or_nan(text: str) -> float:
    try:
        return float(text.strip('"'))
    except ValueError:
        return float("nan")


P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M", bound="Memoized")


class Memoized(Protocol):
    """An immutable value that keeps what was derived from it: a trace, the members of a run."""

    @property
    def _memo(self) -> Memo: ...


def derived(function: Callable[Concatenate[M, P], T]) -> Callable[Concatenate[M, P], T]:
    """Memoize a table derived from a trace next to the trace; the trace itself is immutable.

        @derived
        def lanes_of(trace: Trace, python: bool) -> Lanes: ...

    There is one table per combination of the further arguments, which must be hashable. Several requests may
    ask at once: the first computes, the others wait for it.
    """
    name, further = _table_name(function), signature(function).parameters
    defaults = [(each.name, each.default) for each in list(further.values())[1:]]

    @wraps(function)
    def memoized(trace: M, /, *args: P.args, **kwargs: P.kwargs) -> T:
        # What is left to its default is the same as what is given with that value.
        rest = (kwargs.get(each, default) for each, default in defaults[len(args) :])
        memo, key = trace._memo, (name, *args, *rest)
        if key not in memo:
            with memo.lock_of(key):
                if key not in memo:
                    memo[key] = function(trace, *args, **kwargs)
        return memo[key]  # type: ignore[no-any-return]

    return memoized


def seed_derived(trace: Memoized, table: Callable[..., T], *args: Hashable, value: T) -> None:
    """Have a derived table with these arguments answer what it was before, in another process; nothing if it has
    been derived meanwhile. All arguments are given, in order."""
    trace._memo.setdefault((_table_name(table), *args), value)


def _table_name(table: Any) -> str:
    return f"{table.__module__}.{table.__qualname__}"
