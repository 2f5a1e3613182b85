"""Blocks of events to columns by the native reader; what it is not sure of takes the plain way.

The reader numbers texts for itself, each distinct one once; here its numbers become those of `Columns`, which stay
the only ones. So it may forget its own at any time, and blocks read in either way lie side by side.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from torch_tb_profiler.ingest.kineto.columns import Block, Columns
from torch_tb_profiler.ingest.kineto.decode import BlockDecoder
from torch_tb_profiler.ingest.kineto.native.library import Library, Sizes
from torch_tb_profiler.model.trace import FIRST_TEXT_ID, NO_CODE, ArgKind, Int32

_OK, _NO_MEMORY = 0, 2
_COLUMNS = (np.uint8, np.int32, np.int32, np.int32, np.int64, np.int64, np.int64)
_CATEGORIES, _NAMES, _THREAD_IDS, _FLOW_IDS = range(4)
_KINDS: tuple[tuple[ArgKind, Any], ...] = (
    ("int", np.int64),
    ("float", np.float64),
    ("text", np.int32),
    ("json", np.int32),
)
_WHOLE, _TEXT = 0, 1

_ROWS = 1 << 16
"""So many are taken over at once: numpy's calls then cost little beside what they move."""

_TOKEN_BYTES = 1 << 25
"""What the reader may hold of texts; where every event has its own, it would hold them all again."""

_JSON_TEXTS = msgspec.json.Decoder(list[str])
_JSON_VALUES = msgspec.json.Decoder(list[msgspec.Raw])


class _Numbers:
    """int32[n + 1]: the codes in `Columns` of the reader's first n tokens; the last cell is NO_CODE's."""

    def __init__(self) -> None:
        self.known = 0
        self.codes = np.array([NO_CODE], np.int32)

    def add(self, codes: Int32) -> None:
        self.codes = np.concatenate([self.codes[:-1], codes, self.codes[-1:]])
        self.known += len(codes)


class NativeDecoder(BlockDecoder):
    """A BlockDecoder whose blocks are read in C where that is sure to come to the same."""

    def __init__(self, columns: Columns, library: Library) -> None:
        super().__init__(columns)
        self._library = library
        self._reader = library.reader_new(int.from_bytes(os.urandom(8), "little"))
        if not self._reader:
            raise MemoryError
        weakref.finalize(self, library.reader_free, self._reader)
        self._sizes = Sizes()
        self._begin()

    def _begin(self) -> None:
        self._strings = (_Numbers(), _Numbers())
        self._threads, self._flow_ids = _Numbers(), _Numbers()
        self._thread_ids: list[str] = []
        self._of_key: dict[tuple[int, int, int], _Numbers] = {}
        self._keys: list[tuple[int, int, str]] = []
        self._known_keys = [0, 0]

    @property
    def events(self) -> int:
        return super().events + int(self._sizes.rows)

    def add(self, block: bytes | memoryview) -> int:
        """Append the events of a block; returns how many entries of the array were no objects.

        Raises as `BlockDecoder.add` does, and MemoryError.
        """
        content = np.frombuffer(block, np.uint8)
        sizes = self._sizes
        status = self._library.reader_add(self._reader, content.ctypes.data, len(content), ctypes.byref(sizes))
        if status == _NO_MEMORY:
            raise MemoryError
        if status != _OK:
            self.finish()
            return self._add_plainly(block)
        if sizes.categories > self._strings[_CATEGORIES].known or sizes.names > self._strings[_NAMES].known:
            self._learn_strings()
        if sizes.own > self._known_keys[0] or sizes.inner > self._known_keys[1]:
            self._learn_keys()
        if sizes.rows >= _ROWS:
            self._take()
        if sizes.bytes > _TOKEN_BYTES:
            self.finish()
        return 0

    def _add_plainly(self, block: bytes | memoryview) -> int:
        """Both ways agree on how times are rounded from here on."""
        if self._sizes.decimals:
            self.use_decimals()
        strays = super().add(block)
        if self.uses_decimals:
            self._library.reader_use_decimals(self._reader)
        return strays

    def add_objects(self, objects: Sequence[Any]) -> int:
        self.finish()
        return super().add_objects(objects)

    def finish(self) -> None:
        """Take over what the reader holds; it then begins anew."""
        self._take()
        self._library.reader_forget(self._reader)
        self._begin()

    def _learn_strings(self) -> None:
        """Texts are numbered block by block, categories first, as the plain way numbers them."""
        for table in (_CATEGORIES, _NAMES):
            numbers = self._strings[table]
            numbers.add(self._columns.strings.of(self._texts(table, numbers.known)))

    def _learn_keys(self) -> None:
        """Keys get their columns in the order in which the plain way meets them: category by category, and event
        by event in a block that holds events of none."""
        new = []
        for inner, count in enumerate((self._sizes.own, self._sizes.inner)):
            for at in range(self._known_keys[inner], count):
                name, event, category = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_int32()
                places = map(ctypes.byref, (name, event, category))
                length = self._library.reader_key(self._reader, inner, at, *places)
                if length:
                    text = msgspec.json.decode(ctypes.string_at(name.value or 0, length), type=str)
                    order = event.value if self._sizes.plain else category.value
                    new.append((order, inner, at, text if inner else f"@{text}"))
            self._known_keys[inner] = count
        self._keys += [(inner, at, text) for _, inner, at, text in sorted(new)]

    def _take(self) -> None:
        """Rows and cells to `Columns`."""
        count = int(self._sizes.rows)
        if not count:
            return
        phase, category, name, thread, start, duration, flow = (
            _copy(self._library.reader_column(self._reader, at), count, kind) for at, kind in enumerate(_COLUMNS)
        )
        columns = self._columns
        self._learn_threads()
        self._flow_ids.add(columns.text_ids.of(self._texts(_FLOW_IDS, self._flow_ids.known)))
        texts = (flow >= FIRST_TEXT_ID) & (flow < FIRST_TEXT_ID + self._flow_ids.known)
        if texts.any():
            flow[texts] = self._flow_ids.codes[flow[texts] - FIRST_TEXT_ID] + np.int64(FIRST_TEXT_ID)
        first = columns.add_block(
            Block(
                phase,
                self._strings[_CATEGORIES].codes[category],
                self._strings[_NAMES].codes[name],
                self._threads.codes[thread],
                start,
                duration,
                flow,
            )
        )
        for inner, at, key in self._keys:
            for kind in range(len(_KINDS)):
                self._take_cells(first, inner, at, kind, key)
        self._library.reader_clear(self._reader)
        self._sizes.rows = 0

    def _take_cells(self, first: int, inner: int, at: int, kind: int, key: str) -> None:
        rows, values = ctypes.c_void_p(), ctypes.c_void_p()
        count = self._library.reader_cells(self._reader, inner, at, kind, ctypes.byref(rows), ctypes.byref(values))
        if not count:
            return
        name, dtype = _KINDS[kind]
        cells = _copy(values.value or 0, count, dtype)
        table = self._columns.table(key, name)
        if table is not None:
            numbers = self._of_key.setdefault((inner, at, kind), _Numbers())
            read = _JSON_TEXTS.decode if name == "text" else _values
            numbers.add(table.of(read(self._json("reader_key_tokens", inner, at, kind, numbers.known))))
            cells = numbers.codes[cells]
        self._columns.add_coded(key, name, _copy(rows.value or 0, count, np.int32) + np.int32(first), cells)

    def _learn_threads(self) -> None:
        known = self._threads.known
        count = self._library.reader_threads(self._reader, known, None)
        if count == known:
            return
        fields = np.empty((count - known, 4), np.int64)
        self._library.reader_threads(self._reader, known, fields.ctypes.data)
        self._thread_ids += self._texts(_THREAD_IDS, len(self._thread_ids))
        pairs = [(self._id(*row[:2]), self._id(*row[2:])) for row in fields.tolist()]
        self._threads.add(self._columns.threads.of(pairs))

    def _id(self, kind: int, value: int) -> int | str | None:
        return value if kind == _WHOLE else self._thread_ids[value] if kind == _TEXT else None

    def _texts(self, table: int, known: int) -> list[str]:
        return _JSON_TEXTS.decode(self._json("reader_tokens", table, known))

    def _json(self, function: str, *which: int) -> bytes:
        """The JSON array of the tokens that a function of the library gives."""
        tokens: Callable[..., int] = getattr(self._library, function)
        size = ctypes.c_uint64()
        tokens(self._reader, *which, None, ctypes.byref(size))
        content = ctypes.create_string_buffer(size.value)
        tokens(self._reader, *which, content, ctypes.byref(size))
        return content.raw


def _copy(address: int, count: int, dtype: Any) -> npt.NDArray[Any]:
    column = np.empty(count, dtype)
    ctypes.memmove(column.ctypes.data, address, column.nbytes)
    return column


def _values(content: bytes) -> list[bytes]:
    return list(map(bytes, _JSON_VALUES.decode(content)))
