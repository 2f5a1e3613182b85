"""Read the columns of an Arrow file of `cache.arrow` without Arrow, whose import takes as long as a table.

The last bytes of the file say where its footer is. That has the schema and the place of the record batch, whose
header has the place of each buffer; both are FlatBuffers (https://arrow.apache.org/docs/format/Columnar.html).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from torch_tb_profiler.base.arrays import StoredTexts

_MAGIC = b"ARROW1"
_INT, _FLOAT, _LARGE_TEXT, _LARGE_LIST = 2, 3, 20, 21
"""Numbers of types in Arrow's schema."""

_FLOATS = (np.float16, np.float32, np.float64)


class ArrowFile(NamedTuple):
    """The lists of a record batch with one row by name, as views of the file, and the metadata of its schema."""

    columns: Mapping[str, npt.NDArray[Any] | StoredTexts]
    metadata: Mapping[str, bytes]


class _Table:
    """A table of a FlatBuffer."""

    def __init__(self, content: memoryview, at: int) -> None:
        self._content = content
        self._at = at
        self._offsets = at - struct.unpack_from("<i", content, at)[0]
        self._size: int = struct.unpack_from("<H", content, self._offsets)[0]

    def field(self, number: int) -> int | None:
        """Return the place of a field, None if it has its default."""
        if 4 + 2 * number >= self._size:
            return None
        offset: int = struct.unpack_from("<H", self._content, self._offsets + 4 + 2 * number)[0]
        return self._at + offset if offset else None

    def number(self, field: int, code: str) -> int:
        at = self.field(field)
        return 0 if at is None else int(struct.unpack_from(f"<{code}", self._content, at)[0])

    def table(self, field: int) -> _Table:
        return _Table(self._content, self._target(field))

    def vector(self, field: int) -> tuple[int, int]:
        """Return the place and the length of a vector."""
        if self.field(field) is None:
            return 0, 0
        at = self._target(field)
        return at + 4, struct.unpack_from("<I", self._content, at)[0]

    def tables(self, field: int) -> list[_Table]:
        begin, count = self.vector(field)
        places = range(begin, begin + 4 * count, 4)
        return [_Table(self._content, at + struct.unpack_from("<I", self._content, at)[0]) for at in places]

    def text(self, field: int) -> bytes:
        begin, count = self.vector(field)
        return bytes(self._content[begin : begin + count])

    def _target(self, field: int) -> int:
        at = self.field(field)
        if at is None:
            raise ValueError("a field is missing")
        return at + int(struct.unpack_from("<I", self._content, at)[0])


def read_arrow_file(content: Any) -> ArrowFile:
    """Return what is in a file; ValueError or struct.error if it isn't one of these."""
    file = memoryview(content).cast("B")
    if file[-len(_MAGIC) :] != _MAGIC:
        raise ValueError("it isn't an Arrow file")
    end = len(file) - len(_MAGIC) - 4
    footer = _root(file, end - struct.unpack_from("<i", file, end)[0])
    schema, (block, blocks) = footer.table(1), footer.vector(3)
    if blocks != 1:
        raise ValueError(f"it has {blocks} record batches instead of one")
    begin, length, _ = struct.unpack_from("<qi4xq", file, block)
    batch = _root(file, begin + 8).table(2)
    nodes, places = batch.vector(1)[0], batch.vector(2)[0]
    columns: dict[str, npt.NDArray[Any] | StoredTexts] = {}
    for number, field in enumerate(schema.tables(1)):
        (child,) = field.tables(5)
        kind = child.number(2, "B")
        if field.number(2, "B") != _LARGE_LIST:
            raise ValueError("a column isn't a list")
        count = struct.unpack_from("<q", file, nodes + 32 * number + 16)[0]
        # Of the list validity and offsets, of its values validity and one buffer, or two for texts.
        used = 5 if kind == _LARGE_TEXT else 4
        buffers = [struct.unpack_from("<qq", file, places + 16 * each)[0] + begin + length for each in range(used)]
        places += 16 * used
        if kind == _LARGE_TEXT:
            offsets = np.frombuffer(file, np.int64, count + 1 if count else 0, buffers[3] if count else 0)
            columns[field.text(0).decode()] = StoredTexts(offsets, file[buffers[4] :])
        else:
            dtype = _dtype_of(kind, child.table(3))
            columns[field.text(0).decode()] = np.frombuffer(file, dtype, count, buffers[3] if count else 0)
    return ArrowFile(columns, {each.text(0).decode(): each.text(1) for each in schema.tables(2)})


def _root(file: memoryview, at: int) -> _Table:
    return _Table(file, at + struct.unpack_from("<I", file, at)[0])


def _dtype_of(kind: int, type_: _Table) -> npt.DTypeLike:
    if kind == _FLOAT:
        return _FLOATS[type_.number(0, "h")]
    if kind != _INT:
        raise ValueError(f"a column has the type {kind}")
    return np.dtype(f"{'i' if type_.number(1, '?') else 'u'}{type_.number(0, 'i') // 8}")
