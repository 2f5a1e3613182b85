"""Columns of numbers that grow in place: a large one moves to other addresses without being copied.

Blocks that are concatenated at the end cost a copy of everything, into memory that the system clears page by page.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

_FIRST_CAPACITY = 256

_realloc: Callable[[int | None, int], int | None] = ctypes.pythonapi.PyMem_RawRealloc
_realloc.restype, _realloc.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_size_t)  # type: ignore[attr-defined]
_free: Callable[[int | None], None] = ctypes.pythonapi.PyMem_RawFree
_free.restype, _free.argtypes = None, (ctypes.c_void_p,)  # type: ignore[attr-defined]


class GrowingColumn:
    """Numbers of one type; `length` counts them."""

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self.length = 0
        self._dtype = np.dtype(dtype)
        self._capacity = 0
        self._memory = _Memory()

    def reserve(self, count: int) -> int:
        """Append `count` numbers and return the address of the first, where the caller writes all of them.

        Addresses of earlier ones may become invalid. Raises MemoryError.
        """
        needed = self.length + count
        if needed > self._capacity:
            capacity = max(needed, 2 * self._capacity, _FIRST_CAPACITY)
            self._memory.resize(capacity * self._dtype.itemsize)
            self._capacity = capacity
        address = self._memory.address + self.length * self._dtype.itemsize
        self.length = needed
        return address

    def append(self, numbers: npt.NDArray[Any]) -> None:
        """Append a copy of `numbers`. Raises MemoryError."""
        if len(numbers):
            copied = np.ascontiguousarray(numbers, self._dtype)
            ctypes.memmove(self.reserve(len(numbers)), copied.ctypes.data, copied.nbytes)

    def overwrite(self, first: int, numbers: npt.NDArray[Any]) -> None:
        """Put `numbers` in the place of those from `first` on. Raises IndexError where there are fewer."""
        if not 0 <= first <= self.length - len(numbers):
            raise IndexError(f"{first} to {first + len(numbers)} of {self.length}")
        copied = np.ascontiguousarray(numbers, self._dtype)
        ctypes.memmove(self._memory.address + first * self._dtype.itemsize, copied.ctypes.data, copied.nbytes)

    def finish(self) -> npt.NDArray[Any]:
        """Return all numbers, and be empty again."""
        memory, count = self._memory, self.length
        self._memory, self._capacity, self.length = _Memory(), 0, 0
        if not count:
            return np.empty(0, self._dtype)
        memory.resize(count * self._dtype.itemsize)
        return memory.view(count, self._dtype)


class _Memory:
    """Memory of the system that is freed with the last array in it."""

    def __init__(self) -> None:
        self.address = 0
        self._freeing: weakref.finalize[[int | None], _Memory] | None = None

    def resize(self, size: int) -> None:
        address = _realloc(self.address or None, size)
        if not address:
            raise MemoryError
        if self._freeing is not None:
            self._freeing.detach()
        self.address = address
        self._freeing = weakref.finalize(self, _free, address)
        self._freeing.atexit = False

    def view(self, count: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """Return numbers that keep this memory; resize it no more."""
        self.__array_interface__ = {
            "data": (self.address, False),
            "shape": (count,),
            "typestr": dtype.str,
            "version": 3,
        }
        return np.asarray(self)
