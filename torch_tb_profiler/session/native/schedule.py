"""Plan and replay schedules in C; `model/schedule` uses these functions where a session enables them."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from torch_tb_profiler.base.arrays import distinct_numbers
from torch_tb_profiler.ingest.compiled import CompiledLibrary, is_allowed, is_enabled
from torch_tb_profiler.model.schedule.compiled import IdleGaps, ScheduleFunctions, ThreadTimes
from torch_tb_profiler.model.schedule.compiled_threads import ThreadFunctions, ThreadSlices
from torch_tb_profiler.model.schedule.schedule import Schedule, StartLimit
from torch_tb_profiler.model.trace import NO_CODE, Bool, Int8, Int32, Int64
from torch_tb_profiler.session.native.columns import address, as_column, check_numbers

_SIZE, _POINTER = ctypes.c_size_t, ctypes.c_void_p

LIBRARY = CompiledLibrary(
    "schedule",
    "schedule",
    5,
    {
        "schedule_abi": (ctypes.c_uint32,),
        "schedule_say_crash": (None, ctypes.c_char_p),
        "schedule_plan": (ctypes.c_int64, _POINTER, _POINTER, _POINTER),
        "schedule_replay": (None, _POINTER, _POINTER, _SIZE, _SIZE, *[_POINTER] * 6),
        "schedule_latest": (None, _POINTER, _POINTER, _SIZE, *[_POINTER] * 4),
        "schedule_split": (_SIZE, *[_POINTER] * 5, _SIZE, *[_POINTER] * 8),
        "schedule_tally": (None, *[_POINTER] * 5, _SIZE, *[_POINTER] * 3, _SIZE),
        "schedule_idle": (_SIZE, *[_POINTER] * 8),
        "schedule_during": (None, _POINTER, _SIZE, *[_POINTER] * 3, _SIZE, _POINTER, _SIZE),
        "schedule_cover": (ctypes.c_int, *[_POINTER] * 2, _SIZE, *[_POINTER] * 2),
        "schedule_states": (None, *[_POINTER] * 5),
        "schedule_silences": (ctypes.c_int64, *[_POINTER] * 4),
    },
)

_SIZES = ("points", "items", "threads", "streams", "edges", "waits")
_COLUMNS = (
    *("point_bounds", "item_bounds", "time", "anchored", "target", "edge_item", "edge_point", "edge_weight"),
    *("start", "submission", "launch", "gap", "unlimited", "waiting", "wait_source", "wait_weight"),
)


class _Graph(ctypes.Structure):
    """`Graph` of native/schedule.c."""

    _fields_ = (
        *((name, ctypes.c_uint64) for name in _SIZES),
        *((name, ctypes.c_void_p) for name in _COLUMNS),
    )


class _States(ctypes.Structure):
    """`States` of native/schedule.c."""

    _fields_ = (("count", ctypes.c_uint64), *((name, ctypes.c_void_p) for name in ("times", "row", "cause")))


class _Parts(ctypes.Structure):
    """`Parts` of native/schedule.c."""

    _fields_ = (
        ("count", ctypes.c_uint64),
        *((name, ctypes.c_void_p) for name in ("gap", "begin", "end", "row", "cause")),
    )


class _Gaps(ctypes.Structure):
    """`Gaps` of native/schedule.c."""

    _fields_ = (
        *((name, ctypes.c_uint64) for name in ("gaps", "steps")),
        ("shift", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("begin", "late", "thread", "partner", "states")),
        *((name, _Parts) for name in ("streams", "devices")),
        ("borders", ctypes.c_void_p),
        ("unspecific", ctypes.c_uint64),
        ("unrecorded", ctypes.c_int64),
    )


class _Cover(ctypes.Structure):
    """`Cover` of native/schedule.c."""

    _fields_ = (
        *((name, ctypes.c_uint64) for name in ("events", "threads", "chains")),
        *((name, ctypes.c_void_p) for name in ("start", "duration", "thread", "chain", "times", "bounds")),
    )


class _Overlay(ctypes.Structure):
    """`Overlay` of native/states.h."""

    _fields_ = (
        ("count", ctypes.c_uint64),
        *((name, ctypes.c_void_p) for name in ("starts", "ends")),
        ("cause", ctypes.c_int64),
        ("kept", ctypes.c_uint64),
    )


class _Running(ctypes.Structure):
    """`Running` of native/states.h."""

    _fields_ = (
        *((name, ctypes.c_uint64) for name in ("count", "edges", "events", "overlays")),
        *((name, ctypes.c_void_p) for name in ("times", "row", "edge", "causes", "overlay")),
        ("unrecorded", ctypes.c_int64),
    )


class _Stack(ctypes.Structure):
    """`Stack` of native/states.h."""

    _fields_ = (
        *((name, ctypes.c_uint64) for name in ("count", "events", "names")),
        *((name, ctypes.c_void_p) for name in ("rows", "start", "duration", "name", "polls")),
        ("least", ctypes.c_int64),
    )


def load_schedule_functions(anywhere: bool = False) -> ScheduleFunctions | None:
    """Return the functions of the library, or None if it is missing or not enabled in this process.

    anywhere  unless the user has turned it off, it is enabled in every process
    """
    library = _open_library() if is_enabled() or (anywhere and is_allowed()) else None
    if library is None:
        return None
    functions = _ScheduleLibrary(library)
    return ScheduleFunctions(
        functions.plan,
        functions.replay,
        functions.latest,
        functions.split,
        functions.tally,
        functions.idle,
        functions.during,
        functions.cover,
    )


def load_thread_functions() -> ThreadFunctions | None:
    """Return the functions of the library for single threads, or None if it is missing or not enabled here."""
    library = _open_library() if is_enabled() else None
    if library is None:
        return None
    functions = _ScheduleLibrary(library)
    return ThreadFunctions(functions.states, functions.silences)


@cache
def _open_library() -> Any | None:
    return LIBRARY.load(Path(__file__).parent)


class _ScheduleLibrary:
    """The functions in C on a schedule that was checked."""

    def __init__(self, library: Any) -> None:
        self._library = library

    def plan(self, graph: Schedule) -> Int64 | None:
        _check_sources(graph)
        native_graph, columns = _build_native_graph(graph)
        scratch = np.empty(4 * _chains(graph), np.int64)
        count = self._library.schedule_plan(ctypes.byref(native_graph), None, address(scratch))
        if count < 0:
            return None
        runs = np.empty((count, 3), np.int64)
        self._library.schedule_plan(ctypes.byref(native_graph), address(runs), address(scratch))
        del columns  # they were in use until here
        return runs

    def replay(
        self, graph: Schedule, runs: Int64, step: Int64, duration: Int64, removed: Bool | None
    ) -> tuple[Int64, Int64]:
        native_graph, columns = _build_native_graph(graph)
        cases = len(step)
        step = as_column(step, np.int64, cases, len(graph.points))
        duration = as_column(duration, np.int64, cases, len(graph.items))
        if removed is not None:
            removed = as_column(removed, np.bool_, cases, len(graph.edges.target))
        points, ends, scratch = np.empty_like(step), np.empty_like(duration), np.empty(_chains(graph), np.int64)
        self._library.schedule_replay(
            ctypes.byref(native_graph),
            address(runs),
            len(runs),
            cases,
            *map(address, (step, duration)),
            None if removed is None else address(removed),
            *map(address, (points, ends, scratch)),
        )
        del columns
        return points, ends

    def latest(self, graph: Schedule, runs: Int64, points: Int64, ends: Int64) -> None:
        native_graph, columns = _build_native_graph(graph)
        step = np.ascontiguousarray(graph.step)
        duration = graph.items.end - graph.items.start
        assert points.flags.c_contiguous and ends.flags.c_contiguous  # they are changed in place
        self._library.schedule_latest(
            ctypes.byref(native_graph), address(runs), len(runs), *map(address, (step, duration, points, ends))
        )
        del columns

    def split(
        self,
        number: Int64,
        low: Int64,
        high: Int64,
        first: Int64,
        last: Int64,
        times: Int64,
        row: Int32,
        cause: Int8,
    ) -> tuple[Int64, Int64, Int64, Int32, Int8]:
        count = len(times) + 1
        windows = _windows_among(count, number, low, high, first, last)
        states = (
            as_column(times, np.int64, count - 1),
            as_column(row, np.int32, count),
            as_column(cause, np.int8, count),
        )
        most = int((last - first + 1).sum())
        parts = (*np.empty((3, most), np.int64), np.empty(most, np.int32), np.empty(most, np.int8))
        addresses = map(address, (*states, *parts))
        count = self._library.schedule_split(*map(address, windows), len(low), *addresses)
        window, begin, end, part_row, part_cause = (column[:count] for column in parts)
        return window, begin, end, part_row, part_cause

    def tally(
        self,
        number: Int64,
        low: Int64,
        high: Int64,
        first: Int64,
        last: Int64,
        times: Int64,
        cause: Int8,
        sums: Int64,
    ) -> None:
        count, (rows, causes) = len(times) + 1, sums.shape
        windows = _windows_among(count, check_numbers(number, rows), low, high, first, last)
        states = as_column(times, np.int64, count - 1), as_column(check_numbers(cause, causes), np.int8, count)
        assert sums.dtype == np.int64 and sums.flags.c_contiguous  # it is changed in place
        columns = map(address, (*states, sums))
        self._library.schedule_tally(*map(address, windows), len(low), *columns, causes)

    def idle(self, gaps: IdleGaps) -> tuple[Int64, Int64, Int32, Int32, Int32, Int8]:
        threads, checked = len(gaps.partner), []

        def checked_address(values: npt.NDArray[Any], dtype: npt.DTypeLike, length: int) -> int:
            checked.append(as_column(values, dtype, length))
            return address(checked[-1])

        states = (_States * max(threads, 1))()
        for thread, each in enumerate(gaps.states):
            if each is not None:
                times, row, cause = each
                count = len(times)
                columns = (times, np.int64, count), (row, np.int32, count + 1), (cause, np.int8, count + 1)
                states[thread] = _States(count, *(checked_address(*column) for column in columns))
        # The last cell is that of NO_CODE.
        known = np.array([*(each is not None for each in gaps.states), True], np.bool_)
        waited = [code for code in distinct_numbers(gaps.thread) if 0 <= code < threads]
        for name, codes in (("thread", gaps.thread), ("partner", gaps.partner[waited])):
            if len(codes) and not (NO_CODE <= codes.min() <= codes.max() < threads and known[codes].all()):
                raise ValueError(f"a {name} of a gap has no states")
        parts = [
            _Parts(
                len(gap),
                *(checked_address(each, np.int64, len(gap)) for each in (gap, begin, end)),
                checked_address(row, np.int32, len(gap)),
                checked_address(cause, np.int8, len(gap)),
            )
            for gap, begin, end, row, cause in gaps.parts
        ]
        gaps_in_c = _Gaps(
            len(gaps.begin),
            len(gaps.borders),
            gaps.shift,
            checked_address(gaps.begin, np.int64, len(gaps.begin)),
            checked_address(gaps.late, np.int64, len(gaps.begin)),
            checked_address(gaps.thread, np.int32, len(gaps.begin)),
            checked_address(gaps.partner, np.int32, threads),
            ctypes.addressof(states),
            *parts,
            checked_address(gaps.borders, np.int64, len(gaps.borders)),
            sum(1 << cause for cause in gaps.unspecific),
            gaps.unrecorded,
        )
        cut, cursors = self._library.schedule_idle, np.zeros((2, threads), np.int64)
        count = cut(ctypes.byref(gaps_in_c), address(cursors[0]), *[None] * 6)
        pieces = (
            *(np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int32)),
            *(np.empty(count, np.int32), np.empty(count, np.int32), np.empty(count, np.int8)),
        )
        cut(ctypes.byref(gaps_in_c), address(cursors[1]), *map(address, pieces))
        return pieces

    def during(self, times: Int64, starts: Int64, ends: Int64, number: Int32, sums: Int64) -> None:
        rows, stride = sums.shape
        if len(times) > stride or number.max(initial=NO_CODE) >= rows:
            raise ValueError(f"times or numbers are beyond the {stride} points or the {rows} rows")
        # It is changed in place.
        assert sums.dtype == np.int64 and sums.strides[1] == 8 and sums.strides[0] % 8 == 0
        columns = (
            as_column(times, np.int64, len(times)),
            *(as_column(each, np.int64, len(starts)) for each in (starts, ends)),
        )
        number = as_column(number, np.int32, len(starts))
        self._library.schedule_during(
            address(columns[0]),
            len(times),
            *map(address, (*columns[1:], number)),
            len(starts),
            address(sums),
            sums.strides[0] // 8,
        )

    def cover(self, rows: Int32, start: Int64, duration: Int64, thread: Int32, times: ThreadTimes) -> Int64 | None:
        events, (chain, instants, bounds) = len(start), times
        chains = len(bounds) - 1
        if bounds[0] != 0 or bounds[-1] != len(instants) or (np.diff(bounds) < 0).any():
            raise ValueError("the bounds are not those of the times")
        columns = (
            *(as_column(each, np.int64, events) for each in (start, duration)),
            *(as_column(each, np.int32, len(each)) for each in (thread, chain)),
            *(as_column(each, np.int64, len(each)) for each in (instants, bounds)),
        )
        if len(thread) != events:
            raise ValueError(f"{len(thread)} threads of {events} events")
        rows = as_column(rows, np.int32, len(rows))
        cover = _Cover(events, len(chain), chains, *map(address, columns))
        scratch, sums = np.empty(3 * chains, np.int64), np.zeros(len(instants), np.int64)
        arguments = address(rows), len(rows), address(scratch), address(sums)
        return sums if self._library.schedule_cover(ctypes.byref(cover), *arguments) else None

    def states(self, slices: ThreadSlices) -> tuple[Int64, Int32, Int8]:
        count, edges = len(slices.times), len(slices.edges)
        columns = (
            as_column(slices.times, np.int64, count),
            as_column(slices.row, np.int32, count + 1),
            as_column(slices.edges, np.int64, edges),
            as_column(slices.causes, np.int8, len(slices.causes)),
        )
        borders = [
            [as_column(each, np.int64, len(low)) for each in (low, high)] for _, low, high, _ in slices.overlays
        ]
        overlays = (_Overlay * max(len(borders), 1))()
        for number, ((cause, _, _, kept), inside) in enumerate(zip(slices.overlays, borders, strict=True)):
            bits = sum(1 << each for each in kept)
            overlays[number] = _Overlay(len(inside[0]), *map(address, inside), cause, bits)
        running = _Running(
            *(count, edges, len(columns[3]), len(borders)),
            *map(address, columns),
            ctypes.addressof(overlays),
            slices.unrecorded,
        )
        made = (
            np.empty(count + edges, np.int64),
            np.empty(count + edges + 1, np.int32),
            np.empty(count + edges + 1, np.int8),
        )
        cursors = np.zeros(len(borders), np.uint64)
        self._library.schedule_states(ctypes.byref(running), address(cursors), *(address(each) for each in made))
        return made

    def silences(
        self, rows: Int32, start: Int64, duration: Int64, name: Int32, polls: Bool, least: int
    ) -> tuple[Int64, Int64] | None:
        columns = (
            as_column(rows, np.int32, len(rows)),
            *(as_column(each, np.int64, len(start)) for each in (start, duration)),
            as_column(name, np.int32, len(start)),
            as_column(polls, np.bool_, len(polls)),
        )
        stack = _Stack(len(rows), len(start), len(polls), *map(address, columns), least)
        scratch, (since, resume) = np.empty(len(rows), np.int64), np.empty((2, 2 * len(rows)), np.int64)
        made = self._library.schedule_silences(ctypes.byref(stack), *map(address, (scratch, since, resume)))
        return None if made < 0 else (since[:made].copy(), resume[:made].copy())


def _windows_among(
    count: int, number: Int64, low: Int64, high: Int64, first: Int64, last: Int64
) -> list[npt.NDArray[Any]]:
    """Return windows for C. Raises ValueError if one has states beyond the `count` that there are."""
    if first.min(initial=0) < 0 or last.max(initial=0) >= count or (last < first).any():
        raise ValueError(f"a window has states beyond the {count} that there are")
    return [as_column(each, np.int64, len(number)) for each in (number, low, high, first, last)]


def _chains(graph: Schedule) -> int:
    return len(graph.points.threads) + graph.items.queues


def _build_native_graph(graph: Schedule) -> tuple[_Graph, list[npt.NDArray[Any]]]:
    """Return the graph for C, and its columns, which must live as long as it is in use."""
    points, items, edges, waits = graph.points, graph.items, graph.edges, graph.waits
    columns = {
        "point_bounds": (points.bounds, np.int64, len(points.threads) + 1),
        "item_bounds": (items.bounds, np.int64, items.queues + 1),
        "time": (points.time, np.int64, len(points)),
        "anchored": (graph.anchored, np.bool_, len(points)),
        "target": (edges.target, np.int64, len(edges.target)),
        "edge_item": (edges.item, np.int64, len(edges.target)),
        "edge_point": (edges.point, np.int64, len(edges.target)),
        "edge_weight": (edges.weight, np.int64, len(edges.target)),
        "start": (items.start, np.int64, len(items)),
        "submission": (graph.submission, np.int64, len(items)),
        "launch": (graph.launch, np.int64, len(items)),
        "gap": (graph.gap, np.int64, len(items)),
        "unlimited": (graph.limit == StartLimit.NOTHING, np.bool_, len(items)),
        "waiting": (waits.item, np.int64, len(waits.item)),
        "wait_source": (waits.source, np.int64, len(waits.item)),
        "wait_weight": (graph.wait_weight, np.int64, len(waits.item)),
    }
    arrays = [as_column(values, dtype, length) for values, dtype, length in columns.values()]
    sizes = len(points), len(items), len(points.threads), items.queues, len(edges.target), len(waits.item)
    return _Graph(*sizes, *map(address, arrays)), arrays


def _check_sources(graph: Schedule) -> None:
    """Raise ValueError if a node waits for one that isn't there: C would read beyond the columns."""
    points, items, edges, waits = graph.points, graph.items, graph.edges, graph.waits
    for bounds, count in ((points.bounds, len(points)), (items.bounds, len(items))):
        if len(bounds) == 0 or bounds[0] != 0 or bounds[-1] != count or (np.diff(bounds) < 0).any():
            raise ValueError("the bounds of threads or streams are not those of their nodes")
    from_point = edges.point[edges.item < 0]
    for name, nodes, lowest, count in (
        ("the target of an edge", edges.target, 0, len(points)),
        ("the item of an edge", edges.item, NO_CODE, len(items)),
        ("the point of an edge", from_point, 0, len(points)),
        ("the submission of an item", graph.submission, NO_CODE, len(points)),
        ("an item that waits", waits.item, 0, len(items)),
        ("the source of a wait", waits.source, 0, len(items)),
    ):
        if len(nodes) and not lowest <= nodes.min() <= nodes.max() < count:
            raise ValueError(f"{name} is none of the {count} nodes")
    if (np.diff(edges.target) < 0).any() or (np.diff(waits.item) < 0).any():
        raise ValueError("edges or waits are not in the order of what waits")
