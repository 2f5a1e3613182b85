"""The binary format of a trace's reduction: a JSON header, followed by the bytes of its columns.

u32 length of the header | [[length of each column, ...], {"rank": 3, ..., "rows": ""}] | column | column | ...
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cache
from itertools import accumulate
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec.structs import force_setattr

from torch_tb_profiler.base.threadsafe import threadsafe

S = TypeVar("S")

_LENGTH = struct.Struct("<I")
_HOLDERS = bytes, memoryview, msgspec.Struct
"""Types of fields that are columns or may have some."""


@cache
def _holders(type_: type[msgspec.Struct]) -> tuple[str, ...]:
    """Return the names of the fields that are columns or may have some: there are thousands of ranks of a type."""
    return tuple(field.name for field in msgspec.structs.fields(type_) if _may_hold(field.type))


def _may_hold(type_: Any) -> bool:
    """Return whether a value of this type may be a column or have some, as far as its annotation says."""
    origin = get_origin(type_)
    if origin is Annotated:
        return _may_hold(get_args(type_)[0])
    if origin in (Union, UnionType):
        return any(map(_may_hold, get_args(type_)))
    kind = origin or type_
    return not isinstance(kind, type) or issubclass(kind, _HOLDERS)


@cache
def _header_decoder(type_: Any) -> msgspec.json.Decoder[Any]:
    """Return what decodes a header: making it takes as long as decoding one, and there are thousands."""
    return msgspec.json.Decoder(threadsafe(tuple[list[int], type_]))


def pack(value: object) -> bytes:
    """Serialize a value; its columns are fields of type `bytes` or `memoryview`, in it and in nested records."""
    columns: list[bytes | memoryview] = []
    without_columns = _take_columns(value, columns)
    header = msgspec.json.encode(([len(column) for column in columns], without_columns))
    return b"".join([_LENGTH.pack(len(header)), header, *columns])


def unpack(content: bytes | memoryview, type_: type[S]) -> S:
    """Deserialize a value of a type; its `memoryview`s share the memory of `content`.

    Raises ValueError if the content is of another type.
    """
    buffer = memoryview(content)
    try:
        (length,) = _LENGTH.unpack_from(buffer)
    except struct.error as error:
        raise ValueError("it is truncated") from error
    begin = _LENGTH.size + length
    wanted: Any = type_
    lengths, value = _header_decoder(wanted).decode(buffer[_LENGTH.size : begin])
    ends = [*accumulate(lengths, initial=begin)]
    if ends[-1] != len(buffer):
        raise ValueError("its columns have another length")
    columns = (buffer[first:last] for first, last in zip(ends, ends[1:], strict=False))
    _put_columns(value, columns)
    restored: S = value
    return restored


def _take_columns(value: object, columns: list[bytes | memoryview]) -> object:
    """Return a copy of the value without its columns, which are appended to `columns`."""
    if not isinstance(value, msgspec.Struct):
        return value
    changed: dict[str, object] = {}
    for name in value.__struct_fields__:
        field = getattr(value, name)
        if isinstance(field, bytes | memoryview):
            columns.append(field)
            changed[name] = b""
        elif isinstance(field, msgspec.Struct):
            changed[name] = _take_columns(field, columns)
    return msgspec.structs.replace(value, **changed)


def _put_columns(value: Any, columns: Iterator[memoryview]) -> None:
    """Put the columns into a value that was just decoded, in the order in which `_take_columns` took them."""
    if not isinstance(value, msgspec.Struct):
        return
    for name in _holders(type(value)):
        field = getattr(value, name)
        if isinstance(field, bytes):
            force_setattr(value, name, bytes(next(columns)))
        elif isinstance(field, memoryview):
            force_setattr(value, name, next(columns))
        else:
            _put_columns(field, columns)
