"""Blocks of events to columns by the native reader; what it is not sure of takes the plain way."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from torch_tb_profiler.ingest.helpers import helpers
from torch_tb_profiler.ingest.kineto.ahead import Ahead, Stretch
from torch_tb_profiler.ingest.kineto.columns import Columns
from torch_tb_profiler.ingest.kineto.decode import BlockDecoder
from torch_tb_profiler.ingest.kineto.native.library import Library
from torch_tb_profiler.ingest.kineto.native.reader import Reader
from torch_tb_profiler.ingest.kineto.native.threads import Threads

_ROWS = 1 << 16
"""So many are taken over at once: numpy's calls then cost little beside what they move."""

_TOKEN_BYTES = 1 << 24
"""What a reader may hold of texts; where every event has its own, it would hold them all again."""

READERS = 3
"""At work ahead: two read while what the third read is taken over."""

DAMAGE = (msgspec.DecodeError, json.JSONDecodeError, UnicodeDecodeError, RecursionError)
"""What the plain way raises for a block that is no JSON."""


class NativeDecoder(BlockDecoder):
    """A BlockDecoder whose blocks are read in C where that is sure to come to the same."""

    def __init__(self, columns: Columns, library: Library) -> None:
        super().__init__(columns)
        self._library = library
        self._reader = Reader(columns, library)

    def ahead(self, note: Callable[[int], None]) -> Ahead | None:
        """Where this thread was lent others, blocks are read on those."""
        threads = helpers()
        if threads is None:
            return None
        readers = [Reader(self._columns, self._library) for _ in range(READERS)]
        return Threads(readers, threads, self._prepare, partial(self._take_over, note))

    @property
    def events(self) -> int:
        return super().events + self._reader.rows

    def add(self, block: bytes | memoryview) -> int:
        """Append the events of a block; returns how many entries of the array were no objects.

        Raises as `BlockDecoder.add` does, and MemoryError.
        """
        reader = self._reader
        self._prepare(reader)
        reader.read([block])
        if not reader.read_blocks:
            self.finish()
            return super().add(block)
        self._number(reader)
        if reader.rows >= _ROWS:
            reader.take()
        return 0

    def add_objects(self, objects: Sequence[Any]) -> int:
        self.finish()
        return super().add_objects(objects)

    def finish(self) -> None:
        """Take over what the reader holds; it then begins anew."""
        self._reader.forget()

    def _prepare(self, reader: Reader) -> None:
        """Both ways agree on how times are rounded from here on."""
        if self.uses_decimals:
            reader.use_decimals()

    def _number(self, reader: Reader) -> None:
        reader.learn()
        if reader.sizes[-1].decimals:
            self.use_decimals()
        if reader.sizes[-1].bytes > _TOKEN_BYTES:
            reader.forget()

    def _take_over(self, note: Callable[[int], None], reader: Reader, stretches: Sequence[Stretch]) -> int:
        """What a reader read ahead of these blocks to the columns, and plainly what it did not read.

        Returns how many there are before the first that is damaged.
        """
        self._reader.take()
        if self.uses_decimals and any(sizes.rounded for sizes in reader.sizes):
            # A block before these, read at the same time, was the first whose times need decimals.
            reader.drop_rows()
            self._prepare(reader)
            reader.read([each.block for each in stretches])
        done = 0
        while True:
            if reader.read_blocks:
                done += reader.read_blocks
                self._number(reader)
                reader.take()
                note(0)
            if done == len(stretches):
                return done
            reader.forget()
            try:
                note(super().add(stretches[done].block))
            except DAMAGE:
                return done
            done += 1
            self._prepare(reader)
            reader.read([each.block for each in stretches[done:]])
