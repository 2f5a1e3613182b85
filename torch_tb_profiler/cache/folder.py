"""A bounded folder of this machine: whole files under their names, the least recently used go first."""

from __future__ import annotations

import logging
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

logger = logging.getLogger(__name__)

_PART = ".part"
STALE_SECONDS = 3600.0
"""A file that is being written for longer than this was left behind by a process that was killed."""

LOOKS = 64
"""The folder is looked through each time it has grown by this part of its limit."""


class AbsentError(OSError):
    """What should be written is not there; raised by a `write`."""


class BoundedFolder:
    """Files appear whole or not at all; several processes and servers may share the folder."""

    def __init__(self, folder: Path, limit: int) -> None:
        self.path = folder
        self._limit = limit
        self._grown = limit  # bytes since the folder was last looked through; at first nobody knows

    def save(self, name: str, write: Callable[[str], None]) -> bool:
        """Let `write(path)` make a file, then give it its name.

        False if it cannot be kept (disk full, no permission, larger than the limit), which costs nothing else.
        """
        temporary = None
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle, temporary = tempfile.mkstemp(prefix=".", suffix=_PART, dir=self.path)
            os.close(handle)
            write(temporary)
            size = os.path.getsize(temporary)
            if size > self._limit:
                self.remove(Path(temporary))
                return False
            os.replace(temporary, self.path / name)
        except OSError as error:
            if temporary is not None:
                self.remove(Path(temporary))
            if not isinstance(error, AbsentError):
                logger.warning("the cache in %s cannot be written: %s", self.path, error)
            return False
        self._grown += size
        if self._grown > self._limit // LOOKS:
            self._shrink()
        return True

    def touch(self, path: Path) -> None:
        """Mark as used now."""
        try:
            os.utime(path)
        except OSError:
            logger.debug("%s cannot be marked as used", path.name)

    def remove(self, path: Path) -> None:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            logger.warning("%s cannot be removed: %s", path.name, error)

    def _shrink(self) -> None:
        """Drop the files that were used longest ago until the folder is within its limit."""
        self._grown = 0
        entries = sorted(self._entries())
        total = sum(size for _, size, _ in entries)
        now = time.time()
        for used, size, path in entries:
            part = path.suffix == _PART
            if (total > self._limit and not part) or (part and now - used > STALE_SECONDS):
                self.remove(path)
                total -= size

    def _entries(self) -> Iterator[tuple[float, int, Path]]:
        try:
            with os.scandir(self.path) as listing:
                entries: Sequence[os.DirEntry[str]] = list(listing)
        except OSError:
            return
        for entry in entries:
            try:
                stat = entry.stat()
            except OSError:
                continue  # another server dropped it
            yield stat.st_mtime, stat.st_size, Path(entry.path)
