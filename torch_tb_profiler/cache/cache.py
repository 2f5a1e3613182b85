"""Entries by key and name: in a folder of this machine, and in a shared place behind it if there is one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs

from torch_tb_profiler.base.errors import StorageError
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.cache.folder import AbsentError, BoundedFolder
from torch_tb_profiler.cache.seal import content_length, seal_file, sealed
from torch_tb_profiler.storage import Depot, local_path

if TYPE_CHECKING:
    import numpy.typing as npt

logger = logging.getLogger(__name__)


class Cache:
    """A folder of entries, with a shared one behind it if the place is a URL; turned off by a limit of 0."""

    def __init__(self, place: str, limit: int) -> None:
        own = local_path(place) if place else platformdirs.user_cache_dir("torch-tb-profiler")
        self._shared = Depot(place) if own is None else None
        self._folder = BoundedFolder(
            Path(own or platformdirs.user_cache_dir("torch-tb-profiler")).absolute(), limit
        )
        self._limit = limit
        self.place = place if own is None else str(self._folder.path)

    @classmethod
    def from_settings(cls, settings: Settings) -> Cache:
        return cls(settings.cache_dir, settings.cache_bytes)

    @property
    def enabled(self) -> bool:
        return self._limit > 0

    @property
    def shared(self) -> bool:
        """True if reading may go over a network."""
        return self._shared is not None

    def save_trace(self, key: str, trace: Any) -> bool:
        """Keep a trace; False if it cannot be kept (disk full, no permission), which costs nothing else."""

        def write(path: str) -> None:
            from torch_tb_profiler.cache.arrow import write_trace

            write_trace(trace, path)
            seal_file(path)

        return self._save(_trace_name(key), write)

    def save_columns(self, key: str, name: str, columns: Mapping[str, npt.NDArray[Any]]) -> bool:
        """Keep arrays of numbers beside a trace."""

        def write(path: str) -> None:
            from torch_tb_profiler.cache.arrow import write_columns

            write_columns(columns, path)
            seal_file(path)

        return self._save(_columns_name(key, name), write)

    def save_json(self, key: str, name: str, payload: bytes) -> bool:
        """Keep a small result beside a trace."""
        return self._save(_json_name(key, name), lambda path: _write(path, sealed(payload)))

    def save_reduced(self, key: str, name: str, content: bytes) -> bool:
        """Keep what a trace was reduced to."""
        return self._save(_reduced_name(key, name), lambda path: _write(path, sealed(content)))

    def load_trace(self, key: str) -> Any | None:
        """The trace kept under a key, or None."""

        def read(path: Path) -> Any:
            from torch_tb_profiler.cache.arrow import read_trace_file

            return read_trace_file(_mapped(path))

        return self._load(_trace_name(key), read)

    def load_columns(self, key: str, name: str) -> dict[str, npt.NDArray[Any]] | None:
        """Arrays kept under a key, mapped into memory, or None."""

        def read(path: Path) -> dict[str, npt.NDArray[Any]]:
            from torch_tb_profiler.cache.arrow import read_columns_file

            return read_columns_file(_mapped(path))

        columns: dict[str, npt.NDArray[Any]] | None = self._load(_columns_name(key, name), read)
        return columns

    def load_json(self, key: str, name: str) -> bytes | None:
        """A small result kept under a key, or None."""

        def read(path: Path) -> bytes:
            content = path.read_bytes()
            return content[: content_length(content)]

        content: bytes | None = self._load(_json_name(key, name), read)
        return content

    def load_reduced(self, key: str, name: str, mapped: bool) -> memoryview | None:
        """What a trace was reduced to, or None; mapped into memory, or a copy, which keeps no file open."""

        def read(path: Path) -> memoryview:
            content = memoryview(_mapped(path) if mapped else path.read_bytes())
            return content if mapped else content[: content_length(content)]

        content: memoryview | None = self._load(_reduced_name(key, name), read)
        return content

    def fetch_reduced(self, key: str, name: str) -> None:
        """Bring what a trace was reduced to from the shared place here, if it is there and not yet here."""
        entry = _reduced_name(key, name)
        if self.enabled and not (self._folder.path / entry).is_file():
            self._fetch(entry)

    def fetch_json(self, key: str, name: str) -> None:
        """Bring a small result from the shared place here, if it is there and not yet here."""
        if self.enabled and not self.holds_json(key, name):
            self._fetch(_json_name(key, name))

    def holds_json(self, key: str, name: str) -> bool:
        """True if a small result is kept under a key on this machine."""
        return self.enabled and (self._folder.path / _json_name(key, name)).is_file()

    def holds_trace(self, key: str) -> bool:
        """True if a trace is kept under a key here or in the shared place."""
        name = _trace_name(key)
        if (self._folder.path / name).is_file():
            return True
        try:
            return self._shared is not None and self._shared.holds(name)
        except StorageError as error:
            logger.warning("%s: %s", error.where, error)
            return False

    def _save(self, name: str, write: Callable[[str], None]) -> bool:
        if not self.enabled or not self._folder.save(name, write):
            return False
        if self._shared is None:
            return True
        try:
            self._shared.put(str(self._folder.path / name), name)
        except StorageError as error:
            logger.warning("%s: %s", error.where, error)
            return False
        return True

    def _load(self, name: str, read: Callable[[Path], Any]) -> Any | None:
        path = self._folder.path / name
        if not self.enabled or not (path.is_file() or self._fetch(name)):
            return None
        try:
            content = read(path)
            self._folder.touch(path)
        except FileNotFoundError:
            return None  # another server dropped it
        except Exception as error:  # Arrow raises what it likes on damaged files
            logger.warning("the cache entry %s is damaged and is dropped: %s", name, error)
            self._drop(name)
            return None
        return content

    def _fetch(self, name: str) -> bool:
        """Bring an entry from the shared place; False if it is not there."""
        shared = self._shared
        if shared is None:
            return False

        def fetch(path: str) -> None:
            try:
                if not shared.get(name, path):
                    raise AbsentError
            except StorageError as error:
                logger.warning("%s: %s", error.where, error)
                raise AbsentError from error

        return self._folder.save(name, fetch)

    def _drop(self, name: str) -> None:
        self._folder.remove(self._folder.path / name)
        try:
            if self._shared is not None:
                self._shared.remove(name)
        except StorageError as error:
            logger.warning("%s: %s", error.where, error)


def _trace_name(key: str) -> str:
    return f"{key}.arrow"


def _json_name(key: str, name: str) -> str:
    return f"{key}.{name}.json"


def _reduced_name(key: str, name: str) -> str:
    return f"{key}.{name}.bin"


def _columns_name(key: str, name: str) -> str:
    return f"{key}.{name}.arrow"


def _mapped(path: Path) -> Any:
    """The bytes of an entry as an Arrow buffer, read when they are touched."""
    import pyarrow as pa

    with pa.memory_map(str(path)) as file:
        content = file.read_buffer()
    return content.slice(0, content_length(content))


def _write(path: str, content: bytes) -> None:
    Path(path).write_bytes(content)
