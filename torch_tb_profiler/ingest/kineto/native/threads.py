"""Blocks read on several threads at once, each with its own reader, and taken over in the order of the file."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future

from torch_tb_profiler.ingest.kineto.ahead import NotReadError, Stretch
from torch_tb_profiler.ingest.kineto.native.reader import Reader

BLOCKS = 16
"""Of a job: long enough that handing it over costs nothing, short enough that its columns stay small."""

TakeOver = Callable[[Reader, Sequence[Stretch]], int]
"""Takes over what a reader read of a job; returns how many of its blocks could be read."""


class Threads:
    """An `Ahead` (see ingest/kineto/ahead.py): the thread that cuts blocks takes over what the others read."""

    def __init__(
        self, readers: Sequence[Reader], helpers: Executor, prepare: Callable[[Reader], None], take: TakeOver
    ):
        self._free = list(readers)
        self._helpers = helpers
        self._prepare, self._take_over = prepare, take
        self._gathered: list[Stretch] = []
        self._running: deque[tuple[Reader, list[Stretch], Future[None]]] = deque()
        self._buffers: list[bytearray] = []

    def buffer(self, size: int) -> bytearray:
        if self._buffers and len(self._buffers[-1]) == size:
            return self._buffers.pop()
        self._buffers.clear()
        return bytearray(size)

    def add(self, stretch: Stretch) -> None:
        self._gathered.append(stretch)
        if len(self._gathered) >= BLOCKS:
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
        self._running.append((reader, job, self._helpers.submit(reader.read, [each.block for each in job])))

    def _take(self) -> None:
        reader, job, done = self._running.popleft()
        done.result()
        count = self._take_over(reader, job)
        if count < len(job):
            raise NotReadError([*job[count:], *self._give_up(), *self._gathered])
        self._free.append(reader)
        self._buffers += [each.buffer for each in job]

    def _give_up(self) -> list[Stretch]:
        """All of the jobs that still run, once they have ended."""
        jobs = []
        while self._running:
            _, job, done = self._running.popleft()
            done.exception()
            jobs += job
        return jobs
