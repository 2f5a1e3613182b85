"""A folder or file by its URL: what is in it, and its bytes.

A location lists itself once per call and opens files by the relative paths of that listing; nothing else is
ever opened, so no path that comes from a request can reach the file system.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import BinaryIO, Protocol

from torch_tb_profiler.base.errors import StorageError

SKIPPED_FOLDERS = frozenset(("__pycache__", ".git", ".ipynb_checkpoints", ".venv", "node_modules"))


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


_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+)://")


def local_path(url: str) -> str | None:
    """The path of a folder or file of this machine, `~` and `$VAR` expanded; None if the URL leads elsewhere."""
    scheme = _SCHEME.match(url)
    if scheme and scheme.group(1).lower() not in ("file", "local"):
        return None
    return os.path.expandvars(os.path.expanduser(url[scheme.end() :] if scheme else url))


def open_location(url: str) -> Location:
    """The location of a path or URL; nothing is touched yet."""
    path = local_path(url)
    if path is None:
        from torch_tb_profiler.storage.remote import RemoteLocation

        return RemoteLocation(url)
    return LocalLocation(path)


class LocalLocation:
    """A folder of this machine, or a single file (then the listing holds that file alone)."""

    def __init__(self, path: str) -> None:
        self.url = self.label = os.path.abspath(path)
        self.name = os.path.basename(self.url) or self.url

    def scan(self) -> Scan:
        if os.path.isfile(self.url):
            self.name = os.path.basename(self._folder) or self._folder
            return Scan([_entry(os.path.basename(self.url), os.stat(self.url))])
        if not os.path.isdir(self.url):
            raise StorageError(
                "there is no such folder or file", where=self.url, hint="check the path given as --logdir"
            )
        found = Scan()
        self._walk(self.url, "", found, frozenset())
        return found

    @property
    def _folder(self) -> str:
        return os.path.dirname(self.url) if os.path.isfile(self.url) else self.url

    def _walk(self, folder: str, prefix: str, found: Scan, above: frozenset[tuple[int, int]]) -> None:
        try:
            here = os.stat(folder)
            if (here.st_dev, here.st_ino) in above:
                return  # a symbolic link back to a folder above
            above = above | {(here.st_dev, here.st_ino)}
            with os.scandir(folder) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            if not prefix:
                raise StorageError(f"the folder cannot be listed: {error.strerror}", where=folder) from error
            found.problems.append(f"{prefix.rstrip('/')}: {error.strerror}")
            return
        for entry in entries:
            try:
                if entry.is_dir():
                    if entry.name not in SKIPPED_FOLDERS:
                        self._walk(entry.path, f"{prefix}{entry.name}/", found, above)
                elif entry.is_file():
                    found.entries.append(_entry(prefix + entry.name, entry.stat()))
            except OSError as error:
                found.problems.append(f"{prefix}{entry.name}: {error.strerror}")

    def entry(self, path: str) -> Entry:
        try:
            return _entry(path, os.stat(self.uri(path)))
        except OSError as error:
            raise StorageError(f"the file cannot be found: {error.strerror}", where=self.uri(path)) from error

    def open(self, path: str) -> BinaryIO:
        try:
            return open(os.path.join(self._folder, *path.split("/")), "rb", buffering=0)
        except OSError as error:
            raise StorageError(f"the file cannot be opened: {error.strerror}", where=self.uri(path)) from error

    def uri(self, path: str) -> str:
        return os.path.join(self._folder, *path.split("/"))


def _entry(path: str, stat: os.stat_result) -> Entry:
    identity = f"{stat.st_size}-{stat.st_mtime_ns}-{stat.st_ino}"
    return Entry(path, stat.st_size, identity, stat.st_mtime)
