"""Buckets and everything else that fsspec reaches."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as WaitTimeout
from datetime import datetime
from functools import partial
from typing import Any, BinaryIO, TypeVar, cast

from torch_tb_profiler.base.errors import StorageError
from torch_tb_profiler.storage.drivers import connect, without_secrets
from torch_tb_profiler.storage.location import Entry, Scan
from torch_tb_profiler.storage.ranges import RangeReader

ANSWER_SECONDS = 60.0
"""How long a listing may take before the storage counts as not answering."""

T = TypeVar("T")


class RemoteLocation:
    """A prefix of a bucket; connects at the first use."""

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
        listed = self._within_time(lambda: filesystem.find(root, detail=True))
        if not isinstance(listed, dict):  # some drivers forget the details of a single file
            listed = {path: self._within_time(partial(filesystem.info, path)) for path in listed}
        if not listed and not self._within_time(lambda: filesystem.exists(root)):
            raise StorageError("there is no such folder or bucket", where=self.label)
        entries = [
            _entry(path[len(root) :].lstrip("/") or path.rsplit("/", 1)[-1], info)
            for path, info in sorted(listed.items())
            if not path.endswith("/")  # a placeholder that consoles make for an empty folder
        ]
        return Scan(entries)

    def entry(self, path: str) -> Entry:
        filesystem, _ = self._connect()
        try:
            return _entry(path, filesystem.info(self._full(path)))
        except Exception as error:  # every driver has its own exceptions
            raise StorageError(_reason("the file cannot be found", error), where=self.uri(path)) from error

    def open(self, path: str) -> BinaryIO:
        filesystem, _ = self._connect()
        full = self._full(path)

        def fetch(start: int, end: int) -> bytes:
            return bytes(filesystem.cat_file(full, start=start, end=end))

        size = self.entry(path).size
        return cast(BinaryIO, RangeReader(fetch, size, self.uri(path)))

    def uri(self, path: str) -> str:
        return f"{self.label}/{path}"

    def _full(self, path: str) -> str:
        filesystem, root = self._connect()
        single = path == root.rsplit("/", 1)[-1] and filesystem.isfile(root)
        return root if single else f"{root}/{path}"

    def _within_time(self, ask: Callable[[], T]) -> T:
        """The answer of the storage, or StorageError with the reason; never a hang."""
        if self._listing is not None and not self._listing.done():
            raise self._silent()
        thread = ThreadPoolExecutor(1, thread_name_prefix="profiler-list")
        future = thread.submit(ask)
        self._listing = cast("Future[dict[str, Any]]", future)
        thread.shutdown(wait=False)
        try:
            return future.result(ANSWER_SECONDS)
        except WaitTimeout as error:
            if future.done():
                raise StorageError(_reason("the storage cannot be listed", error), where=self.label) from error
            raise self._silent() from error
        except FileNotFoundError as error:
            raise StorageError("there is no such folder or bucket", where=self.label) from error
        except Exception as error:  # every driver has its own exceptions
            raise StorageError(
                _reason("the storage cannot be listed", error),
                where=self.label,
                hint="check the address, the connection and the credentials",
            ) from error

    def _silent(self) -> StorageError:
        return StorageError(
            f"the storage has not answered within {ANSWER_SECONDS:.0f} s",
            where=self.label,
            hint="check the address and the connection; the page goes on by itself when it answers",
        )


def _reason(what: str, error: BaseException) -> str:
    """The kind of failure; a driver's own message may carry addresses with signatures."""
    if isinstance(error, PermissionError):
        return f"{what}: access is denied"
    return f"{what} ({type(error).__name__})"


def _entry(path: str, info: dict[str, Any]) -> Entry:
    size = int(info.get("size") or 0)
    changed = info.get("mtime") or info.get("LastModified") or info.get("last_modified") or info.get("created")
    stamp = changed.timestamp() if isinstance(changed, datetime) else changed
    mark = info.get("ETag") or info.get("etag") or info.get("md5Hash") or stamp
    return Entry(path, size, f"{size}-{mark}", float(stamp) if isinstance(stamp, (int, float)) else None)
