"""The network that is replayed, made in C of the recorded operations of a job."""

from __future__ import annotations

import ctypes
import mmap
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from torch_tb_profiler.model.trace import NO_CODE, Int32

if TYPE_CHECKING:
    from torch_tb_profiler.analyses.distributed.compiled import RecordedOperations, ReplayColumns

_SIZE, _POINTER = ctypes.c_uint64, ctypes.c_void_p
_COLUMNS = (
    *("bounds", "stall_bounds", "run_begins", "number", "previous", "slack", "gap", "waited", "last_arrival"),
    *("stall_run", "stall_length"),
)

_TILE = 1 << 14
"""Operations of a few ranks that are looked at together, so that what they need stays in the processor's cache."""


class _Recorded(ctypes.Structure):
    """`Recorded` of native/network.h."""

    _fields_ = (
        *((name, _SIZE) for name in ("operations", "ranks", "collectives")),
        *((name, _POINTER) for name in ("bounds", "member", "start", "end", "instance", "waiting")),
        *((name, _POINTER) for name in ("previous", "slack", "stall", "compared")),
    )


class _Room(ctypes.Structure):
    """`NetworkRoom` of native/network.h."""

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


def build_network(library: Any, operations: RecordedOperations) -> ReplayColumns:
    """Return what is replayed of the recorded operations. Raises ValueError if they name what isn't there."""
    from torch_tb_profiler.analyses.distributed.compiled import ReplayColumns

    count, ranks, collectives = len(operations.member), operations.ranks, operations.collectives
    member, compared = _column(operations.member, np.int32, count), _column(operations.compared, np.bool_, count)
    if count >= 2**31 or collectives >= 2**31:
        raise ValueError(f"{count} operations are more than have numbers")
    if count and (member[0] < 0 or member[-1] >= ranks or (np.diff(member) < 0).any()):
        raise ValueError("the operations aren't those of the ranks, one after the other")
    names = "start", "end", "instance", "waiting", "previous", "slack", "stall"
    columns = {name: _column(getattr(operations, name), np.int64, count) for name in names}
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
    room: list[npt.NDArray[Any]] = [
        *(np.empty(count, np.int32) for _ in range(5)),
        *(np.empty(collectives, np.int32) for _ in range(2)),
        *(np.empty(ranks, np.int32) for _ in range(2)),
        *(np.empty(most, np.int32), np.empty(most, np.int64), np.empty(4 * most, np.int64)),
        *(np.empty(tile, np.int32) for _ in range(3)),
    ]
    # Most of these stays empty, and would take recycled memory from other columns.
    bounds_room = np.frombuffer(mmap.mmap(-1, 4 * 8 * (count + 1)), np.int64).reshape(4, count + 1)
    replay = ReplayColumns(
        ranks=ranks,
        bounds=bounds_room[0],
        stall_bounds=bounds_room[1],
        run_begins=bounds_room[2],
        number=bounds_room[3],
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
        *(_address(each) for each in (bounds, member, *columns.values(), compared)),
    )
    moments = replay.member, replay.stalls, replay.until, replay.since
    network = _Network(
        *(0, 0, 0, 0),
        *(_address(getattr(replay, name)) for name in _COLUMNS),
        *((_POINTER * 3)(*(_address(column) for column in each)) for each in moments),
    )
    library.job_network(
        ctypes.byref(recorded), ctypes.byref(_Room(most, tile, *map(_address, room))), ctypes.byref(network)
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


def _column(values: npt.NDArray[Any], dtype: npt.DTypeLike, length: int) -> npt.NDArray[Any]:
    """Return values as C reads them; a wrong length must not reach it."""
    if values.shape != (length,):
        raise ValueError(f"a column has the shape {values.shape} instead of {(length,)}")
    return np.ascontiguousarray(values, dtype)


def _address(column: npt.NDArray[Any]) -> int:
    return column.ctypes.data
