"""The interface of every storage: list its files and open them.

A location opens files only by the relative paths of its own listing, so no path that comes from a request can
reach the file system.
"""

from __future__ import annotations

from typing import BinaryIO, NamedTuple, Protocol

import msgspec


class FileId(NamedTuple):
    """The full name of a file and the identity of its content (`FileEntry.identity`)."""

    uri: str
    identity: str


class FileEntry(msgspec.Struct, frozen=True):
    """One listed file.

    path      relative to the location, with "/" separators
    size      stored bytes
    identity  changes whenever the content does: size with mtime or etag
    mtime     epoch seconds, or None if the storage has none
    """

    path: str
    size: int
    identity: str
    mtime: float | None


class Scan(msgspec.Struct):
    """The result of listing a location: the files found, and messages about what couldn't be listed."""

    entries: list[FileEntry] = msgspec.field(default_factory=list)
    problems: list[str] = msgspec.field(default_factory=list)


class Location(Protocol):
    """A folder, bucket, or single file that can be listed and read.

    url    opens it again in any process; may hold secrets
    label  the same for people, without secrets
    name   its last part
    """

    url: str
    label: str
    name: str

    def scan(self) -> Scan:
        """List all files below; raise StorageError if the location itself cannot be listed."""
        ...

    def entry(self, path: str) -> FileEntry:
        """Return a listed file as it is now; raise StorageError if it is gone."""
        ...

    def open(self, path: str) -> BinaryIO:
        """Open a listed file for reading; raise StorageError on failure."""
        ...

    def create(self, folder: str, stem: str, suffix: str, content: bytes) -> str:
        """Write a new file in a folder of the location, and return its path; no file is ever replaced.

        The names are the program's own, never a request's. Raises StorageError if it can't be written.
        """
        ...

    def uri(self, path: str) -> str:
        """Return the full name of a listed file, for messages and as part of its identity."""
        ...
