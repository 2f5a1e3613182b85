"""Write a table that was derived from a trace, and read it back without copying a column.

u32 length of the header | header | padding | column | padding | column | ...

The header is MessagePack: [[dtype, shape] of each column, the table with the number of a column for each array].
Columns begin at multiples of 64 bytes. A file holds one table, or many and an index of where each begins.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from math import prod
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from torch_tb_profiler.base.threadsafe import threadsafe
from torch_tb_profiler.cache.arrow_file import Sink

_LENGTH = struct.Struct("<I")
_ALIGNMENT = 64
"""Columns begin at multiples of this many bytes, a cache line, so that mapped ones can be read as arrays."""
_DTYPES = frozenset(np.dtype(code).str for code in np.typecodes["AllInteger"] + "fd?")


class _Header(msgspec.Struct, array_like=True):
    """The (dtype, shape) of each column, and the table."""

    columns: list[tuple[str, tuple[int, ...]]]
    table: Any


def write_table(table: object, sink: Sink) -> None:
    """Write a table; OSError if that fails."""
    columns: list[npt.NDArray[Any]] = []

    def number_of(value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return value.item()  # a number of numpy
        columns.append(np.ascontiguousarray(value))
        return len(columns) - 1

    plain = msgspec.to_builtins(table, enc_hook=number_of)
    header = msgspec.msgpack.encode(_Header([(each.dtype.str, each.shape) for each in columns], plain))
    sink.write(_LENGTH.pack(len(header)) + header)
    end = _LENGTH.size + len(header)
    for column in columns:
        sink.write(bytes(-end % _ALIGNMENT))
        sink.write(column.data.cast("B") if column.size else b"")
        end += -end % _ALIGNMENT + column.nbytes


def write_index(places: Mapping[str, tuple[int, int]], sink: Sink) -> None:
    """Write where in a file each of its tables begins, and its length, by name; OSError if that fails."""
    sink.write(msgspec.msgpack.encode(places))


def read_index(content: bytes) -> dict[str, tuple[int, int]]:
    """Return the (begin, length) of each table of a file by name; ValueError if it holds something else."""
    return msgspec.msgpack.decode(content, type=dict[str, tuple[int, int]])


def read_table(content: Any, type_: Any) -> Any:
    """Return the table of a type in a buffer, its arrays views of that; ValueError if it holds something else."""
    buffer = memoryview(content)
    try:
        (length,) = _LENGTH.unpack_from(buffer)
    except struct.error as error:
        raise ValueError("it is truncated") from error
    end = _LENGTH.size + length
    header = msgspec.msgpack.decode(buffer[_LENGTH.size : end], type=threadsafe(_Header), strict=False)
    columns: list[npt.NDArray[Any]] = []
    for dtype, shape in header.columns:
        if dtype not in _DTYPES:
            raise ValueError(f"a column has the type {dtype}")
        end += -end % _ALIGNMENT
        count = prod(shape)
        columns.append(np.frombuffer(buffer, dtype, count, end if count else 0).reshape(shape))
        end += columns[-1].nbytes

    def column_of(wanted: Any, number: Any) -> Any:
        return columns[number]

    return msgspec.convert(header.table, threadsafe(type_), dec_hook=column_of)
