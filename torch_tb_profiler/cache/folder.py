"""A local folder with a size limit: writes are atomic, and the least recently used files are evicted first."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

logger = logging.getLogger(__name__)

_PART = ".part"
MIN_STALE_SECONDS = 3600.0
"""A partial file older than this was left behind by a process that was killed."""

EVICTIONS_PER_LIMIT = 64
"""The folder is checked for eviction each time that it has grown by its limit divided by this."""


_BUFFER_BYTES = 1 << 16
"""Bytes that are written at once: most files have fewer."""


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


class AbsentError(OSError):
    """The content to write does not exist; raised by the `write` of `BoundedFolder.save`."""


class BoundedFolder:
    """A folder of files that appear complete or not at all; several processes and servers may share it."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.path = folder
        self._max_bytes = max_bytes
        self._grown_bytes = max_bytes  # since the last check; unknown at first, so the first save checks

    def save(self, name: str, write: Callable[[BinaryIO], None]) -> bool:
        """Let `write(file)` fill a temporary file, then rename it to `name`.

        Return False if it can't be stored (disk full, no permission, larger than the limit), which is no error.
        """
        temporary = None
        path = f"{self.path}{os.sep}.{os.urandom(8).hex()}{_PART}"
        try:
            with self._create(path) as file:
                temporary = path
                write(file)
            size = os.path.getsize(path)
            if size > self._max_bytes:
                self.remove(Path(temporary))
                return False
            os.replace(temporary, f"{self.path}{os.sep}{name}")
        except OSError as error:
            if temporary is not None:
                self.remove(Path(temporary))
            if not isinstance(error, AbsentError):
                logger.warning("can't write to the cache in %s: %s", self.path, error)
            return False
        self._grown_bytes += size
        if self._grown_bytes > self._max_bytes // EVICTIONS_PER_LIMIT:
            self._evict()
        return True

    def _create(self, path: str) -> BinaryIO:
        """Create a file in the folder that only the user may read, and the folder if it isn't there."""
        try:
            return open(path, "xb", _BUFFER_BYTES, opener=_open_private)
        except FileNotFoundError:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            return open(path, "xb", _BUFFER_BYTES, opener=_open_private)

    def touch(self, path: Path) -> None:
        """Mark a file as used now."""
        try:
            os.utime(path)
        except OSError:
            logger.debug("can't mark %s as used", path.name)

    def remove(self, path: Path) -> None:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            logger.warning("can't remove %s: %s", path.name, error)

    def _evict(self) -> None:
        """Remove the least recently used files until the folder is within its limit."""
        self._grown_bytes = 0
        entries = sorted(self._entries())
        total = sum(size for _, size, _ in entries)
        now = time.time()
        for used, size, name in entries:
            part = name.endswith(_PART)
            if (total > self._max_bytes and not part) or (part and now - used > MIN_STALE_SECONDS):
                self.remove(self.path / name)
                total -= size

    def _entries(self) -> Iterator[tuple[float, int, str]]:
        """Yield (time of last use, bytes, name) of each file: a path for each of 20,000 would take longest."""
        try:
            with os.scandir(self.path) as listing:
                entries: Sequence[os.DirEntry[str]] = list(listing)
        except OSError:
            return
        for entry in entries:
            try:
                stat = entry.stat()
            except OSError:
                continue  # another server evicted it
            yield stat.st_mtime, stat.st_size, entry.name
