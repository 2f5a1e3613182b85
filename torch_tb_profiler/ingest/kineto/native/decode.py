"""Decode blocks of events with the native reader, on several threads where some were lent.

A block that the native reader isn't sure of is decoded by `BlockDecoder`. Each thread has a reader of its own, and
what the readers hold is taken over in the order of the file.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any

import msgspec

from torch_tb_profiler.base.threads import borrowed_threads
from torch_tb_profiler.ingest.kineto.columns import EventColumns
from torch_tb_profiler.ingest.kineto.decode import BlockDecoder
from torch_tb_profiler.ingest.kineto.document import DamagedBlockError, DetachedBlock, ReadAhead
from torch_tb_profiler.ingest.kineto.native.library import NativeLibrary
from torch_tb_profiler.ingest.kineto.native.reader import NativeReader

_MIN_TAKE_ROWS = 1 << 16
"""Fewest rows taken over at once, so that numpy's call overhead is small."""

_MAX_TOKEN_BYTES = 1 << 24
"""Most bytes of texts in a reader; a file with a new text in each event would be held twice otherwise."""

READER_COUNT = 2
"""Readers that work ahead: one reads while the result of the other is taken over, which takes half as long."""

BLOCKS_PER_JOB = 16
"""Blocks of one job: enough that handing it over costs little, few enough that its columns stay small."""

DAMAGE_ERRORS = (msgspec.DecodeError, json.JSONDecodeError, UnicodeDecodeError, RecursionError)
"""Errors that `BlockDecoder` raises for a block that is not JSON."""

TakeOverBlocks = Callable[[NativeReader, Sequence[DetachedBlock]], int]
"""Takes over what a reader read of a job; returns how many of its blocks could be read."""


class NativeDecoder(BlockDecoder):
    """A BlockDecoder that reads blocks in C where the result is certain to be the same."""

    def __init__(self, columns: EventColumns, library: NativeLibrary) -> None:
        super().__init__(columns)
        self._library = library
        self._reader = NativeReader(columns, library)

    def create_read_ahead(self, note: Callable[[int], None]) -> ReadAhead | None:
        """Return a reader that uses the threads lent to this one, or None if there are none."""
        threads = borrowed_threads()
        if threads is None:
            return None
        readers = [NativeReader(self._columns, self._library) for _ in range(READER_COUNT)]
        return ThreadedReadAhead(readers, threads, self._prepare, partial(self._take_over, note))

    @property
    def events(self) -> int:
        return super().events + self._reader.rows

    def add(self, block: bytes | memoryview) -> int:
        """Append the events of a block; return how many entries of the array were no objects.

        Raises as `BlockDecoder.add` does, and MemoryError.
        """
        reader = self._reader
        self._prepare(reader)
        reader.read([block])
        if not reader.read_blocks:
            self.finish()
            return super().add(block)
        self._assign_codes(reader)
        if reader.rows >= _MIN_TAKE_ROWS:
            reader.take()
        return 0

    def add_objects(self, objects: Sequence[Any]) -> int:
        self.finish()
        return super().add_objects(objects)

    def finish(self) -> None:
        """Take over what the reader holds and reset it."""
        self._reader.forget()

    def _prepare(self, reader: NativeReader) -> None:
        """Make the reader round times as `BlockDecoder` does from here on."""
        if self.uses_decimals:
            reader.use_decimals()

    def _assign_codes(self, reader: NativeReader) -> None:
        """Assign codes to the texts that the reader met in its last blocks."""
        reader.learn()
        if reader.sizes[-1].decimals:
            self.use_decimals()
        if reader.sizes[-1].bytes > _MAX_TOKEN_BYTES:
            reader.forget()

    def _take_over(
        self, note: Callable[[int], None], reader: NativeReader, blocks: Sequence[DetachedBlock]
    ) -> int:
        """Append what a reader read of these blocks to the columns, and decode the blocks it did not read.

        Return how many blocks precede the first damaged one.
        """
        self._reader.take()
        if self.uses_decimals and any(sizes.rounded for sizes in reader.sizes):
            # An earlier block, read at the same time, was the first whose times need decimals.
            reader.drop_rows()
            self._prepare(reader)
            reader.read([each.block for each in blocks])
        done = 0
        while True:
            if reader.read_blocks:
                done += reader.read_blocks
                self._assign_codes(reader)
                reader.take()
                note(0)
            if done == len(blocks):
                return done
            reader.forget()
            try:
                note(super().add(blocks[done].block))
            except DAMAGE_ERRORS:
                return done
            done += 1
            self._prepare(reader)
            reader.read([each.block for each in blocks[done:]])


class ThreadedReadAhead:
    """A `ReadAhead` on several threads; the thread that cuts blocks takes over what the others read."""

    def __init__(
        self,
        readers: Sequence[NativeReader],
        threads: Executor,
        prepare: Callable[[NativeReader], None],
        take: TakeOverBlocks,
    ):
        self._free = list(readers)
        self._threads = threads
        self._prepare, self._take_over = prepare, take
        self._gathered: list[DetachedBlock] = []
        self._running: deque[tuple[NativeReader, list[DetachedBlock], Future[None]]] = deque()
        self._buffers: list[bytearray] = []

    def buffer(self, size: int) -> bytearray:
        if self._buffers and len(self._buffers[-1]) >= size:
            return self._buffers.pop()
        self._buffers.clear()
        return bytearray(size)

    def add(self, block: DetachedBlock) -> None:
        self._gathered.append(block)
        if len(self._gathered) >= BLOCKS_PER_JOB:
            self._start()

    def drain(self) -> None:
        if self._gathered:
            self._start()
        while self._running:
            self._take()

    def _start(self) -> None:
        if not self._free:
            self._take()
        job, self._gathered = self._gathered, []
        reader = self._free.pop()
        self._prepare(reader)
        self._running.append((reader, job, self._threads.submit(reader.read, [each.block for each in job])))

    def _take(self) -> None:
        reader, job, done = self._running.popleft()
        done.result()
        count = self._take_over(reader, job)
        if count < len(job):
            raise DamagedBlockError([*job[count:], *self._abandon_jobs(), *self._gathered])
        self._free.append(reader)
        self._buffers += [each.buffer for each in job]

    def _abandon_jobs(self) -> list[DetachedBlock]:
        """Wait for the running jobs and return all their blocks."""
        jobs = []
        while self._running:
            _, job, done = self._running.popleft()
            done.exception()
            jobs += job
        return jobs
