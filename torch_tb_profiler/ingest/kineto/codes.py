"""Integer codes for values and rows, so that every distinct one is stored once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from torch_tb_profiler.base.arrays import ArrowTexts, build_text_array, text_array_from_bytes
from torch_tb_profiler.model.trace import NO_CODE, Int32, Int64

if TYPE_CHECKING:
    import pyarrow as pa

_MIN_BUFFERED_BYTES = 2**16
"""Batches of new texts of at least this many bytes stay in Arrow buffers."""

_FIRST_BUFFERED_CODE = 2**30
"""Provisional code of the first text in a buffer, until all are merged."""

_TEXTS = msgspec.json.Decoder(list[str])
_VALUES = msgspec.json.Decoder(list[msgspec.Raw])


class Codes(dict[Any, int]):
    """A map from value to code, counted from 0 in order of first occurrence; None has NO_CODE.

    A dict that fills itself lets `map(codes.__getitem__, values)` intern a column without a Python frame
    per value.
    """

    def __init__(self) -> None:
        super().__init__({None: NO_CODE})

    def __missing__(self, value: Any) -> int:
        code = self[value] = len(self) - 1
        return code

    def encode(self, values: Iterable[Any]) -> Int32:
        """Return int32[n]: the codes of `values`; new values get new codes."""
        return np.fromiter(map(self.__getitem__, values), np.int32)

    def encode_pairs(self, first: Sequence[Any], second: Sequence[Any]) -> Int32:
        """Return int32[n]: the codes of the pairs (first[i], second[i]), which are often all equal in a block."""
        if first.count(first[0]) == len(first) and second.count(second[0]) == len(second):
            return np.full(len(first), self[first[0], second[0]], np.int32)
        return self.encode(zip(first, second, strict=True))

    def table(self) -> list[Any]:
        """Return the values in the order of their codes."""
        return [value for value, code in self.items() if code != NO_CODE]


class JsonCodes(Codes):
    """Codes of JSON texts, as bytes."""

    def encode_json(self, content: bytes) -> Int32:
        """Return int32[n]: the codes of the n values of a JSON array."""
        return self.encode(map(bytes, _VALUES.decode(content)))


class TextCodes(Codes):
    """Codes of texts, for traces that may hold a new text in every event.

    A dict takes half a microsecond for each. Large batches of new texts therefore stay in Arrow buffers, and Arrow
    finds the distinct ones of all buffers at the end. Until then their codes are their positions in the buffers,
    from _FIRST_BUFFERED_CODE on.
    """

    def __init__(self) -> None:
        super().__init__()
        self._buffers: list[pa.LargeStringArray] = []
        self._buffered = 0

    def encode_json(self, content: bytes) -> Int32:
        """Return int32[n]: the codes, not merged yet, of the n texts of a JSON array without blanks."""
        if len(content) < _MIN_BUFFERED_BYTES or b"\\" in content:
            return self.encode(_TEXTS.decode(content))
        quotes = np.flatnonzero(np.frombuffer(content, np.uint8) == ord('"'))
        lengths = quotes[1::2] - quotes[::2] - 1
        # Every quote that ends a text is followed by the comma and the quote of the next.
        self._buffers.append(text_array_from_bytes(lengths, content[2:-2].replace(b'","', b"")))
        first = _FIRST_BUFFERED_CODE + self._buffered
        self._buffered += len(lengths)
        return np.arange(first, first + len(lengths), dtype=np.int32)

    def merge(self) -> tuple[Sequence[str], Callable[[Int32], Int32]]:
        """Return all distinct texts and a function from provisional to final codes; add nothing afterwards."""
        if not self._buffers:
            return self.table(), lambda codes: codes
        texts, final = self._merge_buffers()

        def code_of(codes: Int32) -> Int32:
            buffered = codes >= _FIRST_BUFFERED_CODE
            merged: Int32 = codes.copy()
            merged[buffered] = final[codes[buffered] - _FIRST_BUFFERED_CODE]
            return merged

        return texts, code_of

    def _merge_buffers(self) -> tuple[Sequence[str], Int32]:
        """Return all distinct texts, and int32[m]: the final codes of the m buffered texts."""
        import pyarrow as pa

        try:
            unbuffered = build_text_array(self.table())
        except UnicodeEncodeError:  # Arrow can't hold half of a surrogate pair
            codes = [self.encode(buffer.to_pylist()) for buffer in self._buffers]
            return self.table(), np.concatenate(codes)
        merged = pa.chunked_array([unbuffered, *self._buffers]).dictionary_encode()
        self._buffers.clear()
        codes = [np.frombuffer(part.indices.buffers()[1], np.int32, len(part)) for part in merged.chunks]
        return ArrowTexts(merged.chunk(0).dictionary), np.concatenate(codes)[len(unbuffered) :]


def distinct_rows(*columns: Int32 | Int64) -> tuple[list[tuple[int, ...]], Int64]:
    """Return the distinct rows of `columns`, and int64[k]: the index of each row among them.

    Columns are encoded one after the other, since most hold few values; sorting entire rows takes far longer.
    """
    index = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        if len(column) and (column == column[0]).all():
            continue
        values, code = np.unique(column, return_inverse=True)
        index = index * len(values) + code.ravel()
        if len(values) > 1:
            _, index = np.unique(index, return_inverse=True)
            index = index.ravel()
    _, first = np.unique(index, return_index=True)
    return list(zip(*(column[first].tolist() for column in columns), strict=True)), index
