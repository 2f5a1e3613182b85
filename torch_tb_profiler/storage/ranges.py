"""A remote file as a stream: read block by block, the next one on its way while this one is parsed."""

from __future__ import annotations

import io
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from torch_tb_profiler.base.errors import StorageError

logger = logging.getLogger(__name__)

BLOCK = 8 << 20
WAITS = (0.2, 1.0, 3.0)
"""Seconds before each further attempt at a block whose connection broke."""


class RangeReader(io.RawIOBase):
    """Reads `size` bytes forward through `fetch(start, end)`.

    A block that cannot be fetched is asked for again, so a broken connection resumes where it broke.
    Raises StorageError when it stays broken, or when the file has become shorter than `size`.
    """

    def __init__(self, fetch: Callable[[int, int], bytes], size: int, where: str) -> None:
        self._fetch = fetch
        self._size = size
        self._where = where
        self._block = memoryview(b"")
        self._asked = 0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="profiler-fetch")
        self._stopped = threading.Event()
        self._next: Future[bytes] | None = self._ask()

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        if not self._block and self._next is not None:
            self._block = memoryview(self._next.result())
            self._next = self._ask()
        done = min(len(target), len(self._block))
        target[:done] = self._block[:done]
        self._block = self._block[done:]
        return done

    def close(self) -> None:
        self._stopped.set()
        self._thread.shutdown(wait=False, cancel_futures=True)
        super().close()

    def _ask(self) -> Future[bytes] | None:
        start, self._asked = self._asked, min(self._asked + BLOCK, self._size)
        return self._thread.submit(self._get, start, self._asked) if self._asked > start else None

    def _get(self, start: int, end: int) -> bytes:
        for wait in (*WAITS, None):
            try:
                block = self._fetch(start, end)
            except Exception as error:  # every driver has its own exceptions
                if wait is None:
                    raise StorageError(
                        f"reading broke off at byte {start:,} ({type(error).__name__})",
                        where=self._where,
                        hint="check the connection, then try again",
                    ) from error
                logger.info("%s: byte %d again after %s", self._where, start, type(error).__name__)
                if self._stopped.wait(wait):
                    break
                continue
            if len(block) == end - start:
                return block
            raise StorageError(
                f"the file ends at byte {start + len(block):,} and not at {self._size:,}: it changed meanwhile",
                where=self._where,
                hint="it is read again once it is whole",
            )
        raise StorageError("reading was stopped", where=self._where)
