"""What the host does in the pieces of the path that are its own, as `threads` says it of every instant."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.schedule.causes import CAUSES, Cause
from torch_tb_profiler.analyses.schedule.path import PieceKind, critical_path
from torch_tb_profiler.analyses.schedule.threads import cut
from torch_tb_profiler.model.trace import Int8, Int32, Int64, Trace, derived

HOST_CATEGORIES = CAUSES[: Cause.UNRECORDED + 1]
"""What the host does, named as where a device waits for it; `sync` is a call's own time, without its wait."""


class HostPieces(msgspec.Struct, frozen=True):
    """Host time of the path by slice; columns of length k.

    row       int32  the innermost slice, NO_CODE where nothing is recorded
    category  int8   index into HOST_CATEGORIES
    thread    int64  code
    begin, end  int64  ns on the host's clock
    step      int64  as in Path
    """

    row: Int32
    category: Int8
    thread: Int64
    begin: Int64
    end: Int64
    step: Int64


@derived
def host_pieces(trace: Trace) -> HostPieces:
    """The host's pieces of the path, cut where what their thread is in changes."""
    path = critical_path(trace)
    mine = np.flatnonzero(path.kind == PieceKind.HOST)
    pieces = cut(trace, path.ref[mine].astype(np.int32), path.begin[mine], path.end[mine])
    of = mine[pieces.window]
    return HostPieces(pieces.row, pieces.cause, path.ref[of], pieces.begin, pieces.end, path.step[of])
