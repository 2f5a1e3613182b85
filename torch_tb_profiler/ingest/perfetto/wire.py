"""Protobuf, a message at a time. Events, of which there are millions, are read side by side (`content.py`).

Nested messages stay bytes until they are asked for, so a message nested a million times costs nothing. The
generated classes of Perfetto's own package would bind this one to their version of protobuf, which TensorBoard
binds as well.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch_tb_profiler.base.errors import TraceError

Fields = list[tuple[int, int | bytes]]

VARINT, EIGHT, BYTES, FOUR = 0, 1, 2, 5
"""Kinds of fields that writers still use."""


def fields(message: bytes) -> Fields:
    """(number, value) of the fields of a message in its order: integers (of 4 and 8 bytes, too) and bytes.

    Raises TraceError where it is damaged.
    """
    return [
        (number, message[at : at + value] if kind == BYTES else value)
        for number, kind, value, at in walk(message, 0, len(message))
    ]


def walk(content: bytes, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """(number, kind, value or length, where the bytes begin) of the fields of the message in [at, end).

    Raises TraceError where it is damaged.
    """
    while at < end:
        tag, at = varint(content, at)
        kind = tag & 7
        if kind in (VARINT, BYTES):
            value, at = varint(content, at)
        elif kind in (EIGHT, FOUR):
            value = int.from_bytes(content[at : at + (8 if kind == EIGHT else 4)], "little")
        else:
            raise TraceError("a packet is damaged: a field of no known kind")
        size = value if kind == BYTES else 8 if kind == EIGHT else 4 if kind == FOUR else 0
        if size > end - at:
            raise TraceError("a packet is damaged: a field reaches over its end")
        yield tag >> 3, kind, value, at
        at += size


def varint(message: bytes | bytearray, at: int) -> tuple[int, int]:
    """(number, where it ends); TraceError if it does not end."""
    number = shift = 0
    try:
        while True:
            byte = message[at]
            at += 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number & 0xFFFFFFFFFFFFFFFF, at
            shift += 7
            if shift > 63:
                raise TraceError("a packet is damaged: a number does not end")
    except IndexError:
        raise TraceError("a packet is damaged: it ends inside a number") from None


def varints(packed: bytes) -> list[int]:
    """Numbers one behind the other, to the first one that is damaged."""
    numbers, at = [], 0
    try:
        while at < len(packed):
            number, at = varint(packed, at)
            numbers.append(number)
    except TraceError:
        return numbers
    return numbers


def signed(number: int) -> int:
    """An int64 that a varint holds."""
    return number - 2**64 if number >= 2**63 else number


def text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
