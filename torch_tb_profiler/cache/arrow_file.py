"""Write and read Arrow files of `cache.arrow` without Arrow, whose import takes as long as 30 MB of a trace.

    magic | schema | header of the record batch | buffers | end | footer | its length | magic

Schema, header and footer are FlatBuffers (https://arrow.apache.org/docs/format/Columnar.html), laid out so that
each part lies behind all that refer to it; what several refer to is written once where that holds. The footer has
the schema and the place of the record batch, whose header has the place of each buffer.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from torch_tb_profiler.base.arrays import EncodedTexts, StoredTexts

_MAGIC = b"ARROW1"
_CONTINUATION = b"\xff\xff\xff\xff"
_VERSION = 4
"""Number of version 5 of the format, with which Arrow 0.15 began."""

_SCHEMA, _RECORD_BATCH = 1, 3
_INT, _FLOAT, _LARGE_TEXT, _LARGE_LIST = 2, 3, 20, 21
"""Numbers of headers and of types in Arrow's schema."""

_FLOATS = (np.float16, np.float32, np.float64)
"""Floating-point types, by their precision in the schema."""

_ALIGNMENT = 64
"""Bytes of a cache line: buffers begin at multiples of it, so that mapped ones can be read as arrays."""


class Sink(Protocol):
    """What a file is written to."""

    def write(self, piece: Any, /) -> object: ...


class _Scalar(msgspec.Struct, frozen=True):
    """A number in a table that is written, by its code in `struct`."""

    code: str
    number: int


class _Structs(msgspec.Struct, frozen=True):
    """A vector of `length` structs of 64-bit numbers."""

    length: int
    content: bytes


class _Table(msgspec.Struct, frozen=True):
    """A table that is written; a field that is None has its default."""

    fields: tuple[_Part | None, ...] = ()


_Part: TypeAlias = "_Scalar | _Structs | _Table | bytes | list[_Table]"

_NO_OPTIONS = _Table()
"""The table of a type without options."""


def write_arrow_file(
    sink: Sink, columns: Iterable[tuple[str, npt.NDArray[Any] | EncodedTexts]], metadata: Mapping[str, str]
) -> None:
    """Write a record batch with one row, whose columns are lists, and the metadata of its schema."""
    fields, nodes, places, buffers, end = [], [], [], [], 0
    for name, values in columns:
        count, parts = _buffers_of(values)
        fields.append(_list_field(name, values))
        nodes.append((1, 0, count, 0))
        for part in parts:
            places.append((end, part.nbytes))
            buffers.append(part)
            end += part.nbytes + -part.nbytes % _ALIGNMENT
    schema = _Table(
        (
            None,  # little-endian
            fields,
            [_Table((key.encode(), value.encode("utf-8", "replace"))) for key, value in metadata.items()],
        )
    )
    batch = _Table((_Scalar("q", 1), _structs(nodes, 2), _structs(places, 1)))
    sink.write(_MAGIC + bytes(_ALIGNMENT - len(_MAGIC)))
    begin = _ALIGNMENT + _write_message(sink, _SCHEMA, schema, 0)
    header = _write_message(sink, _RECORD_BATCH, batch, end)
    for part in buffers:
        sink.write(part)
        sink.write(bytes(-part.nbytes % _ALIGNMENT))
    sink.write(_CONTINUATION + bytes(4))
    block = _Structs(1, struct.pack("<qi4xq", begin, header, end))
    footer = _encode(_Table((_Scalar("h", _VERSION), schema, None, block)))
    sink.write(footer + struct.pack("<i", len(footer)) + _MAGIC)


def _write_message(sink: Sink, kind: int, header: _Table, body_length: int) -> int:
    """Write a header with its frame; return their length."""
    content = _encode(_Table((_Scalar("h", _VERSION), _Scalar("B", kind), header, _Scalar("q", body_length))))
    content += bytes(-(len(content) + 8) % _ALIGNMENT)
    sink.write(_CONTINUATION + struct.pack("<i", len(content)) + content)
    return 8 + len(content)


def _buffers_of(values: npt.NDArray[Any] | EncodedTexts) -> tuple[int, list[memoryview]]:
    """Return how many values a list has, and the buffers of list and values: validity and content of each."""
    arrays: tuple[npt.NDArray[Any], ...]
    if isinstance(values, EncodedTexts):
        content = np.frombuffer(values.content, np.uint8) if len(values.content) else np.empty(0, np.uint8)
        count, arrays = len(values.offsets) - 1, (values.offsets, content[: values.offsets[-1]])
    else:
        count, arrays = len(values), (values,)
    none = np.empty(0, np.uint8)  # all are valid
    return count, [_bytes_of(each) for each in (none, np.array([0, count], np.int64), none, *arrays)]


def _bytes_of(array: npt.NDArray[Any]) -> memoryview:
    return memoryview(np.ascontiguousarray(array).data).cast("B") if array.size else memoryview(b"")


def _list_field(name: str, values: npt.NDArray[Any] | EncodedTexts) -> _Table:
    """Return the field of a column in the schema: a list of what `values` are."""
    items = _items_of(None if isinstance(values, EncodedTexts) else values.dtype)
    return _Table((name.encode(), _Scalar("B", 1), _Scalar("B", _LARGE_LIST), _NO_OPTIONS, None, items))


@cache
def _items_of(dtype: np.dtype[Any] | None) -> list[_Table]:
    """Return what lists of a type consist of, None for texts; columns share it, as there are few types."""
    kind, type_ = (_LARGE_TEXT, _NO_OPTIONS) if dtype is None else _type_of(dtype)
    return [_Table((b"item", _Scalar("B", 1), _Scalar("B", kind), type_, None, []))]


def _type_of(dtype: np.dtype[Any]) -> tuple[int, _Table]:
    if dtype.kind in "iu":
        return _INT, _Table((_Scalar("i", 8 * dtype.itemsize), _Scalar("B", dtype.kind == "i")))
    if dtype.kind == "f":
        return _FLOAT, _Table((_Scalar("h", _FLOATS.index(dtype.type)),))
    raise ValueError(f"a column has the type {dtype}")


def _structs(rows: Sequence[tuple[int, ...]], per_row: int) -> _Structs:
    """Return the structs in `rows`, of which each holds `per_row`."""
    numbers = [number for row in rows for number in row]
    return _Structs(per_row * len(rows), struct.pack(f"<{len(numbers)}q", *numbers))


def _encode(root: _Table) -> bytes:
    """Return the FlatBuffer of a table."""
    buffer = bytearray(4)
    pending: list[tuple[int, _Part]] = [(0, root)]  # where an offset lies, and what it leads to
    places: dict[int, int] = {}  # of the parts that were appended
    for place, part in pending:  # what `part` refers to is appended
        shared = places.get(id(part), 0)
        if shared > place:
            struct.pack_into("<I", buffer, place, shared - place)
            continue
        _align(buffer)
        begin = len(buffer)
        if isinstance(part, _Table):
            begin = _add_table(buffer, part, pending)
        elif isinstance(part, bytes):
            buffer += struct.pack("<I", len(part)) + part + b"\0"
        elif isinstance(part, _Structs):
            begin += 4  # so that what follows the count is aligned
            buffer += struct.pack("<4xI", part.length) + part.content
        elif isinstance(part, list):
            buffer += struct.pack("<I", len(part))
            for each in part:
                pending.append((len(buffer), each))
                buffer += bytes(4)
        places[id(part)] = begin
        struct.pack_into("<I", buffer, place, begin - place)
    _align(buffer)
    return bytes(buffer)


def _align(buffer: bytearray) -> None:
    buffer += bytes(-len(buffer) % 8)


def _add_table(buffer: bytearray, table: _Table, pending: list[tuple[int, _Part]]) -> int:
    """Append the offsets of the fields and then the table; return where the table begins."""
    offsets, size = [], 4
    for field in table.fields:
        width = 0 if field is None else struct.calcsize(field.code) if isinstance(field, _Scalar) else 4
        size += -size % width if width else 0
        offsets.append(size if width else 0)
        size += width
    described = len(buffer)
    buffer += struct.pack(f"<HH{len(offsets)}H", 4 + 2 * len(offsets), size, *offsets)
    _align(buffer)
    begin = len(buffer)
    buffer += struct.pack("<i", begin - described) + bytes(size - 4)
    for field, offset in zip(table.fields, offsets, strict=True):
        if isinstance(field, _Scalar):
            struct.pack_into(f"<{field.code}", buffer, begin + offset, field.number)
        elif field is not None:
            pending.append((begin + offset, field))
    return begin


class ArrowFile(NamedTuple):
    """The lists of a record batch with one row by name, as views of the file, and the metadata of its schema."""

    columns: Mapping[str, npt.NDArray[Any] | StoredTexts]
    metadata: Mapping[str, bytes]


class _StoredTable:
    """A table of a FlatBuffer in a file."""

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

    def table(self, field: int) -> _StoredTable:
        return _StoredTable(self._content, self._target(field))

    def vector(self, field: int) -> tuple[int, int]:
        """Return the place and the length of a vector."""
        if self.field(field) is None:
            return 0, 0
        at = self._target(field)
        return at + 4, struct.unpack_from("<I", self._content, at)[0]

    def tables(self, field: int) -> list[_StoredTable]:
        begin, count = self.vector(field)
        places = range(begin, begin + 4 * count, 4)
        return [_StoredTable(self._content, at + struct.unpack_from("<I", self._content, at)[0]) for at in places]

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


def _root(file: memoryview, at: int) -> _StoredTable:
    return _StoredTable(file, at + struct.unpack_from("<I", file, at)[0])


def _dtype_of(kind: int, type_: _StoredTable) -> npt.DTypeLike:
    if kind == _FLOAT:
        return _FLOATS[type_.number(0, "h")]
    if kind != _INT:
        raise ValueError(f"a column has the type {kind}")
    return np.dtype(f"{'i' if type_.number(1, '?') else 'u'}{type_.number(0, 'i') // 8}")
