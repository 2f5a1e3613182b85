"""The columnar cache: parsed traces as Arrow files, opened by mapping them into memory.

A trace is one record batch with a single row: every array is a list cell, so arrays of different lengths
share a file and come back as views of the mapped file, without a copy. Pages are shared between processes
and given back to the system under pressure.

A key names the source's place and content and the format below. A mismatch or any damage means that the
file is parsed again, never an error.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import platformdirs

from torch_tb_profiler.settings import Settings

logger = logging.getLogger(__name__)

FORMAT = 1
"""Raise when the columns or what stands in the payloads change; old entries then die out."""


def cache_key(uri: str, identity: str) -> str:
    """Hex name of an entry; tells neither the place nor the credentials of the source."""
    return hashlib.sha256(f"{FORMAT}\0{uri}\0{identity}".encode()).hexdigest()[:40]


class Cache:
    """A bounded folder of entries; turned off by `cache_bytes` 0."""

    def __init__(self, folder: str, limit: int) -> None:
        self._folder = Path(folder or platformdirs.user_cache_dir("torch-tb-profiler"))
        self._limit = limit

    @classmethod
    def from_settings(cls, settings: Settings) -> Cache:
        return cls(settings.cache_dir, settings.cache_bytes)

    @property
    def enabled(self) -> bool:
        return self._limit > 0

    def save_trace(self, key: str, trace: Any) -> bool:
        """Keep a trace; False if it cannot be kept (disk full, no permission), which costs nothing else."""

        def write(path: str) -> None:
            from torch_tb_profiler.arrow import write_trace

            write_trace(trace, path)

        return self._save(f"{key}.arrow", write)

    def save_json(self, key: str, name: str, payload: bytes) -> bool:
        """Keep a small result beside a trace."""

        def write(path: str) -> None:
            Path(path).write_bytes(payload)

        return self._save(f"{key}.{name}.json", write)

    def load_trace(self, key: str) -> Any | None:
        """The trace kept under a key, or None."""
        path = self._folder / f"{key}.arrow"
        if not self.enabled or not path.is_file():
            return None
        from torch_tb_profiler.arrow import read_trace_file

        try:
            trace = read_trace_file(str(path))
            self._touch(path)
        except Exception as error:  # Arrow raises what it likes on damaged files
            logger.warning("the cache entry %s is damaged and is dropped: %s", path.name, error)
            self._remove(path)
            return None
        return trace

    def load_json(self, key: str, name: str) -> bytes | None:
        """A small result kept under a key, or None."""
        path = self._folder / f"{key}.{name}.json"
        if not self.enabled:
            return None
        try:
            payload = path.read_bytes()
            json.loads(payload)
            self._touch(path)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            logger.warning("the cache entry %s is damaged and is dropped: %s", path.name, error)
            self._remove(path)
            return None
        return payload

    def _save(self, name: str, write: Any) -> bool:
        if not self.enabled:
            return False
        temporary = None
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle, temporary = tempfile.mkstemp(prefix=".", suffix=".part", dir=self._folder)
            os.close(handle)
            write(temporary)
            os.replace(temporary, self._folder / name)
        except OSError as error:
            logger.warning("the cache in %s cannot be written: %s", self._folder, error)
            if temporary is not None:
                self._remove(Path(temporary))
            return False
        self._shrink()
        return True

    def _shrink(self) -> None:
        """Drop the entries that were used longest ago until the folder is within its limit."""
        entries = sorted(self._entries())
        total = sum(size for _, size, _ in entries)
        for _, size, path in entries:
            if total <= self._limit:
                return
            self._remove(path)
            total -= size

    def _entries(self) -> Iterator[tuple[float, int, Path]]:
        try:
            listing: Sequence[os.DirEntry[str]] = list(os.scandir(self._folder))
        except OSError:
            return
        for entry in listing:
            try:
                stat = entry.stat()
            except OSError:
                continue  # another server dropped it
            yield stat.st_mtime, stat.st_size, Path(entry.path)

    @staticmethod
    def _touch(path: Path) -> None:
        try:
            os.utime(path)
        except OSError:
            logger.debug("%s cannot be marked as used", path.name)

    @staticmethod
    def _remove(path: Path) -> None:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            logger.warning("%s cannot be removed: %s", path.name, error)
