"""The operations of a rank in 52 bytes each: operations repeat each other in all but their numbers and times.

    kinds   0: all_reduce of 4 MB in group 2 ...        rows   0  step 3  number 17  start ...  latency ...
            1: all_gather ...                                  1  step 3  number 18  start ...  latency ...
                                                               0  step 4  number 19  start ...  latency ...

Lengths of time take four bytes while all of a rank are below 4.29 s, else eight.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
import numpy as np
import numpy.typing as npt

from torch_tb_profiler.analyses.distributed.reduction.operations import OPERATION, Operations
from torch_tb_profiler.model.trace import ABSENT, Int32, Int64

_OF_KIND = (
    "group", "collective", "backend", "dtype", "timing", "source", "target",
    "bytes_in", "bytes_out", "message", "bus",
)  # fmt: skip
_AS_IT_IS = ("step", "sequence", "issue", "start")
_LENGTHS = ("end", "latency", "exposed", "stall", "window")
"""Of `end` the time since the start. Without timing 0 stands for what is ABSENT then: all but `stall`."""


def _row(length: str) -> np.dtype[np.void]:
    same = [(name, OPERATION[name].str) for name in _AS_IT_IS]
    return np.dtype([("kind", "<u4"), *same, *((name, length) for name in _LENGTHS)])


KIND = np.dtype([(name, OPERATION[name].str) for name in _OF_KIND])
ROW, WIDE_ROW = _row("<u4"), _row("<i8")


class Packed(msgspec.Struct, frozen=True):
    """kinds  bytes of an array of KIND: what operations have in common
    rows   bytes of an array of ROW, or of WIDE_ROW
    """

    kinds: Annotated[bytes, KIND]
    rows: Annotated[bytes, ROW, WIDE_ROW]
    wide: bool

    def __len__(self) -> int:
        return len(self.rows) // self._layout.itemsize

    @property
    def _layout(self) -> np.dtype[np.void]:
        return WIDE_ROW if self.wide else ROW

    def array(self) -> npt.NDArray[np.void]:
        """The rows (read-only)."""
        return np.frombuffer(self.rows, self._layout)

    def names_of(self, rows: Sequence[int]) -> list[tuple[int, int, int]]:
        """(group, collective, backend) of some operations."""
        kinds = np.frombuffer(self.kinds, KIND)[self.array()["kind"][list(rows)]]
        return list(zip(*(kinds[name].tolist() for name in ("group", "collective", "backend")), strict=True))


def pack(table: Operations) -> Packed:
    """An array of OPERATION, without loss."""
    kinds = np.zeros(len(table), KIND)
    for name in _OF_KIND:
        kinds[name] = table[name]
    # By bytes: NaN is equal to itself then.
    distinct, which = np.unique(kinds.view(np.dtype((np.void, KIND.itemsize))), return_inverse=True)
    rows = np.zeros(len(table), WIDE_ROW)
    rows["kind"] = which.reshape(-1)
    for name in _AS_IT_IS:
        rows[name] = table[name]
    timed = table["start"] != ABSENT
    for name in _LENGTHS:
        rows[name][timed] = table[name][timed]
    rows["end"][timed] -= table["start"][timed]
    wide = any((rows[name] < 0).any() or (rows[name] >= 2**32).any() for name in _LENGTHS)
    return Packed(distinct.tobytes(), (rows if wide else rows.astype(ROW)).tobytes(), wide)


class Joined(msgspec.Struct, frozen=True):
    """The operations of several ranks, one rank after the other; k in all.

    kinds    columns of KIND: those of all ranks; begins: int64[ranks + 1], where those of each begin
    kind     int32[k]  position in `kinds`
    columns  the others of OPERATION, of length k
    """

    kinds: dict[str, npt.NDArray[Any]]
    begins: Int64
    kind: Int32
    columns: dict[str, npt.NDArray[Any]]


_AT_ONCE = 128
"""Of so many ranks the operations are taken apart at once, so that they stay near the processor."""


def join(ranks: Sequence[Packed]) -> Joined:
    """Without a table of all in between."""
    counts = [len(rank) for rank in ranks]
    total = sum(counts)
    begins = np.cumsum([0, *(len(rank.kinds) // KIND.itemsize for rank in ranks)])
    kind = np.empty(total, np.int32)
    columns = {name: np.empty(total, OPERATION[name].newbyteorder("=")) for name in (*_AS_IT_IS, *_LENGTHS)}
    done = 0
    for first in range(0, len(ranks), _AT_ONCE):
        part = slice(first, first + _AT_ONCE)
        rows = _rows(ranks[part])
        to = slice(done, done + len(rows))
        kind[to] = rows["kind"]
        kind[to] += np.repeat(begins[:-1][part], counts[part]).astype(np.int32)
        for name in (*_AS_IT_IS, *_LENGTHS):
            columns[name][to] = rows[name]
        done = to.stop
    untimed = np.flatnonzero(columns["start"] == ABSENT)
    columns["end"] += columns["start"]
    for name in ("end", "latency", "exposed", "window"):
        columns[name][untimed] = ABSENT
    kinds = np.frombuffer(b"".join([rank.kinds for rank in ranks]), KIND)
    own = {name: kinds[name].astype(KIND[name].newbyteorder("=")) for name in _OF_KIND}
    return Joined(own, begins, kind, columns)


def _rows(ranks: Sequence[Packed]) -> npt.NDArray[np.void]:
    """Of ROW where all of them are, else of WIDE_ROW."""
    if not any(rank.wide for rank in ranks):
        return np.frombuffer(b"".join([rank.rows for rank in ranks]), ROW)
    return np.concatenate([rank.array().astype(WIDE_ROW) for rank in ranks])


def unpack(rank: Packed) -> Operations:
    """An array of OPERATION."""
    joined = join([rank])
    table = np.empty(len(rank), OPERATION)
    for name in _OF_KIND:
        table[name] = joined.kinds[name][joined.kind]
    for name, values in joined.columns.items():
        table[name] = values
    return table
