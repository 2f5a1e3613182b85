"""A remote file as a stream of blocks: the next block is prefetched while the current one is parsed."""

from __future__ import annotations

import io
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from torch_tb_profiler.base.errors import StorageError

logger = logging.getLogger(__name__)

BLOCK_BYTES = 8 << 20
RETRY_SECONDS = (0.2, 1.0, 3.0)
"""Seconds to wait before each retry of a block whose connection broke."""


class RangeReader(io.RawIOBase):
    """A forward-only stream of `size` bytes that are fetched with `fetch(start, end)`.

    A block that cannot be fetched is retried, so reading resumes where the connection broke. Reading raises
    StorageError if the connection stays broken or the file has become shorter than `size`.
    """

    def __init__(self, fetch: Callable[[int, int], bytes], size: int, where: str) -> None:
        self._fetch = fetch
        self._size = size
        self._where = where
        self._block = memoryview(b"")
        self._requested = 0
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="profiler-fetch")
        self._stopped = threading.Event()
        self._next: Future[bytes] | None = self._request_next()

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        if not self._block and self._next is not None:
            self._block = memoryview(self._next.result())
            self._next = self._request_next()
        count = min(len(target), len(self._block))
        target[:count] = self._block[:count]
        self._block = self._block[count:]
        return count

    def close(self) -> None:
        self._stopped.set()
        self._executor.shutdown(wait=False, cancel_futures=True)
        super().close()

    def _request_next(self) -> Future[bytes] | None:
        start, self._requested = self._requested, min(self._requested + BLOCK_BYTES, self._size)
        return (
            self._executor.submit(self._fetch_block, start, self._requested) if self._requested > start else None
        )

    def _fetch_block(self, start: int, end: int) -> bytes:
        for wait in (*RETRY_SECONDS, None):
            try:
                block = self._fetch(start, end)
            except Exception as error:  # every driver has its own exceptions
                if wait is None:
                    raise StorageError(
                        f"reading failed at byte {start:,} ({type(error).__name__})",
                        where=self._where,
                        hint="check the connection, then try again",
                    ) from error
                logger.info("%s: retrying from byte %d after %s", self._where, start, type(error).__name__)
                if self._stopped.wait(wait):
                    break
                continue
            if len(block) == end - start:
                return block
            raise StorageError(
                f"the file ends at byte {start + len(block):,}, not at {self._size:,}: "
                "it changed while it was read",
                where=self._where,
                hint="it is read again once it is complete",
            )
        raise StorageError("reading was stopped", where=self._where)
