"""Replay a job of many ranks in C: the network of its recorded operations, and the scenarios that change it."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from torch_tb_profiler.model.trace import NO_CODE, Bool, Int32, Int64
from torch_tb_profiler.session.native.columns import address, as_column, check_numbers

if TYPE_CHECKING:
    from torch_tb_profiler.analyses.distributed.compiled import RecordedOperations, ReplayColumns

_SIZE, _POINTER = ctypes.c_uint64, ctypes.c_void_p
_COLUMNS = (
    *("bounds", "stall_bounds", "run_begins", "number", "previous", "slack", "gap", "waited", "last_arrival"),
    *("stall_run", "stall_length"),
)

_DTYPES = {"last_arrival": np.bool_, "previous": np.int32}
"""Types of columns that aren't int64."""

_LANES = 8
"""Scenarios that are replayed at once, as in native/job.c."""

_TILE = 1 << 14
"""Operations of a few ranks that are looked at together, so that what they need stays in the processor's cache."""


class _Recorded(ctypes.Structure):
    """`Recorded` of native/network.h."""

    _fields_ = (
        *((name, _SIZE) for name in ("operations", "ranks", "collectives")),
        *((name, _POINTER) for name in ("bounds", "member", "start", "end", "instance", "waiting")),
        *((name, _POINTER) for name in ("previous", "slack", "stall", "compared")),
    )


class _NetworkScratch(ctypes.Structure):
    """`NetworkScratch` of native/network.h."""

    _fields_ = (
        *((name, _SIZE) for name in ("most", "tile")),
        *((name, _POINTER) for name in ("by_end", "turn", "place", "run", "stall_of", "missing", "due", "head")),
        *((name, _POINTER) for name in ("last_stall", "next", "stall_ends", "entries")),
        *((name, _POINTER) for name in ("before", "stalled_before", "before_stall")),
    )


class _Network(ctypes.Structure):
    """`Network` of native/network.h."""

    _fields_ = (
        *((name, _SIZE) for name in ("levels", "runs", "stalls", "finals")),
        *((name, _POINTER) for name in _COLUMNS),
        *((name, _POINTER * 3) for name in ("member", "stall", "until", "since")),
    )


def build_compiled_network(library: Any, operations: RecordedOperations) -> ReplayColumns:
    """Return what is replayed of the recorded operations. Raises ValueError if they name what isn't there."""
    from torch_tb_profiler.analyses.distributed.compiled import ReplayColumns

    count, ranks, collectives = len(operations.member), operations.ranks, operations.collectives
    member, compared = (
        as_column(operations.member, np.int32, count),
        as_column(operations.compared, np.bool_, count),
    )
    if count >= 2**31 or collectives >= 2**31:
        raise ValueError(f"{count} operations are more than have numbers")
    if count and (member[0] < 0 or member[-1] >= ranks or (np.diff(member) < 0).any()):
        raise ValueError("the operations aren't those of the ranks, one after the other")
    names = "start", "end", "instance", "waiting", "previous", "slack", "stall"
    columns = {name: as_column(getattr(operations, name), np.int64, count) for name in names}
    previous, instance = columns["previous"], columns["instance"]
    if count and not NO_CODE <= previous.min() <= previous.max() < count:
        raise ValueError("a previous operation is none of those that there are")
    if count and not 0 <= instance.min() <= instance.max() < collectives:
        raise ValueError("a collective is none of those that there are")
    sizes = np.bincount(member, minlength=ranks)
    bounds = np.zeros(ranks + 1, np.int64)
    np.cumsum(sizes, out=bounds[1:])
    most, stalls = max(int(sizes.max(initial=0)), ranks), int(np.count_nonzero(columns["stall"] > 0))
    tile = max(int(sizes.max(initial=0)), _TILE)
    scratch: list[npt.NDArray[Any]] = [
        *(np.empty(count, np.int32) for _ in range(5)),
        *(np.empty(collectives, np.int32) for _ in range(2)),
        *(np.empty(ranks, np.int32) for _ in range(2)),
        *(np.empty(most, np.int32), np.empty(most, np.int64), np.empty(4 * most, np.int64)),
        *(np.empty(tile, np.int32) for _ in range(3)),
    ]
    # Most of these stays empty, and would take recycled memory from other columns.
    bounds_buffer = np.frombuffer(mmap.mmap(-1, 4 * 8 * (count + 1)), np.int64).reshape(4, count + 1)
    replay = ReplayColumns(
        ranks=ranks,
        bounds=bounds_buffer[0],
        stall_bounds=bounds_buffer[1],
        run_begins=bounds_buffer[2],
        number=bounds_buffer[3],
        previous=np.empty(count, np.int32),
        slack=np.empty(count, np.int64),
        gap=np.empty(count, np.int64),
        waited=np.empty(count, np.int64),
        last_arrival=np.empty(count, np.bool_),
        stall_run=np.empty(stalls, np.int64),
        stall_length=np.empty(stalls, np.int64),
        member=_moments(count, stalls, ranks),
        stalls=_moments(count, stalls, ranks),
        until=_moments(count, stalls, ranks),
        since=_moments(count, stalls, ranks),
    )
    recorded = _Recorded(
        *(count, ranks, collectives),
        *(address(each) for each in (bounds, member, *columns.values(), compared)),
    )
    moments = replay.member, replay.stalls, replay.until, replay.since
    network = _Network(
        *(0, 0, 0, 0),
        *(address(getattr(replay, name)) for name in _COLUMNS),
        *((_POINTER * 3)(*(address(column) for column in each)) for each in moments),
    )
    library.job_network(
        ctypes.byref(recorded),
        ctypes.byref(_NetworkScratch(most, tile, *map(address, scratch))),
        ctypes.byref(network),
    )
    levels, runs, finals = network.levels, network.runs, network.finals
    # What has fewer entries than operations doesn't keep the memory of as many.
    return replay._replace(
        bounds=replay.bounds[: levels + 1].copy(),
        stall_bounds=replay.stall_bounds[: levels + 1].copy(),
        run_begins=replay.run_begins[:runs].copy(),
        number=replay.number[:runs].copy(),
        member=(*replay.member[:2], replay.member[2][:finals]),
        stalls=(*replay.stalls[:2], replay.stalls[2][:finals]),
        until=(*replay.until[:2], replay.until[2][:finals]),
        since=(*replay.since[:2], replay.since[2][:finals]),
    )


def _moments(operations: int, stalls: int, finals: int) -> tuple[Int32, Int32, Int32]:
    return np.empty(operations, np.int32), np.empty(stalls, np.int32), np.empty(finals, np.int32)


class _Job(ctypes.Structure):
    """`Job` of native/job.c."""

    _fields_ = (
        *((name, _SIZE) for name in ("operations", "runs", "stalls", "levels", "ranks", "finals")),
        *((name, _POINTER) for name in (*_COLUMNS, "slot")),
    )


class _Moments(ctypes.Structure):
    """`Moments` of native/job.c."""

    _fields_ = tuple((name, _POINTER) for name in ("member", "stall", "saved"))


class _Scenarios(ctypes.Structure):
    """`Scenarios` of native/job.c: member, stall, and saved work of three kinds of moments, then the columns."""

    _fields_ = (
        *((f"{kind}_{name}", _POINTER) for kind in range(3) for name in ("member", "stall", "saved")),
        *((name, _POINTER) for name in ("typical", "saving", "earlier", "arrivals", "ends", "resumed")),
    )


class CompiledReplay:
    """A `Replay` of columns that are as C reads them, and name nothing that isn't there."""

    def __init__(self, library: Any, columns: ReplayColumns) -> None:
        operations, runs, stalls = len(columns.previous), len(columns.run_begins), len(columns.stall_run)
        levels, finals = len(columns.bounds) - 1, len(columns.member[2])
        lengths = (
            *(levels + 1, levels + 1, runs, runs, operations, operations, operations, operations, operations),
            *(stalls, stalls),
        )
        self._library, self._ranks, self._stalls, self._runs = library, columns.ranks, stalls, runs
        self._numbers = int(columns.number.max(initial=0)) + 1
        check_numbers(columns.previous, runs + 1)  # before it becomes narrow
        self._columns = [
            as_column(getattr(columns, name), _DTYPES.get(name, np.int64), length)
            for name, length in zip(_COLUMNS, lengths, strict=True)
        ]
        moments = zip(columns.member, columns.stalls, (operations, stalls, finals), strict=True)
        self._moments = [
            (
                as_column(check_numbers(member, columns.ranks), np.int32, length),
                as_column(check_numbers(stall, stalls + 1), np.int32, length),
            )
            for member, stall, length in moments
        ]
        check_numbers(columns.number, self._numbers)
        check_numbers(columns.stall_run, runs)
        for bounds, count in ((columns.bounds, operations), (columns.stall_bounds, stalls)):
            if levels < 0 or bounds[0] != 0 or bounds[-1] != count or (np.diff(bounds) < 0).any():
                raise ValueError("the bounds of levels are not those of what is in them")
        starts = np.append(columns.run_begins, operations)
        if (runs or operations) and (starts[0] != 0 or (np.diff(starts) <= 0).any()):
            raise ValueError("the runs don't follow each other")
        sizes = operations, runs, stalls, levels, columns.ranks, finals
        self._job = _Job(*sizes, *map(address, self._columns), None)
        slot, self._slots = self._find_slots()
        self._columns.append(slot[:-1])
        self._job.slot = address(slot)
        if self._slots < stalls:
            self._moments = [(member, slot.take(stall)) for member, stall in self._moments]
        self._buffers: dict[int, list[list[Int64]]] = {}

    def _find_slots(self) -> tuple[Int32, int]:
        """Return (int32[stalls + 1] the row of each stall's times, the last for none; the rows before it).

        Only the last stalls of a rank are read again, so the rows of few of them serve all, and stay in the
        processor's cache.
        """
        ordinal, written = np.empty(self._stalls, np.int32), np.zeros(self._ranks, np.int32)
        moments = (_Moments * 3)(*(_Moments(address(member), address(stall)) for member, stall in self._moments))
        slots = self._library.job_slots(ctypes.byref(self._job), moments, address(ordinal), address(written))
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
        typical = as_column(typical, np.bool_, self._ranks, lanes)
        if saving is not None:
            # Operations that were compared with no other save nothing.
            rows = max(self._numbers - len(saving), 0)
            padded = np.concatenate([saving, np.zeros((rows, lanes), np.int64)]) if rows else saving
            saving = as_column(padded, np.int64, len(padded), lanes)
        moments = [
            column
            for (member, stall), each in zip(self._moments, saved, strict=True)
            for column in (member, stall, as_column(each, np.int64, len(member)))
        ]
        free = self._buffers.setdefault(lanes, [])  # each replay writes all rows but the last before it reads them
        try:
            scratch = free.pop()
        except IndexError:  # other threads use what there was
            scratch = [np.zeros((rows + 1, lanes), np.int64) for rows in (self._runs, self._slots)]
        results = [*(np.zeros((self._ranks, lanes), np.int64) for _ in range(2)), *scratch]
        addresses = map(address, (*moments, typical))
        scenarios = _Scenarios(*addresses, None if saving is None else address(saving), *map(address, results))
        self._library.job_replay(ctypes.byref(self._job), ctypes.byref(scenarios), lanes)
        free.append(scratch)
        return results[0], results[1]


def _widen(columns: npt.NDArray[Any], more: int) -> npt.NDArray[Any]:
    """Return columns with `more` of zeros after them."""
    return np.concatenate([columns, np.zeros((len(columns), more), columns.dtype)], axis=1)
