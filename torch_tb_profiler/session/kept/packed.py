"""What a trace was reduced to as one run of bytes: a head of JSON, behind it the bytes of columns as they are.

u32 length of the head | [[length of each column, ...], {"rank": 3, ..., "rows": ""}] | column | column | ...
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import accumulate
from typing import Any, TypeVar

import msgspec

S = TypeVar("S")

_LENGTH = struct.Struct("<I")


def pack(value: object) -> bytes:
    """The bytes of a value; columns are fields of type `bytes` or `memoryview` of it, and of records in it."""
    columns: list[bytes | memoryview] = []
    bare = _bare(value, columns)
    head = msgspec.json.encode(([len(column) for column in columns], bare))
    return b"".join([_LENGTH.pack(len(head)), head, *columns])


def unpack(content: bytes | memoryview, type_: type[S]) -> S:
    """The value of a type; a `memoryview` in it is a part of the content. ValueError if it is of another one."""
    whole = memoryview(content)
    try:
        (length,) = _LENGTH.unpack_from(whole)
    except struct.error as error:
        raise ValueError("it is cut off") from error
    begin = _LENGTH.size + length
    lengths, bare = msgspec.json.decode(whole[_LENGTH.size : begin], type=tuple[list[int], type_])  # type: ignore[valid-type]
    ends = [*accumulate(lengths, initial=begin)]
    if ends[-1] != len(whole):
        raise ValueError("its columns are of another length")
    filled: S = _filled(bare, (whole[first:last] for first, last in zip(ends, ends[1:], strict=False)))
    return filled


def _bare(value: object, columns: list[bytes | memoryview]) -> object:
    """The value without its columns, which are added to the list."""
    if not isinstance(value, msgspec.Struct):
        return value
    changed: dict[str, object] = {}
    for name in value.__struct_fields__:
        own = getattr(value, name)
        if isinstance(own, bytes | memoryview):
            columns.append(own)
            changed[name] = b""
        elif isinstance(own, msgspec.Struct):
            changed[name] = _bare(own, columns)
    return msgspec.structs.replace(value, **changed)


def _filled(value: Any, columns: Iterator[memoryview]) -> Any:
    """The value with its columns, in the order in which `_bare` took them."""
    if not isinstance(value, msgspec.Struct):
        return value
    changed: dict[str, object] = {}
    for name in value.__struct_fields__:
        own = getattr(value, name)
        if isinstance(own, bytes):
            changed[name] = bytes(next(columns))
        elif isinstance(own, memoryview):
            changed[name] = next(columns)
        elif isinstance(own, msgspec.Struct):
            changed[name] = _filled(own, columns)
    return msgspec.structs.replace(value, **changed)
