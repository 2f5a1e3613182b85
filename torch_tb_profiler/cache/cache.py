"""Cache entries by key and name: in a local folder, with a shared store behind it if there is one."""

from __future__ import annotations

import logging
import mmap
import os
import struct
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from isal import isal_zlib

from torch_tb_profiler.base.errors import StorageError
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.cache.folder import AbsentError, BoundedFolder
from torch_tb_profiler.storage import FileId, RemoteStore, local_path

try:
    from _blake2 import blake2b  # what `hashlib` has, too; that loads OpenSSL first, 2 ms of each command
except ImportError:  # Python may be built without it
    from hashlib import blake2b

if TYPE_CHECKING:
    import numpy.typing as npt

logger = logging.getLogger(__name__)

_CHECKSUM = struct.Struct("<4sI")
_CHECKSUM_MARK = b"TTPC"
_INDEX_LENGTH = struct.Struct("<I")
_ALIGNMENT = 64
"""Tables in one file begin at multiples of this many bytes, as their columns do (`cache.tables`)."""

_CHUNK_BYTES = 1 << 20
"""Bytes of a file that are read at once to compute its checksum."""


def hash_content(content: bytes) -> str:
    """Return 40 hex digits that tell contents apart and reveal nothing of them."""
    return blake2b(content, digest_size=20).hexdigest()


def cache_key(file: FileId, contents: str) -> str:
    """Return the hex name of a file's cache entry; it reveals neither the path nor the credentials of the source.

    contents  describes what the entry holds: entries with other contents get other names
    """
    return hash_content("\0".join((contents, *file)).encode())


def user_folder() -> str:
    """Return the folder of the user's cache, which is used unless the settings name another place."""
    if sys.platform == "linux":  # what platformdirs returns here: importing it takes 6 ms
        root = os.environ.get("XDG_CACHE_HOME", "")
        return os.path.join(root if os.path.isabs(root) else os.path.expanduser("~/.cache"), "torch-tb-profiler")
    import platformdirs

    return platformdirs.user_cache_dir("torch-tb-profiler")


class Cache:
    """Cache entries in a folder, with a shared store behind it if `place` is a URL; a limit of 0 turns it off."""

    def __init__(self, place: str, max_bytes: int) -> None:
        folder = local_path(place) if place else user_folder()
        self._shared = RemoteStore(place) if folder is None else None
        self._folder = BoundedFolder(Path(folder or user_folder()).absolute(), max_bytes)
        self._max_bytes = max_bytes
        self.place = place if folder is None else str(self._folder.path)

    @classmethod
    def from_settings(cls, settings: Settings) -> Cache:
        return cls(settings.cache_dir, settings.cache_bytes)

    @property
    def enabled(self) -> bool:
        return self._max_bytes > 0

    @property
    def shared(self) -> bool:
        """Return whether a read may go over a network."""
        return self._shared is not None

    def save_trace(self, key: str, trace: Any) -> bool:
        """Store a trace; return False if it can't be stored (disk full, no permission), which is no error."""
        entry = _trace_name(key)

        def write(file: BinaryIO) -> None:
            from torch_tb_profiler.cache.arrow import write_trace

            with _write_checksummed(file, entry) as sink:
                write_trace(trace, sink)

        return self._save(entry, write)

    def save_columns(self, key: str, name: str, columns: Mapping[str, npt.NDArray[Any]]) -> bool:
        """Store arrays of numbers next to a trace."""
        entry = _columns_name(key, name)

        def write(file: BinaryIO) -> None:
            from torch_tb_profiler.cache.arrow import write_columns

            with _write_checksummed(file, entry) as sink:
                write_columns(columns, sink)

        return self._save(entry, write)

    def save_table(self, key: str, name: str, table: object) -> bool:
        """Store a table that was derived from a trace next to it."""
        entry = _table_name(key, name)

        def write(file: BinaryIO) -> None:
            from torch_tb_profiler.cache.tables import write_table

            with _write_checksummed(file, entry) as sink:
                write_table(table, sink)

        return self._save(entry, write)

    def save_tables(self, key: str, tables: Mapping[str, object]) -> bool:
        """Store all tables that were derived while a trace was analyzed: one file takes less time than thirty."""
        entry = _tables_name(key)

        def write(file: BinaryIO) -> None:
            from torch_tb_profiler.cache.tables import write_index, write_table

            places, begin = {}, 0
            for name, table in tables.items():
                with _write_checksummed(file, f"{entry}.{name}") as sink:
                    write_table(table, sink)
                places[name] = begin, sink.length
                end = begin + sink.length + _CHECKSUM.size
                file.write(bytes(-end % _ALIGNMENT))
                begin = end + -end % _ALIGNMENT
            with _write_checksummed(file, entry) as sink:
                write_index(places, sink)
            file.write(_INDEX_LENGTH.pack(sink.length))

        return self._save(entry, write)

    def load_table(self, key: str, name: str, type_of: Callable[[], Any]) -> tuple[Any] | None:
        """Return (table,) of a type, its arrays memory-mapped, or None if it isn't there."""
        entry = _tables_name(key)

        def read_one_of_many(path: Path) -> tuple[Any] | None:
            from torch_tb_profiler.cache.tables import read_table

            content = _map_table(path, entry, name)
            return None if content is None else (read_table(content, type_of()),)

        def read(path: Path) -> tuple[Any]:
            from torch_tb_profiler.cache.tables import read_table

            return (read_table(_map_entry(path), type_of()),)

        found: tuple[Any] | None = self._load(entry, read_one_of_many)
        return self._load(_table_name(key, name), read) if found is None else found

    def save_json(self, key: str, name: str, payload: bytes) -> bool:
        """Store a small result next to a trace."""
        return self._save_bytes(_json_name(key, name), payload)

    def save_reduced(self, key: str, name: str, content: bytes) -> bool:
        """Store the reduction of a trace (`view.Reduction`)."""
        return self._save_bytes(_reduced_name(key, name), content)

    def load_trace(self, key: str) -> Any | None:
        """Return the trace of a key, or None."""

        def read(path: Path) -> Any:
            from torch_tb_profiler.cache.arrow import read_trace_file

            return read_trace_file(_map_entry(path))

        return self._load(_trace_name(key), read)

    def remove_trace(self, key: str) -> None:
        """Remove a trace that is no longer needed, if it is there."""
        name = _trace_name(key)
        if self._is_here(name):
            self._remove(name)

    def load_columns(self, key: str, name: str) -> dict[str, npt.NDArray[Any]] | None:
        """Return the memory-mapped arrays of a key, or None."""

        def read(path: Path) -> dict[str, npt.NDArray[Any]]:
            from torch_tb_profiler.cache.arrow import read_columns_file

            return read_columns_file(_map_entry(path))

        columns: dict[str, npt.NDArray[Any]] | None = self._load(_columns_name(key, name), read)
        return columns

    def load_json(self, key: str, name: str) -> bytes | None:
        """Return a small result of a key, or None."""

        def read(path: Path) -> bytes:
            content = _read_bytes(path)
            return content[: checked_length(content, path.name)]

        content: bytes | None = self._load(_json_name(key, name), read)
        return content

    def load_reduced(self, key: str, name: str, mapped: bool) -> memoryview | None:
        """Return the reduction of a trace, or None; memory-mapped, or as a copy, which keeps no file open."""

        def read(path: Path) -> memoryview:
            if mapped:
                return _map_entry(path)
            content = memoryview(_read_bytes(path))
            return content[: checked_length(content, path.name)]

        content: memoryview | None = self._load(_reduced_name(key, name), read)
        return content

    def fetch_reduced(self, key: str, name: str) -> None:
        """Copy the reduction of a trace from the shared store, if it is there and not yet here."""
        entry = _reduced_name(key, name)
        if self.enabled and not self._is_here(entry):
            self._fetch(entry)

    def fetch_json(self, key: str, name: str) -> None:
        """Copy a small result from the shared store, if it is there and not yet here."""
        if self.enabled and not self.has_json(key, name):
            self._fetch(_json_name(key, name))

    def has_json(self, key: str, name: str) -> bool:
        """Return whether this machine holds a small result of a key."""
        return self._is_here(_json_name(key, name))

    def has_reduced(self, key: str, name: str) -> bool:
        """Return whether the reduction of a trace is on this machine."""
        return self._is_here(_reduced_name(key, name))

    def has_trace(self, key: str) -> bool:
        """Return whether this machine or the shared store holds the trace of a key."""
        name = _trace_name(key)
        if (self._folder.path / name).is_file():
            return True
        try:
            return self._shared is not None and self._shared.has(name)
        except StorageError as error:
            logger.warning("%s: %s", error.where, error)
            return False

    def _is_here(self, name: str) -> bool:
        """Return whether the local folder has an entry, which it may lose at any time."""
        return self.enabled and (self._folder.path / name).is_file()

    def _save_bytes(self, name: str, content: bytes) -> bool:
        def write(file: BinaryIO) -> None:
            file.write(append_checksum(content, name))

        return self._save(name, write)

    def _save(self, name: str, write: Callable[[BinaryIO], None]) -> bool:
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
        if not self.enabled:
            return None
        try:
            try:
                content = read(path)
            except FileNotFoundError:
                if not self._fetch(name):
                    return None
                content = read(path)
            self._folder.touch(path)
        except FileNotFoundError:
            return None  # another server evicted it
        except Exception as error:  # Arrow raises many kinds of errors on damaged files
            logger.warning("cache entry %s is damaged, so it is deleted: %s", name, error)
            self._remove(name)
            return None
        return content

    def _fetch(self, name: str) -> bool:
        """Copy an entry from the shared store; return False if it isn't there."""
        shared = self._shared
        if shared is None:
            return False

        def fetch(file: BinaryIO) -> None:
            try:
                if not shared.get(name, file.name):
                    raise AbsentError
            except StorageError as error:
                logger.warning("%s: %s", error.where, error)
                raise AbsentError from error

        return self._folder.save(name, fetch)

    def _remove(self, name: str) -> None:
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


def _table_name(key: str, name: str) -> str:
    return f"{key}.{name}.table"


def _tables_name(key: str) -> str:
    return f"{key}.tables"


def _read_bytes(path: Path) -> bytes:
    """Return the bytes of a small file; `path.read_bytes` asks the system four times more."""
    with open(path, "rb", buffering=0) as file:
        return file.readall()


def _map_entry(path: Path) -> memoryview:
    """Return the memory-mapped content of an entry; DamagedError if its checksum doesn't match."""
    with open(path, "rb", buffering=0) as file:
        length = _check_file(file, path.name)
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))[:length]


def _map_table(path: Path, entry: str, name: str) -> memoryview | None:
    """Return the memory-mapped content of one of the tables in an entry, None if it isn't among them."""
    from torch_tb_profiler.cache.tables import read_index

    with open(path, "rb", buffering=0) as file:
        end = os.fstat(file.fileno()).st_size - _INDEX_LENGTH.size
        (length,) = _INDEX_LENGTH.unpack(_read_at(file, end, _INDEX_LENGTH.size))
        begin = end - _CHECKSUM.size - length
        index = _read_at(file, begin, length + _CHECKSUM.size)
        place = read_index(index[: checked_length(index, entry)]).get(name)
        if place is None:
            return None
        _check_part(file, f"{entry}.{name}", *place)
        content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        return content[place[0] : sum(place)]


def _read_at(file: Any, begin: int, length: int) -> bytes:
    """Return some bytes of a file; DamagedError if it doesn't have them."""
    if begin < 0:
        raise DamagedError("it is truncated")
    file.seek(begin)
    content: bytes = file.read(length)
    if len(content) != length:
        raise DamagedError("it is truncated")
    return content


# Every entry ends with a checksum of its name and its content, so that damage is detected before any of its
# numbers is used, and so is an entry that was put in the place of another. Where an entry has many tables, each of
# them and the index behind them end so.


class DamagedError(ValueError):
    """The content of an entry is not what was written under its name."""


def append_checksum(content: bytes, name: str) -> bytes:
    """Return the content of the entry `name` followed by its checksum."""
    return content + _CHECKSUM.pack(_CHECKSUM_MARK, isal_zlib.crc32(content, _start_checksum(name)))


def checked_length(entry: Any, name: str) -> int:
    """Return how many bytes of a buffer precede its checksum; DamagedError if the checksum doesn't match."""
    view = memoryview(entry)
    length = len(view) - _CHECKSUM.size
    if length < 0:
        raise DamagedError("it is truncated")
    mark, checksum = _CHECKSUM.unpack(view[length:])
    if mark != _CHECKSUM_MARK or isal_zlib.crc32(view[:length], _start_checksum(name)) != checksum:
        raise DamagedError("its checksum doesn't match")
    return length


def _start_checksum(name: str) -> int:
    """Return the checksum of an entry's name, which that of its content continues."""
    return isal_zlib.crc32(name.encode())


def _check_file(file: Any, name: str) -> int:
    """Return how many bytes of a file precede its checksum; DamagedError if the checksum doesn't match."""
    length = os.fstat(file.fileno()).st_size - _CHECKSUM.size
    if length < 0:
        raise DamagedError("it is truncated")
    _check_part(file, name, 0, length)
    return length


def _check_part(file: Any, name: str, begin: int, length: int) -> None:
    """Raise DamagedError if the checksum behind a part of a file isn't that of its name and content.

    The file is read piece by piece: if it were mapped, all of it would count as memory of this process.
    """
    file.seek(begin)
    buffer = memoryview(bytearray(min(_CHUNK_BYTES, length)))
    checksum = _start_checksum(name)
    for left in range(length, 0, -_CHUNK_BYTES):
        piece = buffer[: min(_CHUNK_BYTES, left)]
        if file.readinto(piece) != len(piece):
            raise DamagedError("it is truncated")
        checksum = isal_zlib.crc32(piece, checksum)
    if file.read(_CHECKSUM.size) != _CHECKSUM.pack(_CHECKSUM_MARK, checksum):
        raise DamagedError("its checksum doesn't match")


class _ChecksummedFile:
    """A file that is written forward, and the length and the checksum of what it got so far."""

    def __init__(self, file: BinaryIO, checksum: int) -> None:
        self._file = file
        self.length = 0
        self.checksum = checksum

    def write(self, piece: Any, /) -> None:
        self.length += self._file.write(piece)
        self.checksum = isal_zlib.crc32(piece, self.checksum)


@contextmanager
def _write_checksummed(file: BinaryIO, name: str) -> Iterator[_ChecksummedFile]:
    """Write the entry `name` inside the `with` block; its checksum follows. OSError if that fails."""
    sink = _ChecksummedFile(file, _start_checksum(name))
    yield sink
    file.write(_CHECKSUM.pack(_CHECKSUM_MARK, sink.checksum))
