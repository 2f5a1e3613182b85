"""Loops over long columns, intervals, and the replay of a job of many ranks in C; `base/`, `model/trace.py` and
`analyses/distributed` use them where a session enables them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from torch_tb_profiler.analyses.distributed.compiled import ReplayFunctions
from torch_tb_profiler.base.compiled import ColumnFunctions, Numbers, Operation
from torch_tb_profiler.ingest.compiled import CompiledLibrary, is_allowed, is_enabled
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int32, Int64

if TYPE_CHECKING:
    from torch_tb_profiler.analyses.distributed.compiled import RecordedOperations, Replay, ReplayColumns

_SIZE, _POINTER = ctypes.c_size_t, ctypes.c_void_p
_OPERATIONS: tuple[Operation, ...] = ("union", "intersection", "difference")
"""How sets of intervals are combined, by their numbers in C."""

_LANES = 8
"""Scenarios that are replayed at once, as in native/job.c."""

_MIDDLE_VALUES = 5
"""Numbers in `Middle` of native/groups.h."""

_FIRST_SLOTS = 2**16
"""Slots for windows that are tried first, a power of two."""

LIBRARY = CompiledLibrary(
    "job",
    "job",
    11,
    {
        "job_abi": (ctypes.c_uint32,),
        "job_say_crash": (None, ctypes.c_char_p),
        "job_lowest": (ctypes.c_bool, _POINTER, _POINTER, _SIZE, _POINTER, _SIZE),
        "job_highest": (ctypes.c_bool, _POINTER, _POINTER, _SIZE, _POINTER, _SIZE),
        "job_dense": (ctypes.c_int64, _POINTER, _SIZE, _POINTER, _SIZE),
        "job_counts": (ctypes.c_bool, _POINTER, _SIZE, _POINTER, _SIZE),
        "job_ordinals": (ctypes.c_bool, _POINTER, _SIZE, _POINTER, _POINTER, _SIZE),
        "job_order": (None, _POINTER, _SIZE, _POINTER, _POINTER),
        "job_sums": (ctypes.c_bool, _POINTER, _POINTER, _SIZE, _POINTER, _SIZE),
        "job_first": (ctypes.c_bool, _POINTER, _SIZE, _POINTER, _SIZE),
        "job_changes": (ctypes.c_bool, _POINTER, _POINTER, _SIZE, _POINTER, _POINTER, _SIZE),
        "job_search": (None, _POINTER, _SIZE, _POINTER, _SIZE, ctypes.c_bool, _POINTER),
        "job_sort": (None, *(_POINTER, _POINTER, _SIZE, _POINTER, _SIZE, _POINTER, _POINTER, _SIZE)),
        "job_middles": (None, *(_POINTER, _POINTER, _SIZE, _POINTER, _SIZE, *[_POINTER] * 4)),
        "job_windows": (ctypes.c_int64, *[_POINTER] * 3, _SIZE, _SIZE, *[_POINTER] * 4, _SIZE, _POINTER, _POINTER),
        "job_mark": (None, _POINTER, _SIZE, _POINTER, _SIZE),
        "job_pick": (None, _POINTER, _POINTER, _SIZE, _SIZE, _POINTER, _SIZE, _POINTER),
        "job_spans": (ctypes.c_bool, _POINTER, _SIZE, _POINTER, _POINTER, _SIZE, _POINTER, _POINTER),
        "job_merge": (ctypes.c_int64, _POINTER, _POINTER, _SIZE, _POINTER, _POINTER),
        "job_combine": (
            *(_SIZE, ctypes.c_int, _POINTER, _POINTER, _SIZE, _POINTER, _POINTER, _SIZE, _POINTER, _POINTER),
        ),
        "job_covered": (None, _POINTER, _POINTER, _POINTER, _SIZE, _POINTER, _SIZE, _POINTER),
        "job_totals": (ctypes.c_bool, *(_POINTER, _POINTER, _POINTER, _SIZE, _POINTER, _POINTER, _POINTER)),
        "job_network": (None, _POINTER, _POINTER, _POINTER),
        "job_excess": (None, _POINTER, _POINTER, _POINTER, _SIZE, _POINTER),
        "job_saved": (ctypes.c_bool, _POINTER, _SIZE, _POINTER, _POINTER, _SIZE, _POINTER),
        "job_slots": (ctypes.c_int64, *[_POINTER] * 4),
        "job_replay": (None, _POINTER, _POINTER, _SIZE),
    },
)


class JobFunctions(NamedTuple):
    """The functions of the library: those for columns, and those that replay jobs."""

    columns: ColumnFunctions
    replay: ReplayFunctions


def job_functions(anywhere: bool = False) -> JobFunctions | None:
    """Return the functions of the library, or None if it is missing or not enabled in this process.

    anywhere  unless the user has turned it off, it is enabled in every process
    """
    library = _open_library() if is_enabled() or (anywhere and is_allowed()) else None
    if library is None:
        return None
    each = _Functions(library)
    columns = ColumnFunctions(
        lowest=each.lowest,
        highest=each.highest,
        dense=each.dense,
        ordinals=each.ordinals,
        order=each.order,
        search=each.search,
        sort=each.sort,
        middles=each.middles,
        others=each.others,
        windows=each.windows,
        sums=each.sums,
        first=each.first,
        changes=each.changes,
        mark=each.mark,
        pick=each.pick,
        spans=each.spans,
        merge=each.merge,
        combine=each.combine,
        covered=each.covered,
        totals=each.totals,
    )
    return JobFunctions(columns, ReplayFunctions(each.build_network, each.sum_excess, each.prepare_replay))


@cache
def _open_library() -> Any | None:
    return LIBRARY.load(Path(__file__).parent)


class _Functions:
    def __init__(self, library: Any) -> None:
        self._library = library

    def lowest(self, number: Numbers, values: Int64, count: int) -> Int64:
        return self._by_number(self._library.job_lowest, number, values, np.full(count, np.iinfo(np.int64).max))

    def highest(self, number: Numbers, values: Int64, count: int) -> Int64:
        return self._by_number(self._library.job_highest, number, values, np.full(count, np.iinfo(np.int64).min))

    def _by_number(self, function: Any, number: Numbers, values: Int64, results: Int64) -> Int64:
        values = _checked(values, np.int64, len(values))
        number = _checked(number, np.int64, len(values))
        columns = _address(number), _address(values), len(values), _address(results)
        _expect_among(function(*columns, len(results)), len(results))
        return results

    def dense(self, number: Int64, count: int) -> int:
        assert number.flags.c_contiguous and number.dtype == np.int64  # it is changed in place
        ranks = np.zeros(count, np.int64)
        distinct: int = self._library.job_dense(_address(number), len(number), _address(ranks), count)
        _expect_among(distinct >= 0, count)
        return distinct

    def _counts(self, number: Numbers, count: int) -> Int64:
        counts = np.zeros(count, np.int64)
        _expect_among(self._library.job_counts(_address(number), len(number), _address(counts), count), count)
        return counts

    def ordinals(self, number: Numbers, count: int) -> Int64:
        number = _checked(number, np.int64, len(number))
        counts, ordinals = np.zeros(count, np.int64), np.empty(len(number), np.int64)
        columns = _address(number), len(number), _address(counts), _address(ordinals)
        _expect_among(self._library.job_ordinals(*columns, count), count)
        return ordinals

    def order(self, number: Numbers, count: int) -> Int64:
        number = _checked(number, np.int64, len(number))
        counts, order = self._counts(number, count), np.empty(len(number), np.int64)
        begins = np.cumsum(counts) - counts
        self._library.job_order(_address(number), len(number), _address(begins), _address(order))
        return order

    def sort(self, number: Numbers, values: Int64, count: int) -> Int64:
        values = _checked(values, np.int64, len(values))
        number = _checked(number, np.int64, len(values))
        counts, order = self._counts(number, count), np.empty(len(number), np.int64)
        begins, largest = np.cumsum(counts) - counts, int(counts.max(initial=0))
        room = np.empty(4 * largest, np.int64)
        places = _address(order), _address(room), largest
        self._library.job_sort(*map(_address, (number, values)), len(number), _address(begins), count, *places)
        return order

    def middles(self, number: Numbers, values: Int64, count: int) -> Int64:
        return self._middles(number, values, count, None)

    def others(self, number: Numbers, values: Int64, count: int) -> tuple[Int64, Int64]:
        medians = np.empty(len(number), np.int64)
        return medians, self._middles(number, values, count, medians)

    def _middles(self, number: Numbers, values: Int64, count: int, others: Int64 | None) -> Int64:
        """Return the middle entries; `others`: a column to fill with the medians of the others."""
        values = _checked(values, np.int64, len(values))
        number = _checked(number, np.int64, len(values))
        counts = self._counts(number, count)
        begins, middle = np.cumsum(counts) - counts, np.empty(count, np.int64)
        room = np.empty(len(values), np.int64), np.empty((count, _MIDDLE_VALUES), np.int64)
        places = *map(_address, (*room, middle)), None if others is None else _address(others)
        self._library.job_middles(*map(_address, (number, values)), len(number), _address(begins), count, *places)
        return middle

    def windows(self, member: Int32, step: Int32, kind: Numbers, steps: int) -> tuple[Int64, Int64]:
        member, step, kind = (_checked(each, np.int32, len(member)) for each in (member, step, kind))
        if len(member) and (step.min() < NO_CODE or step.max() >= steps or member.min() < 0):
            raise ValueError(f"a rank or a step is not among the {steps} that there are")
        last, whose = np.empty(steps + 1, np.int32), np.empty(steps + 1, np.int32)
        number, capacity = np.empty(len(member), np.int64), _FIRST_SLOTS
        while True:  # few windows serve all ranks, unless these differ
            slots, windows = np.full(capacity, -1, np.int32), np.empty((capacity // 2, 2), np.int32)
            first = np.empty(capacity // 2, np.int64)
            columns = *map(_address, (member, step, kind)), len(member), steps, _address(last), _address(whose)
            count = self._library.job_windows(
                *columns, _address(slots), _address(windows), capacity, _address(first), _address(number)
            )
            if count >= 0:
                return number, first[:count].copy()
            capacity *= 8

    def sums(self, number: Numbers, values: Int64, count: int) -> Int64:
        return self._by_number(self._library.job_sums, number, values, np.zeros(count, np.int64))

    def first(self, number: Numbers, count: int) -> Int64:
        number = _checked(number, np.int64, len(number))
        first = np.full(count, -1, np.int64)
        _expect_among(self._library.job_first(_address(number), len(number), _address(first), count), count)
        return first

    def changes(self, number: Numbers, values: Int32, count: int) -> Int64:
        values = _checked(values, np.int32, len(values))
        number = _checked(number, np.int64, len(values))
        last, changes = np.empty(count, np.int32), np.zeros(count, np.int64)
        columns = _address(number), _address(values), len(values), _address(last), _address(changes)
        _expect_among(self._library.job_changes(*columns, count), count)
        return changes

    def search(self, ordered: Int64, values: Int64, right: bool) -> Int64:
        ordered, values = _checked(ordered, np.int64, len(ordered)), _checked(values, np.int64, len(values))
        places = np.empty(len(values), np.int64)
        self._library.job_search(
            _address(ordered), len(ordered), _address(values), len(values), right, _address(places)
        )
        return places

    def mark(self, codes: Numbers, count: int) -> Bool:
        codes, seen = _checked(codes, np.int32, len(codes)), np.zeros(count, np.bool_)
        self._library.job_mark(_address(codes), len(codes), _address(seen), count)
        return seen

    def pick(self, rows: Numbers, cells: npt.NDArray[Any], wanted: Numbers, picked: npt.NDArray[Any]) -> None:
        rows, wanted = _checked(rows, np.int32, len(rows)), _checked(wanted, np.int32, len(wanted))
        cells = _checked(cells, picked.dtype, len(rows))
        assert picked.flags.c_contiguous and picked.shape == wanted.shape and picked.itemsize in (4, 8)
        places = _address(rows), _address(cells), len(rows), picked.itemsize
        self._library.job_pick(*places, _address(wanted), len(wanted), _address(picked))

    def spans(self, rows: Numbers, start: Int64, duration: Int64) -> tuple[Int64, Int64] | None:
        start, duration = (_checked(each, np.int64, len(start)) for each in (start, duration))
        rows = _checked(rows, np.int32, len(rows))
        starts, ends = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
        columns = _address(start), _address(duration), len(start)
        known = self._library.job_spans(_address(rows), len(rows), *columns, _address(starts), _address(ends))
        return (starts, ends) if known else None

    def merge(self, starts: Int64, ends: Int64) -> tuple[Int64, Int64] | None:
        starts, ends = (_checked(each, np.int64, len(starts)) for each in (starts, ends))
        merged = _Room(len(starts))
        count = self._library.job_merge(_address(starts), _address(ends), len(starts), *merged.addresses)
        return None if count < 0 else merged.filled(count)

    def combine(self, how: Operation, one: tuple[Int64, Int64], other: tuple[Int64, Int64]) -> tuple[Int64, Int64]:
        combined, sides = _Room(len(one[0]) + len(other[0])), []
        for starts, ends in (one, other):
            sides += [_checked(each, np.int64, len(starts)) for each in (starts, ends)]
        sets = *map(_address, sides[:2]), len(sides[0]), *map(_address, sides[2:]), len(sides[2])
        return combined.filled(self._library.job_combine(_OPERATIONS.index(how), *sets, *combined.addresses))

    def covered(self, starts: Int64, ends: Int64, times: Int64) -> Int64:
        starts, ends = (_checked(each, np.int64, len(starts)) for each in (starts, ends))
        before = np.zeros(len(starts) + 1, np.int64)
        np.cumsum(ends - starts, out=before[1:])
        times, covered = _checked(times, np.int64, len(times)), np.empty(len(times), np.int64)
        columns = *map(_address, (starts, ends, before)), len(starts), _address(times), len(times)
        self._library.job_covered(*columns, _address(covered))
        return covered

    def totals(self, owner: Numbers, starts: Int64, ends: Int64, count: int) -> Int64 | None:
        starts, ends = (_checked(each, np.int64, len(starts)) for each in (starts, ends))
        owner = _check(_checked(owner, np.int64, len(starts)), count)
        last, reach = (np.full(count, np.iinfo(np.int64).min) for _ in range(2))
        totals = np.zeros(count, np.int64)
        columns = _address(owner), _address(starts), _address(ends), len(starts)
        ordered = self._library.job_totals(*columns, _address(last), _address(reach), _address(totals))
        return totals if ordered else None

    def build_network(self, operations: RecordedOperations) -> ReplayColumns:
        from torch_tb_profiler.session.native.network import build_network  # only jobs of many ranks need it

        return build_network(self._library, operations)

    def sum_excess(self, work: Int64, typical: Int64, counts: Int64, columns: ReplayColumns) -> list[Int64]:
        work, typical = (_checked(each, np.int64, len(work)) for each in (work, typical))
        bounds = np.zeros(len(counts) + 1, np.int64)
        np.cumsum(counts, out=bounds[1:])
        if counts.min(initial=0) < 0 or bounds[-1] != len(work):
            raise ValueError(f"the operations of the ranks are not the {len(work)} that there are")
        totals, found = np.empty(len(work) + 1, np.int64), []
        self._library.job_excess(*map(_address, (work, typical, bounds)), len(counts), _address(totals))
        for each in zip(columns.until, columns.since, strict=True):
            until, since = (_checked(column, np.int32, len(each[0])) for column in each)
            saved = np.empty(len(until), np.int64)
            places = _address(until), _address(since), len(until), _address(saved)
            if not self._library.job_saved(_address(totals), len(work), *places):
                raise ValueError(f"a moment is not among the {len(work)} operations that there are")
            found.append(saved)
        return found

    def prepare_replay(self, columns: ReplayColumns) -> Replay:
        return _JobInC(self._library, columns)


class _Room:
    """Memory for as many intervals as there may be in a result."""

    def __init__(self, most: int) -> None:
        self._starts, self._ends = np.empty(most, np.int64), np.empty(most, np.int64)
        self.addresses = _address(self._starts), _address(self._ends)

    def filled(self, count: int) -> tuple[Int64, Int64]:
        """Return the intervals that were written, in arrays of their size."""
        if count > len(self._starts) // 2:
            return self._starts[:count], self._ends[:count]
        return self._starts[:count].copy(), self._ends[:count].copy()


_SIZES = ("operations", "runs", "stalls", "levels", "ranks", "finals")
_COLUMNS = (
    *("bounds", "stall_bounds", "run_begins", "number", "previous", "slack", "gap", "waited", "last_arrival"),
    *("stall_run", "stall_length"),
)


_DTYPES = {"last_arrival": np.bool_, "previous": np.int32}
"""Types of columns that aren't int64."""


class _Job(ctypes.Structure):
    """`Job` of native/job.c."""

    _fields_ = (
        *((name, ctypes.c_uint64) for name in _SIZES),
        *((name, ctypes.c_void_p) for name in (*_COLUMNS, "slot")),
    )


class _Moments(ctypes.Structure):
    """`Moments` of native/job.c."""

    _fields_ = tuple((name, ctypes.c_void_p) for name in ("member", "stall", "saved"))


class _Scenarios(ctypes.Structure):
    """`Scenarios` of native/job.c: member, stall, and saved work of three kinds of moments, then the columns."""

    _fields_ = (
        *((f"{kind}_{name}", _POINTER) for kind in range(3) for name in ("member", "stall", "saved")),
        *((name, _POINTER) for name in ("typical", "saving", "earlier", "arrivals", "ends", "resumed")),
    )


class _JobInC:
    """A job whose columns are as C reads them, and name nothing that isn't there."""

    def __init__(self, library: Any, columns: ReplayColumns) -> None:
        operations, runs, stalls = len(columns.previous), len(columns.run_begins), len(columns.stall_run)
        levels, finals = len(columns.bounds) - 1, len(columns.member[2])
        lengths = (
            *(levels + 1, levels + 1, runs, runs, operations, operations, operations, operations, operations),
            *(stalls, stalls),
        )
        self._library, self._ranks, self._stalls, self._runs = library, columns.ranks, stalls, runs
        self._numbers = int(columns.number.max(initial=0)) + 1
        _check(columns.previous, runs + 1)  # before it becomes narrow
        self._kept = [
            _checked(getattr(columns, name), _DTYPES.get(name, np.int64), length)
            for name, length in zip(_COLUMNS, lengths, strict=True)
        ]
        moments = zip(columns.member, columns.stalls, (operations, stalls, finals), strict=True)
        self._moments = [
            (
                _checked(_check(member, columns.ranks), np.int32, length),
                _checked(_check(stall, stalls + 1), np.int32, length),
            )
            for member, stall, length in moments
        ]
        _check(columns.number, self._numbers)
        _check(columns.stall_run, runs)
        for bounds, count in ((columns.bounds, operations), (columns.stall_bounds, stalls)):
            if levels < 0 or bounds[0] != 0 or bounds[-1] != count or (np.diff(bounds) < 0).any():
                raise ValueError("the bounds of levels are not those of what is in them")
        starts = np.append(columns.run_begins, operations)
        if (runs or operations) and (starts[0] != 0 or (np.diff(starts) <= 0).any()):
            raise ValueError("the runs don't follow each other")
        sizes = operations, runs, stalls, levels, columns.ranks, finals
        self._job = _Job(*sizes, *map(_address, self._kept), None)
        slot, self._slots = self._find_slots()
        self._kept.append(slot[:-1])
        self._job.slot = _address(slot)
        if self._slots < stalls:
            self._moments = [(member, slot.take(stall)) for member, stall in self._moments]
        self._rooms: dict[int, list[list[Int64]]] = {}

    def _find_slots(self) -> tuple[Int32, int]:
        """Return (int32[stalls + 1] the row of each stall's times, the last for none; the rows before it).

        Only the last stalls of a rank are read again, so the rows of few of them serve all, and stay in the
        processor's cache.
        """
        ordinal, written = np.empty(self._stalls, np.int32), np.zeros(self._ranks, np.int32)
        moments = (_Moments * 3)(*(_Moments(_address(member), _address(stall)) for member, stall in self._moments))
        slots = self._library.job_slots(ctypes.byref(self._job), moments, _address(ordinal), _address(written))
        if not 0 < slots * self._ranks < self._stalls:
            return np.arange(self._stalls + 1, dtype=np.int32), self._stalls
        rows = slots * self._ranks
        slot = np.full(self._stalls + 1, rows, np.int32)
        slot[:-1] = self._moments[1][0] * np.int32(slots) + ordinal % slots
        return slot, rows

    def __call__(self, typical: Bool, saving: Int64 | None, saved: Sequence[Int64]) -> tuple[Int64, Int64]:
        lanes = typical.shape[1]
        if lanes > 1 and lanes % _LANES:  # batches of this many are several times as fast
            typical = _widen(typical, _LANES - lanes % _LANES)
            saving = None if saving is None else _widen(saving, _LANES - lanes % _LANES)
        parts = [
            self._replay(
                typical[:, first : first + _LANES],
                None if saving is None else saving[:, first : first + _LANES],
                saved,
            )
            for first in range(0, typical.shape[1], _LANES)
        ]
        earlier, arrivals = (np.concatenate([part[i] for part in parts], axis=1)[:, :lanes] for i in range(2))
        return earlier, arrivals

    def _replay(self, typical: Bool, saving: Int64 | None, saved: Sequence[Int64]) -> tuple[Int64, Int64]:
        lanes = typical.shape[1]
        typical = _checked(typical, np.bool_, self._ranks, lanes)
        if saving is not None:
            # Operations that were compared with no other save nothing.
            rows = max(self._numbers - len(saving), 0)
            padded = np.concatenate([saving, np.zeros((rows, lanes), np.int64)]) if rows else saving
            saving = _checked(padded, np.int64, len(padded), lanes)
        moments = [
            column
            for (member, stall), each in zip(self._moments, saved, strict=True)
            for column in (member, stall, _checked(each, np.int64, len(member)))
        ]
        free = self._rooms.setdefault(lanes, [])  # each replay writes all rows but the last before it reads them
        try:
            room = free.pop()
        except IndexError:  # other threads use what there was
            room = [np.zeros((rows + 1, lanes), np.int64) for rows in (self._runs, self._slots)]
        results = [*(np.zeros((self._ranks, lanes), np.int64) for _ in range(2)), *room]
        addresses = map(_address, (*moments, typical))
        scenarios = _Scenarios(*addresses, None if saving is None else _address(saving), *map(_address, results))
        self._library.job_replay(ctypes.byref(self._job), ctypes.byref(scenarios), lanes)
        free.append(room)
        return results[0], results[1]


def _widen(columns: npt.NDArray[Any], more: int) -> npt.NDArray[Any]:
    """Return columns with `more` of zeros after them."""
    return np.concatenate([columns, np.zeros((len(columns), more), columns.dtype)], axis=1)


def _check(numbers: Numbers, count: int) -> Any:
    """Return the numbers; raise ValueError if one isn't 0..count-1: C would write beyond the columns."""
    _expect_among(not len(numbers) or 0 <= numbers.min() <= numbers.max() < count, count)
    return numbers


def _expect_among(among: bool, count: int) -> None:
    """Raise ValueError unless all numbers are among those that there are: 0..count-1."""
    if not among:
        raise ValueError(f"a number is not among the {count} that there are")


def _checked(values: npt.NDArray[Any], dtype: npt.DTypeLike, *shape: int) -> npt.NDArray[Any]:
    """Return values as C reads them; a wrong shape must not reach it."""
    if values.shape != shape:
        raise ValueError(f"a column has the shape {values.shape} instead of {shape}")
    return np.ascontiguousarray(values, dtype)


def _address(column: npt.NDArray[Any]) -> int:
    return column.ctypes.data
