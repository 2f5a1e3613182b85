"""What a place with traces can do: list its files and open them.

A location lists itself once per call and opens files by the relative paths of that listing; nothing else is
ever opened, so no path that comes from a request can reach the file system.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import BinaryIO, NamedTuple, Protocol


class FileId(NamedTuple):
    """A file with its content: its full name, and what changes whenever the content does (`Entry.identity`)."""

    uri: str
    identity: str


@dataclass(frozen=True, slots=True)
class Entry:
    """A file: `path` relative to the location with "/" separators, stored `size` in bytes.

    `identity` changes whenever the content does (mtime or etag with the size); `mtime` is in epoch seconds,
    None where the storage does not tell.
    """

    path: str
    size: int
    identity: str
    mtime: float | None


@dataclass
class Scan:
    """One listing: the files found, and what could not be listed."""

    entries: list[Entry] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class Location(Protocol):
    """A place that can be listed and read.

    `url` opens it again anywhere and may hold secrets; `label` is the same for people, without them.
    """

    url: str
    label: str
    name: str

    def scan(self) -> Scan:
        """All files below; StorageError if the place itself cannot be listed."""
        ...

    def entry(self, path: str) -> Entry:
        """A listed file as it is now; StorageError if it is gone."""
        ...

    def open(self, path: str) -> BinaryIO:
        """A listed file for reading; StorageError if it cannot be opened."""
        ...

    def uri(self, path: str) -> str:
        """The full name of a listed file, for messages and as part of its identity."""
        ...
