"""Buckets and everything else that fsspec reaches."""

from __future__ import annotations

from datetime import datetime
from typing import Any, BinaryIO, cast

import fsspec

from torch_tb_profiler.errors import MissingExtraError, StorageError
from torch_tb_profiler.storage.location import Entry, Scan

_EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs", "az": "blob", "abfs": "blob", "hdfs": "hdfs"}


class RemoteLocation:
    """A prefix of a bucket; connects at the first use."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self.name = self.url.rsplit("/", 1)[-1] or self.url
        self._connection: tuple[Any, str] | None = None

    def _connect(self) -> tuple[Any, str]:
        if self._connection is None:
            scheme = self.url.split("://", 1)[0].lower()
            try:
                self._connection = fsspec.core.url_to_fs(self.url)
            except ImportError as error:
                extra = _EXTRAS.get(scheme)
                install = f'pip install "torch-tb-profiler[{extra}]"' if extra else str(error)
                raise MissingExtraError(
                    f"reading {scheme}:// needs a driver that is not installed", where=self.url, hint=install
                ) from error
            except ValueError as error:
                raise StorageError(f"{scheme}:// is not a known kind of storage", where=self.url) from error
        return self._connection

    def scan(self) -> Scan:
        filesystem, root = self._connect()
        try:
            filesystem.invalidate_cache(root)
            listed = filesystem.find(root, detail=True)
        except FileNotFoundError as error:
            raise StorageError("there is no such folder or bucket", where=self.url) from error
        except Exception as error:  # every driver has its own exceptions
            reason = f"the storage cannot be listed ({type(error).__name__})"
            raise StorageError(reason, where=self.url, hint="check the address and the credentials") from error
        found = Scan()
        for path, info in sorted(listed.items()):
            relative = path[len(root) :].lstrip("/") or path.rsplit("/", 1)[-1]
            found.entries.append(_entry(relative, info))
        return found

    def open(self, path: str) -> BinaryIO:
        filesystem, root = self._connect()
        full = root if path == root.rsplit("/", 1)[-1] and filesystem.isfile(root) else f"{root}/{path}"
        try:
            return cast(BinaryIO, filesystem.open(full, "rb"))
        except Exception as error:
            reason = f"the file cannot be opened ({type(error).__name__})"
            raise StorageError(reason, where=self.uri(path)) from error

    def uri(self, path: str) -> str:
        return f"{self.url}/{path}"


def _entry(path: str, info: dict[str, Any]) -> Entry:
    size = int(info.get("size") or 0)
    changed = info.get("mtime") or info.get("LastModified") or info.get("last_modified") or info.get("created")
    stamp = changed.timestamp() if isinstance(changed, datetime) else changed
    mark = info.get("ETag") or info.get("etag") or info.get("md5Hash") or stamp
    return Entry(path, size, f"{size}-{mark}", float(stamp) if isinstance(stamp, (int, float)) else None)
