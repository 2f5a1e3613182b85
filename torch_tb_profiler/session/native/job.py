"""Run loops over long columns, sets of intervals, and the replay of a job of many ranks in C.

`base/`, `model/trace.py` and `analyses/distributed` use these functions where a session enables them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt

from torch_tb_profiler.analyses.distributed.compiled import ReplayFunctions
from torch_tb_profiler.base.compiled import ColumnFunctions, Numbers, Operation
from torch_tb_profiler.ingest.compiled import CompiledLibrary, is_allowed, is_enabled
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int8, Int32, Int64
from torch_tb_profiler.session.native.columns import address, as_column, check_in_range, check_numbers

if TYPE_CHECKING:
    from torch_tb_profiler.analyses.distributed.compiled import RecordedOperations, Replay, ReplayColumns

_SIZE, _POINTER = ctypes.c_size_t, ctypes.c_void_p
_OPERATIONS: tuple[Operation, ...] = ("union", "intersection", "difference")
"""How sets of intervals are combined, by their numbers in C."""

_MIDDLE_VALUES = 5
"""Numbers in `Middle` of native/groups.h."""

_BYTES = 256
"""How many codes of a byte there are."""

_FIRST_SLOTS = 2**16
"""Slots for windows that are tried first, a power of two."""

LIBRARY = CompiledLibrary(
    "job",
    "job",
    13,
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
        "job_select": (_SIZE, _POINTER, _POINTER, _SIZE, _POINTER, _POINTER, _SIZE),
        "job_group": (None, _POINTER, _POINTER, _SIZE, _POINTER, _POINTER),
        "job_named": (ctypes.c_int64, _POINTER, _SIZE, _POINTER, _SIZE, _POINTER, _SIZE, _POINTER),
        "job_spans": (ctypes.c_bool, _POINTER, _SIZE, _POINTER, _POINTER, _SIZE, _POINTER, _POINTER),
        "job_intervals": (ctypes.c_int64, _POINTER, _SIZE, _POINTER, _POINTER, _SIZE, _POINTER, _POINTER),
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


class JobFunctions(msgspec.Struct, frozen=True):
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
    each = _JobLibrary(library)
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
        select=each.select,
        group=each.group,
        named=each.named,
        spans=each.spans,
        intervals=each.intervals,
        merge=each.merge,
        combine=each.combine,
        covered=each.covered,
        totals=each.totals,
    )
    return JobFunctions(columns, ReplayFunctions(each.build_network, each.sum_excess, each.prepare_replay))


@cache
def _open_library() -> Any | None:
    return LIBRARY.load(Path(__file__).parent)


class _JobLibrary:
    """The functions in C on columns that were checked."""

    def __init__(self, library: Any) -> None:
        self._library = library

    def lowest(self, number: Numbers, values: Int64, count: int) -> Int64:
        return self._by_number(self._library.job_lowest, number, values, np.full(count, np.iinfo(np.int64).max))

    def highest(self, number: Numbers, values: Int64, count: int) -> Int64:
        return self._by_number(self._library.job_highest, number, values, np.full(count, np.iinfo(np.int64).min))

    def _by_number(self, function: Any, number: Numbers, values: Int64, results: Int64) -> Int64:
        values = as_column(values, np.int64, len(values))
        number = as_column(number, np.int64, len(values))
        columns = address(number), address(values), len(values), address(results)
        check_in_range(function(*columns, len(results)), len(results))
        return results

    def dense(self, number: Int64, count: int) -> int:
        assert number.flags.c_contiguous and number.dtype == np.int64  # it is changed in place
        ranks = np.zeros(count, np.int64)
        distinct: int = self._library.job_dense(address(number), len(number), address(ranks), count)
        check_in_range(distinct >= 0, count)
        return distinct

    def _counts(self, number: Numbers, count: int) -> Int64:
        counts = np.zeros(count, np.int64)
        check_in_range(self._library.job_counts(address(number), len(number), address(counts), count), count)
        return counts

    def ordinals(self, number: Numbers, count: int) -> Int64:
        number = as_column(number, np.int64, len(number))
        counts, ordinals = np.zeros(count, np.int64), np.empty(len(number), np.int64)
        columns = address(number), len(number), address(counts), address(ordinals)
        check_in_range(self._library.job_ordinals(*columns, count), count)
        return ordinals

    def order(self, number: Numbers, count: int) -> Int64:
        number = as_column(number, np.int64, len(number))
        counts, order = self._counts(number, count), np.empty(len(number), np.int64)
        begins = np.cumsum(counts) - counts
        self._library.job_order(address(number), len(number), address(begins), address(order))
        return order

    def sort(self, number: Numbers, values: Int64, count: int) -> Int64:
        values = as_column(values, np.int64, len(values))
        number = as_column(number, np.int64, len(values))
        counts, order = self._counts(number, count), np.empty(len(number), np.int64)
        begins, largest = np.cumsum(counts) - counts, int(counts.max(initial=0))
        scratch = np.empty(4 * largest, np.int64)
        places = address(order), address(scratch), largest
        self._library.job_sort(*map(address, (number, values)), len(number), address(begins), count, *places)
        return order

    def middles(self, number: Numbers, values: Int64, count: int) -> Int64:
        return self._middles(number, values, count, None)

    def others(self, number: Numbers, values: Int64, count: int) -> tuple[Int64, Int64]:
        medians = np.empty(len(number), np.int64)
        return medians, self._middles(number, values, count, medians)

    def _middles(self, number: Numbers, values: Int64, count: int, others: Int64 | None) -> Int64:
        """Return the middle entries; `others`: a column to fill with the medians of the others."""
        values = as_column(values, np.int64, len(values))
        number = as_column(number, np.int64, len(values))
        counts = self._counts(number, count)
        begins, middle = np.cumsum(counts) - counts, np.empty(count, np.int64)
        scratch = np.empty(len(values), np.int64), np.empty((count, _MIDDLE_VALUES), np.int64)
        places = *map(address, (*scratch, middle)), None if others is None else address(others)
        self._library.job_middles(*map(address, (number, values)), len(number), address(begins), count, *places)
        return middle

    def windows(self, member: Int32, step: Int32, kind: Numbers, steps: int) -> tuple[Int64, Int64]:
        member, step, kind = (as_column(each, np.int32, len(member)) for each in (member, step, kind))
        if len(member) and (step.min() < NO_CODE or step.max() >= steps or member.min() < 0):
            raise ValueError(f"a rank or a step is not among the {steps} that there are")
        last, whose = np.empty(steps + 1, np.int32), np.empty(steps + 1, np.int32)
        number, capacity = np.empty(len(member), np.int64), _FIRST_SLOTS
        while True:  # few windows serve all ranks, unless these differ
            slots, windows = np.full(capacity, -1, np.int32), np.empty((capacity // 2, 2), np.int32)
            first = np.empty(capacity // 2, np.int64)
            columns = *map(address, (member, step, kind)), len(member), steps, address(last), address(whose)
            count = self._library.job_windows(
                *columns, address(slots), address(windows), capacity, address(first), address(number)
            )
            if count >= 0:
                return number, first[:count].copy()
            capacity *= 8

    def sums(self, number: Numbers, values: Int64, count: int) -> Int64:
        return self._by_number(self._library.job_sums, number, values, np.zeros(count, np.int64))

    def first(self, number: Numbers, count: int) -> Int64:
        number = as_column(number, np.int64, len(number))
        first = np.full(count, -1, np.int64)
        check_in_range(self._library.job_first(address(number), len(number), address(first), count), count)
        return first

    def changes(self, number: Numbers, values: Int32, count: int) -> Int64:
        values = as_column(values, np.int32, len(values))
        number = as_column(number, np.int64, len(values))
        last, changes = np.empty(count, np.int32), np.zeros(count, np.int64)
        columns = address(number), address(values), len(values), address(last), address(changes)
        check_in_range(self._library.job_changes(*columns, count), count)
        return changes

    def search(self, ordered: Int64, values: Int64, right: bool) -> Int64:
        ordered, values = as_column(ordered, np.int64, len(ordered)), as_column(values, np.int64, len(values))
        places = np.empty(len(values), np.int64)
        self._library.job_search(
            address(ordered), len(ordered), address(values), len(values), right, address(places)
        )
        return places

    def mark(self, codes: Numbers, count: int) -> Bool:
        codes, seen = as_column(codes, np.int32, len(codes)), np.zeros(count, np.bool_)
        self._library.job_mark(address(codes), len(codes), address(seen), count)
        return seen

    def pick(self, rows: Numbers, cells: npt.NDArray[Any], wanted: Numbers, picked: npt.NDArray[Any]) -> None:
        rows, wanted = as_column(rows, np.int32, len(rows)), as_column(wanted, np.int32, len(wanted))
        cells = as_column(cells, picked.dtype, len(rows))
        assert picked.flags.c_contiguous and picked.shape == wanted.shape and picked.itemsize in (4, 8)
        places = address(rows), address(cells), len(rows), picked.itemsize
        self._library.job_pick(*places, address(wanted), len(wanted), address(picked))

    def select(self, code: Int8, counts: Bool, wanted: Sequence[int], max_rows: int) -> Int32:
        code, counts = as_column(code, np.int8, len(code)), as_column(counts, np.bool_, len(code))
        is_wanted, rows = np.zeros(_BYTES, np.bool_), np.empty(max_rows, np.int32)
        is_wanted[list(wanted)] = True
        columns = address(code), address(counts), len(code), address(is_wanted)
        return rows[: self._library.job_select(*columns, address(rows), max_rows)]

    def group(self, code: Int8, counts: Bool, count: int) -> list[Int32]:
        code, counts = as_column(code, np.int8, len(code)), as_column(counts, np.bool_, len(code))
        rows, bounds = np.empty(len(code), np.int32), np.empty(_BYTES + 1, np.int64)
        self._library.job_group(address(code), address(counts), len(code), address(rows), address(bounds))
        check_in_range(bool(bounds[count] == bounds[-1]), count)
        return np.split(rows[: bounds[count]], bounds[1:count])

    def named(self, rows: Numbers, name: Int32, marked: Bool) -> Int32 | None:
        rows, name = as_column(rows, np.int32, len(rows)), as_column(name, np.int32, len(name))
        marked, found = as_column(marked, np.bool_, max(len(marked), 1)), np.empty(len(rows), np.int32)
        columns = address(rows), len(rows), address(name), len(name), address(marked), len(marked) - 1
        made = self._library.job_named(*columns, address(found))
        return None if made < 0 else found[:made].copy()

    def spans(self, rows: Numbers, start: Int64, duration: Int64) -> tuple[Int64, Int64] | None:
        start, duration = (as_column(each, np.int64, len(start)) for each in (start, duration))
        rows = as_column(rows, np.int32, len(rows))
        starts, ends = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
        columns = address(start), address(duration), len(start)
        known = self._library.job_spans(address(rows), len(rows), *columns, address(starts), address(ends))
        return (starts, ends) if known else None

    def intervals(self, rows: Numbers, start: Int64, duration: Int64) -> tuple[Int64, Int64] | None:
        start, duration = (as_column(each, np.int64, len(start)) for each in (start, duration))
        rows, merged = as_column(rows, np.int32, len(rows)), _IntervalBuffers(len(rows))
        columns = address(rows), len(rows), address(start), address(duration), len(start)
        count = self._library.job_intervals(*columns, *merged.addresses)
        return None if count < 0 else merged.take(count)

    def merge(self, starts: Int64, ends: Int64) -> tuple[Int64, Int64] | None:
        starts, ends = (as_column(each, np.int64, len(starts)) for each in (starts, ends))
        merged = _IntervalBuffers(len(starts))
        count = self._library.job_merge(address(starts), address(ends), len(starts), *merged.addresses)
        return None if count < 0 else merged.take(count)

    def combine(self, how: Operation, one: tuple[Int64, Int64], other: tuple[Int64, Int64]) -> tuple[Int64, Int64]:
        combined, sides = _IntervalBuffers(len(one[0]) + len(other[0])), []
        for starts, ends in (one, other):
            sides += [as_column(each, np.int64, len(starts)) for each in (starts, ends)]
        sets = *map(address, sides[:2]), len(sides[0]), *map(address, sides[2:]), len(sides[2])
        return combined.take(self._library.job_combine(_OPERATIONS.index(how), *sets, *combined.addresses))

    def covered(self, starts: Int64, ends: Int64, times: Int64) -> Int64:
        starts, ends = (as_column(each, np.int64, len(starts)) for each in (starts, ends))
        before = np.zeros(len(starts) + 1, np.int64)
        np.cumsum(ends - starts, out=before[1:])
        times, covered = as_column(times, np.int64, len(times)), np.empty(len(times), np.int64)
        columns = *map(address, (starts, ends, before)), len(starts), address(times), len(times)
        self._library.job_covered(*columns, address(covered))
        return covered

    def totals(self, owner: Numbers, starts: Int64, ends: Int64, count: int) -> Int64 | None:
        starts, ends = (as_column(each, np.int64, len(starts)) for each in (starts, ends))
        owner = check_numbers(as_column(owner, np.int64, len(starts)), count)
        last, reach = (np.full(count, np.iinfo(np.int64).min) for _ in range(2))
        totals = np.zeros(count, np.int64)
        columns = address(owner), address(starts), address(ends), len(starts)
        ordered = self._library.job_totals(*columns, address(last), address(reach), address(totals))
        return totals if ordered else None

    def build_network(self, operations: RecordedOperations) -> ReplayColumns:
        from torch_tb_profiler.session.native.replay import build_compiled_network  # only large jobs need it

        return build_compiled_network(self._library, operations)

    def sum_excess(self, work: Int64, typical: Int64, counts: Int64, columns: ReplayColumns) -> list[Int64]:
        work, typical = (as_column(each, np.int64, len(work)) for each in (work, typical))
        bounds = np.zeros(len(counts) + 1, np.int64)
        np.cumsum(counts, out=bounds[1:])
        if counts.min(initial=0) < 0 or bounds[-1] != len(work):
            raise ValueError(f"the operations of the ranks are not the {len(work)} that there are")
        totals, found = np.empty(len(work) + 1, np.int64), []
        self._library.job_excess(*map(address, (work, typical, bounds)), len(counts), address(totals))
        for each in zip(columns.until, columns.since, strict=True):
            until, since = (as_column(column, np.int32, len(each[0])) for column in each)
            saved = np.empty(len(until), np.int64)
            places = address(until), address(since), len(until), address(saved)
            if not self._library.job_saved(address(totals), len(work), *places):
                raise ValueError(f"a moment is not among the {len(work)} operations that there are")
            found.append(saved)
        return found

    def prepare_replay(self, columns: ReplayColumns) -> Replay:
        from torch_tb_profiler.session.native.replay import CompiledReplay

        return CompiledReplay(self._library, columns)


class _IntervalBuffers:
    """Arrays for as many intervals as there may be in a result."""

    def __init__(self, most: int) -> None:
        self._starts, self._ends = np.empty(most, np.int64), np.empty(most, np.int64)
        self.addresses = address(self._starts), address(self._ends)

    def take(self, count: int) -> tuple[Int64, Int64]:
        """Return the first `count` intervals, which were written; few of them don't keep the memory of all."""
        if count > len(self._starts) // 2:
            return self._starts[:count], self._ends[:count]
        return self._starts[:count].copy(), self._ends[:count].copy()
