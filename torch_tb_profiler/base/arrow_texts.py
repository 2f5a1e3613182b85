"""Many texts without a Python object for each: an Arrow array of strings as a sequence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, overload

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa


class ArrowTexts(Sequence[str]):
    """The strings of `array`, each of which becomes a Python object when it is asked for."""

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


def build_text_array(texts: Sequence[str], errors: str = "strict") -> pa.LargeStringArray:
    """The same as an Arrow array; UnicodeEncodeError for half a surrogate pair, unless `errors` says otherwise.

    (`pa.array` does the same, and imports pandas, where it is installed, to ask whether `texts` are its own.)
    """
    if isinstance(texts, ArrowTexts):
        return texts.array
    encoded = [text.encode("utf-8", errors) for text in texts]
    return text_array_from_bytes(np.array([len(text) for text in encoded], np.int64), b"".join(encoded))


def text_array_from_bytes(lengths: npt.NDArray[np.int64], content: bytes) -> pa.LargeStringArray:
    """Texts of so many bytes each, which lie one behind the other in `content`, valid UTF-8."""
    import pyarrow as pa

    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return pa.LargeStringArray.from_buffers(len(lengths), pa.py_buffer(offsets), pa.py_buffer(content))
