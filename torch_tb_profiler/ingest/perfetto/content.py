"""Many messages at once: the next field of each is read at the same time, in columns.

A number of protobuf is a chain of bytes with seven bits each, the last of which lacks the eighth. Eight bytes are
taken as one word, of which the bits behind the last byte are cut off and the rest is pushed together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest.perfetto.wire import BYTES, EIGHT, FOUR, VARINT, walk
from torch_tb_profiler.model.trace import ABSENT, Bool, Int64

UInt64 = npt.NDArray[np.uint64]

_ROUNDS, _FEW = 48, 64
"""After so many fields so few messages are read on one by one: a column must not be shorter than its overhead."""

_TYPES = (np.int64, np.int64, np.int64, np.uint64, np.int64)
_LAST = np.uint64(0x8080808080808080)
_FIRST = np.uint64(0x0101010101010101)
_SEVEN = np.uint64(0x7F7F7F7F7F7F7F7F)
_FOUR_BYTES = np.uint64(0xFFFFFFFF)
_PAIRS = tuple(
    (np.uint64(low), np.uint64(low << bits), np.uint64(shift))
    for low, bits, shift in ((0x007F007F007F007F, 8, 1), (0x00003FFF00003FFF, 16, 2), (0x000000000FFFFFFF, 32, 4))
)


@dataclass(frozen=True)
class Columns:
    """The fields of `count` messages; columns of equal length, those of a message in its order.

    message  int64   which message it is of
    number   int64   of the field
    kind     int64   VARINT, EIGHT, BYTES or FOUR
    value    uint64  of numbers; of bytes their length
    at       int64   where bytes begin
    damaged  bool[count]  messages that cannot be read to their end
    """

    count: int
    message: Int64
    number: Int64
    kind: Int64
    value: UInt64
    at: Int64
    damaged: Bool

    def numbers(self, number: int) -> Int64:
        """int64[count]: the last value of this field in each message, ABSENT where it has none."""
        chosen = (self.number == number) & (self.kind != BYTES)
        numbers = np.full(self.count, ABSENT, np.int64)
        numbers[self.message[chosen]] = self.value[chosen].view(np.int64)
        return numbers

    def all_numbers(self, number: int) -> tuple[Int64, Int64]:
        """(message, value) of every field with this number."""
        chosen = (self.number == number) & (self.kind != BYTES)
        return self.message[chosen], self.value[chosen].view(np.int64)

    def parts(self, number: int) -> tuple[Int64, Int64, Int64]:
        """(message, where it begins, length) of the bytes of every field with this number."""
        chosen = (self.number == number) & (self.kind == BYTES)
        return self.message[chosen], self.at[chosen], self.value[chosen].view(np.int64)


class Content:
    """Bytes in which messages lie."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self._words: UInt64 = np.ndarray((len(content) + 9,), "<u8", content + bytes(16), strides=(1,))

    def pieces(self, at: Int64, size: Int64) -> list[bytes]:
        content = self.content
        return [content[begin:end] for begin, end in zip(at.tolist(), (at + size).tolist(), strict=True)]

    def fields(self, at: Int64, size: Int64) -> Columns:
        """The fields of the messages that begin at `at`."""
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
            if len(rounds) >= _ROUNDS and len(message) < _FEW:
                rounds.append(self._one_by_one(message, at, end, damaged))
                break
            tag, at, sound = self._varints(at)
            number, kind = (tag >> np.uint64(3)).view(np.int64), (tag & np.uint64(7)).view(np.int64)
            value, behind, ends = self._varints(at)
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
            np.empty(0, type_) for type_ in _TYPES
        ]
        return Columns(len(damaged), message, number, kind, value, begin, damaged)

    def _one_by_one(self, message: Int64, at: Int64, end: Int64, damaged: Bool) -> tuple[npt.NDArray[Any], ...]:
        rows: list[tuple[int, int, int, int, int]] = []
        for one, begin, stop in zip(message.tolist(), at.tolist(), end.tolist(), strict=True):
            try:
                rows.extend((one, *field) for field in walk(self.content[:stop], begin, stop))
            except TraceError:
                damaged[one] = True
        columns = list(zip(*rows, strict=True)) or [()] * 5
        return tuple(np.array(column, type_) for column, type_ in zip(columns, _TYPES, strict=True))

    def _varints(self, at: Int64) -> tuple[UInt64, Int64, Bool]:
        """(numbers, where they end, whether they end within ten bytes)."""
        word = self._words[np.minimum(at, len(self.content))]
        last = ~word & _LAST
        kept = last ^ (last - np.uint64(1))  # all bits to the end of the last byte; every bit if none is the last
        number = word & kept & _SEVEN
        for low, high, shift in _PAIRS:
            number = (number & low) | ((number & high) >> shift)
        length = ((kept & _FIRST) * _FIRST >> np.uint64(56)).view(np.int64)
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
