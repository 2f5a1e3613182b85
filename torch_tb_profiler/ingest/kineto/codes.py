"""Numbers in place of values: every distinct one is held once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from torch_tb_profiler.base.arrays import ArrowTexts, build_text_array, text_array_from_bytes
from torch_tb_profiler.model.trace import NO_CODE, Int32

if TYPE_CHECKING:
    import pyarrow as pa

_MANY = 2**16
"""Bytes of new texts at a time from which on they stay in a buffer."""

_BUFFERED = 2**30
"""The code of the first text in a buffer, until all are merged."""

_TEXTS = msgspec.json.Decoder(list[str])
_VALUES = msgspec.json.Decoder(list[msgspec.Raw])


class Codes(dict[Any, int]):
    """Value -> code, counted from 0 in order of first sight; None is NO_CODE.

    A dict that fills itself lets `map(codes.__getitem__, values)` intern a column without a Python frame
    per value.
    """

    def __init__(self) -> None:
        super().__init__({None: NO_CODE})

    def __missing__(self, value: Any) -> int:
        code = self[value] = len(self) - 1
        return code

    def of(self, values: Iterable[Any]) -> Int32:
        """int32[n]: the codes of `values`."""
        return np.fromiter(map(self.__getitem__, values), np.int32)

    def of_pairs(self, first: Sequence[Any], second: Sequence[Any]) -> Int32:
        """int32[n]: the codes of (first[i], second[i]), of which a block often holds a single one."""
        if first.count(first[0]) == len(first) and second.count(second[0]) == len(second):
            return np.full(len(first), self[first[0], second[0]], np.int32)
        return self.of(zip(first, second, strict=True))

    def table(self) -> list[Any]:
        return [value for value, code in self.items() if code != NO_CODE]


class JsonCodes(Codes):
    """The same of JSON texts, as bytes."""

    def of_json(self, content: bytes) -> Int32:
        """int32[n]: the codes of the n values of a JSON array."""
        return self.of(map(bytes, _VALUES.decode(content)))


class TextCodes(Codes):
    """The same of texts, of which a trace may hold a new one in every event.

    A dict takes half a microsecond for each. So where many new ones come at a time they stay as they are in the
    buffers of Arrow, which finds the distinct ones of all buffers at the end. Until then their codes are their
    places there, from _BUFFERED on.
    """

    def __init__(self) -> None:
        super().__init__()
        self._buffers: list[pa.LargeStringArray] = []
        self._buffered = 0

    def of_json(self, content: bytes) -> Int32:
        """int32[n]: the codes, not yet merged, of the n texts of a JSON array without blanks."""
        if len(content) < _MANY or b"\\" in content:
            return self.of(_TEXTS.decode(content))
        quotes = np.flatnonzero(np.frombuffer(content, np.uint8) == ord('"'))
        lengths = quotes[1::2] - quotes[::2] - 1
        # Every quote that ends a text is followed by the comma and the quote of the next.
        self._buffers.append(text_array_from_bytes(lengths, content[2:-2].replace(b'","', b"")))
        first = _BUFFERED + self._buffered
        self._buffered += len(lengths)
        return np.arange(first, first + len(lengths), dtype=np.int32)

    def merge(self) -> tuple[Sequence[str], Callable[[Int32], Int32]]:
        """(all distinct texts, the codes into them of codes given out); nothing may be added after it."""
        if not self._buffers:
            return self.table(), lambda codes: codes
        texts, final = self._merged()

        def code_of(codes: Int32) -> Int32:
            buffered = codes >= _BUFFERED
            merged: Int32 = codes.copy()
            merged[buffered] = final[codes[buffered] - _BUFFERED]
            return merged

        return texts, code_of

    def _merged(self) -> tuple[Sequence[str], Int32]:
        """(all distinct texts, int32[m] the codes of those in buffers): those of the dict keep theirs."""
        import pyarrow as pa

        try:
            own = build_text_array(self.table())
        except UnicodeEncodeError:  # half of a surrogate pair, which Arrow does not hold
            codes = [self.of(buffer.to_pylist()) for buffer in self._buffers]
            return self.table(), np.concatenate(codes)
        merged = pa.chunked_array([own, *self._buffers]).dictionary_encode()
        self._buffers.clear()
        codes = [np.frombuffer(part.indices.buffers()[1], np.int32, len(part)) for part in merged.chunks]
        return ArrowTexts(merged.chunk(0).dictionary), np.concatenate(codes)[len(own) :]
