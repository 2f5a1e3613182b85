"""Write an Arrow file of `cache.arrow` without Arrow, whose import takes as long as reading 30 MB of a trace.

    magic | schema | header of the record batch | buffers | end | footer | its length | magic

Schema, header and footer are FlatBuffers, laid out so that each part lies behind all that refer to it
(https://arrow.apache.org/docs/format/Columnar.html). `arrow_file` reads what is written here.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from torch_tb_profiler.base.arrays import EncodedTexts

_MAGIC = b"ARROW1"
_CONTINUATION = b"\xff\xff\xff\xff"
_VERSION = 4
"""Number of version 5 of the format, with which Arrow 0.15 began."""

_SCHEMA, _RECORD_BATCH = 1, 3
_INT, _FLOAT, _LARGE_TEXT, _LARGE_LIST = 2, 3, 20, 21
"""Numbers of headers and of types in Arrow's schema."""

_FLOAT_PRECISION = {2: 0, 4: 1, 8: 2}
"""Bytes of a floating-point number -> its precision in the schema."""

_ALIGNMENT = 64


class Sink(Protocol):
    """What a file is written to."""

    def write(self, piece: Any, /) -> object: ...


class _Scalar(NamedTuple):
    """A number in a table, by its code in `struct`."""

    code: str
    number: int


class _Structs(NamedTuple):
    """A vector of `length` structs of 64-bit numbers."""

    length: int
    content: bytes


class _Table(NamedTuple):
    """A table; a field that is None has its default."""

    fields: tuple[_Part | None, ...] = ()


_Part: TypeAlias = "_Scalar | _Structs | _Table | bytes | list[_Table]"


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
    if isinstance(values, EncodedTexts):
        kind, type_ = _LARGE_TEXT, _Table()
    else:
        kind, type_ = _type_of(values.dtype)
    item = _Table((b"item", _Scalar("B", 1), _Scalar("B", kind), type_, None, []))
    return _Table((name.encode(), _Scalar("B", 1), _Scalar("B", _LARGE_LIST), _Table(), None, [item]))


def _type_of(dtype: np.dtype[Any]) -> tuple[int, _Table]:
    if dtype.kind in "iu":
        return _INT, _Table((_Scalar("i", 8 * dtype.itemsize), _Scalar("B", dtype.kind == "i")))
    if dtype.kind == "f":
        return _FLOAT, _Table((_Scalar("h", _FLOAT_PRECISION[dtype.itemsize]),))
    raise ValueError(f"a column has the type {dtype}")


def _structs(rows: Sequence[tuple[int, ...]], per_row: int) -> _Structs:
    """Return the structs in `rows`, of which each holds `per_row`."""
    numbers = [number for row in rows for number in row]
    return _Structs(per_row * len(rows), struct.pack(f"<{len(numbers)}q", *numbers))


def _encode(root: _Table) -> bytes:
    """Return the FlatBuffer of a table."""
    buffer = bytearray(4)
    pending: list[tuple[int, _Part]] = [(0, root)]  # where an offset lies, and what it leads to
    for place, part in pending:  # what `part` refers to is appended
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
