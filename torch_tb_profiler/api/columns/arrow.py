"""Columns of a trace as Arrow arrays that share their memory; what is absent is null."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool


def values(column: npt.NDArray[Any]) -> pa.Array:
    """Numbers or truth values; ABSENT in int64 and NO_CODE in int32 become null."""
    if column.dtype == np.bool_:
        return pa.array(column)
    absent = {np.dtype(np.int64): ABSENT, np.dtype(np.int32): NO_CODE}.get(column.dtype)
    return _nullable(column, np.ones(len(column), np.bool_) if absent is None else column != absent)


def texts(codes: npt.NDArray[Any], dictionary: Sequence[str | None]) -> pa.Array:
    """Texts by code, NO_CODE is null. Only texts that occur are in the dictionary, unless almost all do."""
    if len(codes) < len(dictionary):
        present, codes = np.unique(codes, return_inverse=True)
        present, codes = (present[1:], codes - 1) if len(present) and present[0] < 0 else (present, codes)
        dictionary = [dictionary[code] for code in present.tolist()]
    known = codes >= 0
    encoded = ["" if text is None else _encodable(text) for text in dictionary]
    distinct = list(dict.fromkeys(encoded))
    if len(distinct) < len(encoded):
        place = {text: at for at, text in enumerate(distinct)}
        codes = np.array([*(place[text] for text in encoded), NO_CODE], np.int32)[codes]
    indices = _nullable(codes.astype(np.int32, copy=False), known)
    return pa.DictionaryArray.from_arrays(indices, pa.array(distinct, pa.string()))


def letters(codes: npt.NDArray[np.uint8]) -> pa.Array:
    """One letter per ASCII code; 0 is null."""
    return pa.DictionaryArray.from_arrays(_nullable(codes, codes > 0), pa.array(map(chr, range(256))))


def _nullable(column: npt.NDArray[Any], known: Bool) -> pa.Array:
    column = np.ascontiguousarray(column)
    mask = None if known.all() else pa.py_buffer(np.packbits(known, bitorder="little"))
    kind = pa.from_numpy_dtype(column.dtype)
    return pa.Array.from_buffers(kind, len(column), [mask, pa.py_buffer(column)])


def _encodable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
