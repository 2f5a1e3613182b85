"""A reader of the native library, and the translation of its text codes to those of `EventColumns`.

Each reader numbers distinct texts for itself. Its codes are translated here, so a reader may be reset at any time,
and several readers can fill the same columns.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from collections import defaultdict
from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from torch_tb_profiler.ingest.kineto.columns import EventColumns
from torch_tb_profiler.ingest.kineto.native.library import BlockPlace, CodePlace, NativeLibrary, ReaderSizes
from torch_tb_profiler.model.trace import ArgKind, Int32

_NO_MEMORY = 2
_CATEGORIES, _NAMES, _THREAD_IDS, _FLOW_IDS = range(4)
_KINDS: tuple[ArgKind, ...] = ("int", "float", "text", "json")
_TEXT = _KINDS.index("text")
_INTEGER_ID, _TEXT_ID = 0, 1

_JSON_TEXTS = msgspec.json.Decoder(list[str])


class _CodeMap:
    """Codes in `EventColumns` of the reader's first `known` tokens."""

    def __init__(self) -> None:
        self.known = 0
        self._codes = np.empty(0, np.int32)

    def add(self, codes: Int32) -> None:
        if len(codes):
            self._codes = np.concatenate([self._codes, codes])
            self.known = len(self._codes)

    def place(self) -> CodePlace:
        """Return where the codes are; valid until some are added."""
        return CodePlace(self._codes.ctypes.data, self.known)


class NativeReader:
    """Reads blocks on any thread (`read`), then adds them to `columns` on their thread (`learn`, `take`).

    read_blocks  how many of the last blocks it has read
    sizes        the reader's counters after each of those blocks
    """

    def __init__(self, columns: EventColumns, library: NativeLibrary) -> None:
        self._columns = columns
        self._library = library
        self._reader = library.reader_new(int.from_bytes(os.urandom(8), "little"))
        if not self._reader:
            raise MemoryError
        weakref.finalize(self, library.reader_free, self._reader)
        self.sizes: Sequence[ReaderSizes] = []
        self.read_blocks = 0
        self.rows = 0
        self._reset_codes()

    def _reset_codes(self) -> None:
        self._strings = (_CodeMap(), _CodeMap())
        self._threads, self._flow_ids = _CodeMap(), _CodeMap()
        self._thread_ids: list[str] = []
        self._key_codes: defaultdict[tuple[int, int, int], _CodeMap] = defaultdict(_CodeMap)
        self._keys: list[tuple[int, int, str]] = []
        self._known_keys = [0, 0]

    def read(self, blocks: Sequence[bytes | memoryview]) -> None:
        """Append the events of blocks, up to the first that `BlockDecoder` must read. Raises MemoryError."""
        contents = [np.frombuffer(block, np.uint8) for block in blocks]
        places = (BlockPlace * len(contents))(
            *(BlockPlace(content.ctypes.data, len(content)) for content in contents)
        )
        sizes = (ReaderSizes * len(contents))()
        status = ctypes.c_int32()
        count = self._library.reader_add_all(self._reader, places, len(contents), sizes, ctypes.byref(status))
        if status.value == _NO_MEMORY:
            raise MemoryError
        self.read_blocks, self.sizes = count, sizes[:count]
        if count:
            self.rows = int(sizes[count - 1].rows)

    def use_decimals(self) -> None:
        self._library.reader_use_decimals(self._reader)

    def learn(self) -> None:
        """Assign codes to new texts in the order `BlockDecoder` does: block by block, categories first."""
        texts: dict[int, list[str]] = {}
        for sizes in self.sizes:
            for table, count in ((_CATEGORIES, sizes.categories), (_NAMES, sizes.names)):
                numbers = self._strings[table]
                if count > numbers.known:
                    new = texts.get(table)
                    if new is None:
                        new = texts[table] = self._texts(table, numbers.known)
                    part = count - numbers.known
                    numbers.add(self._columns.strings.encode(new[:part]))
                    texts[table] = new[part:]
            if sizes.own > self._known_keys[0] or sizes.inner > self._known_keys[1]:
                self._learn_keys(sizes)

    def _learn_keys(self, sizes: ReaderSizes) -> None:
        """Learn new argument keys in the order `BlockDecoder` meets them.

        That is category by category, and event by event in a block with events of no category.
        """
        new = []
        for inner, count in enumerate((sizes.own, sizes.inner)):
            for at in range(self._known_keys[inner], count):
                name, event, category = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_int32()
                places = map(ctypes.byref, (name, event, category))
                length = self._library.reader_key(self._reader, inner, at, *places)
                if length:
                    text = msgspec.json.decode(ctypes.string_at(name.value or 0, length), type=str)
                    order = event.value if sizes.plain else category.value
                    new.append((order, inner, at, text if inner else f"@{text}"))
            self._known_keys[inner] = count
        self._keys += [(inner, at, text) for _, inner, at, text in sorted(new)]

    def take(self) -> None:
        """Move rows and cells to the columns."""
        if not self.rows:
            return
        count, self.rows = self.rows, 0
        columns = self._columns
        self._learn_threads()
        self._flow_ids.add(columns.text_ids.encode(self._texts(_FLOW_IDS, self._flow_ids.known)))
        first = columns.length
        places = (ctypes.c_void_p * 7)(*columns.reserve_rows(count))
        maps = (CodePlace * 4)(*(each.place() for each in (*self._strings, self._threads, self._flow_ids)))
        self._library.reader_take_rows(self._reader, places, maps)
        counts = [self._count_cells(inner) for inner in range(2)]
        for inner, at, key in self._keys:
            *cells, texts, jsons = counts[inner][at]
            for kind, count in enumerate(cells):
                if count:  # most keys have values of one kind
                    self._take_cells(first, inner, at, kind, key, count, texts if kind == _TEXT else jsons)
        self._library.reader_clear(self._reader)

    def _count_cells(self, inner: int) -> list[list[int]]:
        """Return how many cells each key has of each kind, and how many texts and JSON values."""
        counts = np.empty((self._known_keys[inner], len(_KINDS) + 2), np.uint32)
        self._library.reader_cells(self._reader, inner, len(counts), counts.ctypes.data)
        found: list[list[int]] = counts.tolist()
        return found

    def drop_rows(self) -> None:
        """Drop rows and cells that were not taken; text codes stay."""
        self.rows = 0
        self._library.reader_clear(self._reader)

    def forget(self) -> None:
        """Take over what is left and reset the reader, text codes included."""
        self.take()
        self._library.reader_forget(self._reader)
        self._reset_codes()

    def _take_cells(self, first: int, inner: int, at: int, kind: int, key: str, count: int, tokens: int) -> None:
        """Add cells of one kind, with as many distinct texts or JSON values, to the argument column `key`."""
        name = _KINDS[kind]
        codes = CodePlace()
        table = self._columns.table(key, name)
        if table is not None:
            numbers = self._key_codes[inner, at, kind]
            if tokens > numbers.known:
                numbers.add(table.encode_json(self._json("reader_key_tokens", inner, at, kind, numbers.known)))
            codes = numbers.place()
        places = self._columns.reserve_cells(key, name, count)
        if places is not None:
            self._library.reader_take_cells(self._reader, inner, at, kind, first, ctypes.byref(codes), *places)

    def _learn_threads(self) -> None:
        known = self._threads.known
        count = self._library.reader_threads(self._reader, known, None)
        if count == known:
            return
        fields = np.empty((count - known, 4), np.int64)
        self._library.reader_threads(self._reader, known, fields.ctypes.data)
        self._thread_ids += self._texts(_THREAD_IDS, len(self._thread_ids))
        pairs = [(self._id(*row[:2]), self._id(*row[2:])) for row in fields.tolist()]
        self._threads.add(self._columns.threads.encode(pairs))

    def _id(self, kind: int, value: int) -> int | str | None:
        return value if kind == _INTEGER_ID else self._thread_ids[value] if kind == _TEXT_ID else None

    def _texts(self, table: int, known: int) -> list[str]:
        return _JSON_TEXTS.decode(self._json("reader_tokens", table, known))

    def _json(self, function: str, *which: int) -> bytes:
        """Return the JSON array of tokens that a library function writes."""
        tokens: Callable[..., int] = getattr(self._library, function)
        size = ctypes.c_uint64()
        tokens(self._reader, *which, None, ctypes.byref(size))
        content = np.empty(size.value, np.uint8)  # a buffer of ctypes would be of a new type for each size
        tokens(self._reader, *which, content.ctypes.data, ctypes.byref(size))
        return content.tobytes()
