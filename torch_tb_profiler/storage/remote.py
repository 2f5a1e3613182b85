"""Buckets and every other storage that fsspec supports.

Files are read forward in blocks: the next one is fetched while the current one is parsed.
"""

from __future__ import annotations

import io
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as WaitTimeout
from datetime import datetime
from functools import partial
from typing import Any, BinaryIO, TypeVar, cast

from torch_tb_profiler.base.errors import StorageError
from torch_tb_profiler.storage.drivers import connect, without_secrets
from torch_tb_profiler.storage.location import FileEntry, Scan

logger = logging.getLogger(__name__)

T = TypeVar("T")

LISTING_SECONDS = 60.0
"""Longest time a listing may take before the storage counts as not responding."""

BLOCK_BYTES = 8 << 20
"""Bytes of a file that are fetched at once."""

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


class RemoteLocation:
    """A prefix in a bucket; connects on first use."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.label = without_secrets(url).rstrip("/")
        self.name = self.label.rsplit("/", 1)[-1] or self.label
        self._connection: tuple[Any, str] | None = None
        self._lock = threading.Lock()
        self._listing: Future[dict[str, Any]] | None = None

    def _connect(self) -> tuple[Any, str]:
        with self._lock:
            if self._connection is None:
                self._connection = connect(self.url)
            return self._connection

    def scan(self) -> Scan:
        filesystem, root = self._connect()
        listed = self._call_with_timeout(lambda: filesystem.find(root, detail=True))
        if not isinstance(listed, dict):  # some drivers omit the details of a single file
            listed = {path: self._call_with_timeout(partial(filesystem.info, path)) for path in listed}
        if not listed and not self._call_with_timeout(lambda: filesystem.exists(root)):
            raise StorageError("there is no such folder or bucket", where=self.label)
        entries = [
            _entry(path[len(root) :].lstrip("/") or path.rsplit("/", 1)[-1], info)
            for path, info in sorted(listed.items())
            if not path.endswith("/")  # a placeholder that web consoles create for an empty folder
        ]
        return Scan(entries)

    def entry(self, path: str) -> FileEntry:
        filesystem, _ = self._connect()
        try:
            return _entry(path, filesystem.info(self._full_path(path)))
        except Exception as error:  # every driver has its own exceptions
            raise StorageError(_failure_text("the file cannot be found", error), where=self.uri(path)) from error

    def open(self, path: str) -> BinaryIO:
        filesystem, _ = self._connect()
        full = self._full_path(path)

        def fetch(start: int, end: int) -> bytes:
            return bytes(filesystem.cat_file(full, start=start, end=end))

        size = self.entry(path).size
        return cast(BinaryIO, RangeReader(fetch, size, self.uri(path)))

    def create(self, folder: str, stem: str, suffix: str, content: bytes) -> str:
        raise StorageError(
            "nothing can be saved in the log folder: it isn't on the server's machine",
            where=self.label,
            hint="copy instead",
        )

    def uri(self, path: str) -> str:
        return f"{self.label}/{path}"

    def _full_path(self, path: str) -> str:
        filesystem, root = self._connect()
        single = path == root.rsplit("/", 1)[-1] and filesystem.isfile(root)
        return root if single else f"{root}/{path}"

    def _call_with_timeout(self, call: Callable[[], T]) -> T:
        """Return the result of `call`; raise StorageError if it fails or takes longer than LISTING_SECONDS."""
        if self._listing is not None and not self._listing.done():
            raise self._timeout_error()
        executor = ThreadPoolExecutor(1, thread_name_prefix="profiler-list")
        future = executor.submit(call)
        self._listing = cast("Future[dict[str, Any]]", future)
        executor.shutdown(wait=False)
        try:
            return future.result(LISTING_SECONDS)
        except WaitTimeout as error:
            if future.done():
                raise StorageError(
                    _failure_text("the storage cannot be listed", error), where=self.label
                ) from error
            raise self._timeout_error() from error
        except FileNotFoundError as error:
            raise StorageError("there is no such folder or bucket", where=self.label) from error
        except Exception as error:  # every driver has its own exceptions
            raise StorageError(
                _failure_text("the storage cannot be listed", error),
                where=self.label,
                hint="check the address, the connection and the credentials",
            ) from error

    def _timeout_error(self) -> StorageError:
        return StorageError(
            f"the storage has not responded within {LISTING_SECONDS:.0f} s",
            where=self.label,
            hint="check the address and the connection; the page continues by itself once the storage responds",
        )


def _failure_text(what: str, error: BaseException) -> str:
    """Return `what` with the kind of failure; the driver's own message may carry addresses with signatures."""
    if isinstance(error, PermissionError):
        return f"{what}: access is denied"
    return f"{what} ({type(error).__name__})"


def _entry(path: str, info: dict[str, Any]) -> FileEntry:
    size = int(info.get("size") or 0)
    changed = info.get("mtime") or info.get("LastModified") or info.get("last_modified") or info.get("created")
    stamp = changed.timestamp() if isinstance(changed, datetime) else changed
    version = info.get("ETag") or info.get("etag") or info.get("md5Hash") or stamp
    return FileEntry(path, size, f"{size}-{version}", float(stamp) if isinstance(stamp, (int, float)) else None)
