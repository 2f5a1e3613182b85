"""Protobuf messages: one at a time as Python values, or many at once in columns.

Nested messages stay bytes until they are read, so a message nested a million times costs nothing. Events, of which
there are millions, are read side by side: the next field of each at the same time. A varint is a chain of bytes
with seven bits each, the last of which has a clear top bit; eight bytes are taken as one word, masked behind the
last byte, and packed with shifts.

The generated classes of Perfetto's own package would pin a version of protobuf, which TensorBoard pins as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.model.trace import ABSENT, Bool, Int64

Fields = list[tuple[int, int | bytes]]
UInt64 = npt.NDArray[np.uint64]

VARINT, EIGHT, BYTES, FOUR = 0, 1, 2, 5
"""Wire types of protobuf fields; the deprecated group types are missing."""

_MAX_ROUNDS, _MIN_COLUMN_MESSAGES = 48, 64
"""After this many fields, fewer messages than this are read one by one: short columns cost more than they save."""

_COLUMN_TYPES = (np.int64, np.int64, np.int64, np.uint64, np.int64)
"""Types of the columns of MessageFields."""

_LAST_MARKS = np.uint64(0x8080808080808080)
_LOW_BITS = np.uint64(0x0101010101010101)
_PAYLOAD_BITS = np.uint64(0x7F7F7F7F7F7F7F7F)
_FOUR_BYTES = np.uint64(0xFFFFFFFF)
_PAIRS = tuple(
    (np.uint64(low), np.uint64(low << bits), np.uint64(shift))
    for low, bits, shift in ((0x007F007F007F007F, 8, 1), (0x00003FFF00003FFF, 16, 2), (0x000000000FFFFFFF, 32, 4))
)
"""Masks and shifts that join the bits of neighboring bytes, pairs and quadruples."""


def parse_fields(message: bytes) -> Fields:
    """Return (number, value) of the fields of a message in order; values are integers or bytes.

    Raises TraceError if the message is damaged.
    """
    return [
        (number, message[at : at + value] if kind == BYTES else value)
        for number, kind, value, at in iterate_fields(message, 0, len(message))
    ]


def iterate_fields(content: bytes, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield (number, kind, value or length, offset of the bytes) of the fields of the message in [at, end).

    Raises TraceError where the message is damaged.
    """
    while at < end:
        tag, at = read_varint(content, at)
        kind = tag & 7
        if kind in (VARINT, BYTES):
            value, at = read_varint(content, at)
        elif kind in (EIGHT, FOUR):
            value = int.from_bytes(content[at : at + (8 if kind == EIGHT else 4)], "little")
        else:
            raise TraceError("a packet is damaged: a field has an unknown type")
        size = value if kind == BYTES else 8 if kind == EIGHT else 4 if kind == FOUR else 0
        if size > end - at:
            raise TraceError("a packet is damaged: a field extends beyond its end")
        yield tag >> 3, kind, value, at
        at += size


def read_varint(message: bytes | bytearray, at: int) -> tuple[int, int]:
    """Return the number at `at` and where it ends; raise TraceError if it does not end."""
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
                raise TraceError("a packet is damaged: a number never ends")
    except IndexError:
        raise TraceError("a packet is damaged: it ends inside a number") from None


def read_varints(packed: bytes) -> list[int]:
    """Return packed numbers up to the first damaged one."""
    numbers, at = [], 0
    try:
        while at < len(packed):
            number, at = read_varint(packed, at)
            numbers.append(number)
    except TraceError:
        return numbers
    return numbers


def to_signed(number: int) -> int:
    """Return the int64 that a varint encodes."""
    return number - 2**64 if number >= 2**63 else number


def decode_text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


@dataclass(frozen=True)
class MessageFields:
    """The fields of `count` messages as columns of equal length, in order within a message.

    message  int64   index of the message
    number   int64   field number
    kind     int64   VARINT, EIGHT, BYTES or FOUR
    value    uint64  the number, or the length of bytes
    at       int64   offset of bytes
    damaged  bool[count]  messages that can't be read to their end
    """

    count: int
    message: Int64
    number: Int64
    kind: Int64
    value: UInt64
    at: Int64
    damaged: Bool

    def numbers(self, number: int) -> Int64:
        """Return int64[count]: the last value of this field in each message, ABSENT where there is none."""
        chosen = (self.number == number) & (self.kind != BYTES)
        numbers = np.full(self.count, ABSENT, np.int64)
        numbers[self.message[chosen]] = self.value[chosen].view(np.int64)
        return numbers

    def all_numbers(self, number: int) -> tuple[Int64, Int64]:
        """Return (message, value) of every numeric field with this number."""
        chosen = (self.number == number) & (self.kind != BYTES)
        return self.message[chosen], self.value[chosen].view(np.int64)

    def has_part(self, number: int) -> Bool:
        """Return bool[count]: whether a message has a bytes field with this number."""
        present = np.zeros(self.count, np.bool_)
        present[self.parts(number)[0]] = True
        return present

    def parts(self, number: int) -> tuple[Int64, Int64, Int64]:
        """Return (message, offset, length) of every bytes field with this number."""
        chosen = (self.number == number) & (self.kind == BYTES)
        return self.message[chosen], self.at[chosen], self.value[chosen].view(np.int64)


class MessageBuffer:
    """A buffer that holds many messages."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self._words: UInt64 = np.ndarray((len(content) + 9,), "<u8", content + bytes(16), strides=(1,))

    def pieces(self, at: Int64, size: Int64) -> list[bytes]:
        """Return the bytes at the offsets `at`."""
        content = self.content
        return [content[begin:end] for begin, end in zip(at.tolist(), (at + size).tolist(), strict=True)]

    def parse_fields(self, at: Int64, size: Int64) -> MessageFields:
        """Return the fields of the messages at the offsets `at`."""
        message: Int64 = np.arange(len(at))
        end = at + size
        damaged = np.zeros(len(at), np.bool_)
        rounds: list[tuple[npt.NDArray[Any], ...]] = []
        while True:
            going = at < end
            if not going.all():
                message, at, end = message[going], at[going], end[going]
            if len(message) == 0:
                break
            if len(rounds) >= _MAX_ROUNDS and len(message) < _MIN_COLUMN_MESSAGES:
                rounds.append(self._parse_one_by_one(message, at, end, damaged))
                break
            tag, at, sound = self._read_varints(at)
            number, kind = (tag >> np.uint64(3)).view(np.int64), (tag & np.uint64(7)).view(np.int64)
            value, behind, ends = self._read_varints(at)
            fixed = (kind == EIGHT) | (kind == FOUR)
            if fixed.any():
                width = np.where(kind == EIGHT, 8, 4)
                word = self._words[np.minimum(at, len(self.content))]
                value = np.where(fixed, np.where(kind == EIGHT, word, word & _FOUR_BYTES), value)
                behind = np.where(fixed, at + width, behind)
                ends |= fixed
            is_bytes = kind == BYTES
            length = np.where(is_bytes, value.view(np.int64), 0)
            sound &= ends & (fixed | is_bytes | (kind == VARINT)) & (behind <= end)
            sound &= (length >= 0) & (length <= end - behind)
            if not sound.all():
                damaged[message[~sound]] = True
                message, end, behind, length = message[sound], end[sound], behind[sound], length[sound]
                number, kind, value = number[sound], kind[sound], value[sound]
            rounds.append((message, number, kind, value, behind))
            at = behind + length
        message, number, kind, value, begin = [np.concatenate(column) for column in zip(*rounds, strict=True)] or [
            np.empty(0, type_) for type_ in _COLUMN_TYPES
        ]
        return MessageFields(len(damaged), message, number, kind, value, begin, damaged)

    def _parse_one_by_one(
        self, message: Int64, at: Int64, end: Int64, damaged: Bool
    ) -> tuple[npt.NDArray[Any], ...]:
        """Return the remaining fields of a few messages as columns."""
        rows: list[tuple[int, int, int, int, int]] = []
        for owner, begin, stop in zip(message.tolist(), at.tolist(), end.tolist(), strict=True):
            try:
                rows.extend((owner, *field) for field in iterate_fields(self.content[:stop], begin, stop))
            except TraceError:
                damaged[owner] = True
        columns = list(zip(*rows, strict=True)) or [()] * 5
        return tuple(np.array(column, type_) for column, type_ in zip(columns, _COLUMN_TYPES, strict=True))

    def _read_varints(self, at: Int64) -> tuple[UInt64, Int64, Bool]:
        """Return the numbers at `at`, where they end, and whether they end within ten bytes."""
        word = self._words[np.minimum(at, len(self.content))]
        last = ~word & _LAST_MARKS
        used = last ^ (last - np.uint64(1))  # all bits to the end of the last byte; every bit if none is the last
        number = word & used & _PAYLOAD_BITS
        for low, high, shift in _PAIRS:
            number = (number & low) | ((number & high) >> shift)
        length = ((used & _LOW_BITS) * _LOW_BITS >> np.uint64(56)).view(np.int64)
        sound = np.ones(len(at), np.bool_)
        long = np.flatnonzero(last == 0)
        if len(long):
            rest = self._words[np.minimum(at[long] + 8, len(self.content))]
            ninth, tenth = rest & np.uint64(0xFF), (rest >> np.uint64(8)) & np.uint64(0xFF)
            more = ninth >= np.uint64(0x80)
            number[long] |= (ninth & np.uint64(0x7F)) << np.uint64(56)
            number[long] |= np.where(more, (tenth & np.uint64(1)) << np.uint64(63), np.uint64(0))
            length[long] += np.where(more, 2, 1)
            sound[long] = ~more | (tenth < np.uint64(0x80))
        return number, at + length, sound
