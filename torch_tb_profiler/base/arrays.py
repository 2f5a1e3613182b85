"""Helpers for numpy and Arrow arrays: a quick median, and Arrow strings as a Python sequence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, overload

import numpy as np
import numpy.typing as npt

from torch_tb_profiler.base.compiled import column_functions

if TYPE_CHECKING:
    import pyarrow as pa

Number = TypeVar("Number", bound=np.integer[Any])


def median(values: npt.NDArray[Any] | Sequence[float]) -> float:
    """Return the median of `values` (no NaN allowed), or NaN if there are none.

    np.median imports masked arrays, which takes longer (12 ms) than the medians of an Overview.
    """
    if len(values) == 0:
        return float("nan")
    half = len(values) // 2
    if len(values) % 2:
        return float(np.partition(values, half)[half])
    partitioned = np.partition(values, (half - 1, half))
    return (float(partitioned[half - 1]) + float(partitioned[half])) / 2


def quantile(values: npt.NDArray[np.integer[Any]], share: float) -> float:
    """Return a quantile (0.5: median) of at least one integer, interpolated as `np.quantile` does by default.

    That one imports masked arrays, too.
    """
    place = (len(values) - 1) * share
    below = int(place)
    above = min(below + 1, len(values) - 1)
    ordered = np.partition(values, (below, above))
    low, step, part = ordered[below], ordered[above] - ordered[below], place - below
    return float(ordered[above] - step * (1 - part) if part >= 0.5 else low + step * part)


def distinct(values: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Return the distinct values, ascending.

    np.unique without further results imports masked arrays in numpy 2.3, which takes longer than most tables here.
    """
    ordered = np.sort(values, kind="stable")  # rows nearly ascend, for which it is many times faster
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


def distinct_numbers(values: npt.NDArray[np.integer[Any]]) -> list[int]:
    """Return the distinct values, ascending.

    Numbers of devices, streams and threads lie close together: a table is many times faster than np.unique.
    """
    if len(values) == 0:
        return []
    low, high = int(values.min()), int(values.max())
    if high - low > 4 * len(values) + 1024:
        return distinct(values).tolist()  # type: ignore[no-any-return]
    seen = np.zeros(high - low + 1, np.bool_)
    seen[np.subtract(values, low, dtype=np.int64)] = True
    return [low + number for number in np.flatnonzero(seen).tolist()]


def sums_by_number(
    number: npt.NDArray[np.integer[Any]], values: npt.NDArray[np.int64], count: int
) -> npt.NDArray[np.int64]:
    """Return int64[count]: the exact sums of the values of each number 0..count-1."""
    if functions := column_functions(len(values)):
        return functions.sums(number, values, count)
    if len(values) and float(np.abs(values, dtype=np.float64).sum()) < 2.0**53:
        # As float64 every partial sum is exact, and bincount is several times faster than add.at.
        return np.bincount(number, values, minlength=count).astype(np.int64)
    sums = np.zeros(count, np.int64)
    np.add.at(sums, number, values)
    return sums


def lowest_by_number(
    number: npt.NDArray[np.integer[Any]], values: npt.NDArray[np.int64], count: int
) -> npt.NDArray[np.int64]:
    """Return int64[count]: the least of the values of each number 0..count-1, the largest int64 without any."""
    if functions := column_functions(len(values)):
        return functions.lowest(number, values, count)
    lowest = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(lowest, number, values)
    return lowest


def highest_by_number(
    number: npt.NDArray[np.integer[Any]], values: npt.NDArray[np.int64], count: int
) -> npt.NDArray[np.int64]:
    """Return int64[count]: the largest of the values of each number 0..count-1, the least int64 without any."""
    if functions := column_functions(len(values)):
        return functions.highest(number, values, count)
    highest = np.full(count, np.iinfo(np.int64).min)
    np.maximum.at(highest, number, values)
    return highest


def search_sorted(
    ordered: npt.NDArray[np.int64], values: npt.NDArray[np.int64], side: Literal["left", "right"]
) -> npt.NDArray[np.int64]:
    """Return what `np.searchsorted` does; many values that nearly ascend are found several times as fast."""
    if functions := column_functions(len(values)):
        return functions.search(ordered, values, side == "right")
    return np.searchsorted(ordered, values, side)


def cells_of_rows(
    rows: npt.NDArray[np.int32], cells: npt.NDArray[np.int32], wanted: npt.NDArray[np.int32], missing: int
) -> npt.NDArray[np.int32]:
    """Return the cell of each wanted row, `missing` where it has none; the rows that have one ascend."""
    found = np.full(len(wanted), missing, np.int32)
    if functions := column_functions(len(wanted)):
        functions.pick(rows, cells, wanted, found)
        return found
    at = np.searchsorted(rows, wanted)
    has_cell = at < len(rows)
    has_cell[has_cell] = rows[at[has_cell]] == wanted[has_cell]
    found[has_cell] = cells[at[has_cell]]
    return found


class ArrowTexts(Sequence[str]):
    """The strings of an Arrow array; each becomes a Python object when it is read."""

    def __init__(self, array: pa.Array) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return ArrowTexts(self.array[index])
        return str(self.array[int(index)].as_py())

    def __iter__(self) -> Iterator[str]:
        return iter(self.array.to_pylist())

    @property
    def encoded(self) -> EncodedTexts:
        _, offsets, content = self.array.buffers()
        if not len(self):
            return EncodedTexts(np.zeros(1, np.int64), b"")
        places = np.frombuffer(offsets, np.int64, len(self) + 1, 8 * self.array.offset)
        return EncodedTexts(places - places[0], memoryview(content)[places[0] : places[-1]])


class StoredTexts(Sequence[str]):
    """Texts in UTF-8, one after the other; each becomes a Python object when it is read, without Arrow.

    offsets  int64[k + 1]  where each begins in `content`, and the end; empty without texts
    """

    def __init__(self, offsets: npt.NDArray[np.int64], content: memoryview) -> None:
        self._offsets = offsets
        self._content = content

    def __len__(self) -> int:
        return max(len(self._offsets) - 1, 0)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        number = int(index) + (len(self) if index < 0 else 0)
        if not 0 <= number < len(self):
            raise IndexError(f"there is no text {index} of {len(self)}")
        return str(self._content[self._offsets[number] : self._offsets[number + 1]], "utf-8")

    def __iter__(self) -> Iterator[str]:
        bounds = self._offsets.tolist()
        if not bounds:
            return
        content = bytes(self._content[: bounds[-1]])
        if content.isascii():  # most are, and a text is cut faster than bytes are decoded
            text = content.decode()
            yield from (text[begin:end] for begin, end in pairwise(bounds))
        else:
            yield from (content[begin:end].decode() for begin, end in pairwise(bounds))

    @property
    def encoded(self) -> EncodedTexts:
        offsets = self._offsets if len(self._offsets) else np.zeros(1, np.int64)
        return EncodedTexts(offsets, self._content[: offsets[-1]])

    @property
    def array(self) -> pa.LargeStringArray:
        import pyarrow as pa

        if not len(self):
            return pa.array([], pa.large_string())
        buffers = pa.py_buffer(self._offsets), pa.py_buffer(self._content[: self._offsets[-1]])
        return pa.LargeStringArray.from_buffers(len(self), *buffers)


class EncodedTexts(NamedTuple):
    """Texts in UTF-8, one after the other.

    offsets  int64[k + 1]  where each begins in `content`, and the end
    """

    offsets: npt.NDArray[np.int64]
    content: Any


def encode_all(texts: Sequence[str], errors: str = "strict") -> EncodedTexts:
    """Return `texts` in UTF-8.

    Raise UnicodeEncodeError for half a surrogate pair, unless `errors` says otherwise.
    """
    if isinstance(texts, ArrowTexts | StoredTexts):
        return texts.encoded
    encoded = [text.encode("utf-8", errors) for text in texts]
    offsets = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(text) for text in encoded], out=offsets[1:])
    return EncodedTexts(offsets, b"".join(encoded))


def build_text_array(texts: Sequence[str], errors: str = "strict") -> pa.LargeStringArray:
    """Return `texts` as an Arrow array; raise UnicodeEncodeError as `encode_all`.

    `pa.array` would do the same, but imports pandas, where it is installed, to check whether `texts` are a series.
    """
    if isinstance(texts, ArrowTexts | StoredTexts):
        return texts.array
    offsets, content = encode_all(texts, errors)
    return text_array_from_bytes(np.diff(offsets), content)


def text_array_from_bytes(lengths: npt.NDArray[np.int64], content: bytes) -> pa.LargeStringArray:
    """Return an Arrow array of the texts in `content` (UTF-8, no separators), given their lengths in bytes."""
    import pyarrow as pa

    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return pa.LargeStringArray.from_buffers(len(lengths), pa.py_buffer(offsets), pa.py_buffer(content))
