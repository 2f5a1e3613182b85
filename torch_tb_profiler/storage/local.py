"""Folders and files on this machine."""

from __future__ import annotations

import contextlib
import itertools
import os
from typing import BinaryIO

from torch_tb_profiler.base.errors import StorageError
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.storage.location import FileEntry, Scan

SKIPPED_FOLDERS = frozenset(("__pycache__", ".git", ".ipynb_checkpoints", ".venv", "node_modules"))
"""Folders that never hold traces and may hold many files."""

_SCHEME = lazy_regex(r"^([A-Za-z][A-Za-z0-9+.-]+)://")


def local_path(url: str) -> str | None:
    """Return the local path of a URL or path, with `~` and `$VAR` expanded, or None for a remote URL."""
    scheme = _SCHEME.match(url)
    if scheme and scheme.group(1).lower() not in ("file", "local"):
        return None
    return os.path.expandvars(os.path.expanduser(url[scheme.end() :] if scheme else url))


class LocalLocation:
    """A folder on this machine, or a single file, whose listing then holds only that file."""

    def __init__(self, path: str) -> None:
        self.url = self.label = os.path.abspath(path)
        self.name = os.path.basename(self.url) or self.url

    def scan(self) -> Scan:
        if os.path.isfile(self.url):
            self.name = os.path.basename(self._folder) or self._folder
            return Scan([_entry(os.path.basename(self.url), os.stat(self.url))])
        self._check_exists()
        scan = Scan()
        self._walk(self.url, "", scan, frozenset())
        self._check_exists()  # what was removed or renamed on the way looks like a folder with fewer files
        return scan

    def _check_exists(self) -> None:
        if not os.path.isdir(self.url):
            raise StorageError("there is no such folder or file", where=self.url, hint="check the path")

    @property
    def _folder(self) -> str:
        return os.path.dirname(self.url) if os.path.isfile(self.url) else self.url

    def _walk(self, folder: str, prefix: str, scan: Scan, ancestors: frozenset[tuple[int, int]]) -> None:
        try:
            stat = os.stat(folder)
            if (stat.st_dev, stat.st_ino) in ancestors:
                return  # a symbolic link back to an ancestor
            ancestors = ancestors | {(stat.st_dev, stat.st_ino)}
            with os.scandir(folder) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            if not prefix:
                raise StorageError(f"the folder cannot be listed: {error.strerror}", where=folder) from error
            scan.problems.append(f"{prefix.rstrip('/')}: {error.strerror}")
            return
        for entry in entries:
            try:
                if entry.is_dir():
                    if entry.name not in SKIPPED_FOLDERS:
                        self._walk(entry.path, f"{prefix}{entry.name}/", scan, ancestors)
                elif entry.is_file():
                    scan.entries.append(_entry(prefix + entry.name, entry.stat()))
            except OSError as error:
                scan.problems.append(f"{prefix}{entry.name}: {error.strerror}")

    def entry(self, path: str) -> FileEntry:
        try:
            return _entry(path, os.stat(self.uri(path)))
        except OSError as error:
            raise StorageError(f"the file cannot be found: {error.strerror}", where=self.uri(path)) from error

    def open(self, path: str) -> BinaryIO:
        try:
            return open(os.path.join(self._folder, *path.split("/")), "rb", buffering=0)
        except OSError as error:
            raise StorageError(f"the file cannot be opened: {error.strerror}", where=self.uri(path)) from error

    def create(self, folder: str, stem: str, suffix: str, content: bytes) -> str:
        where = self.uri(folder)
        try:
            os.makedirs(where, exist_ok=True)
            for number in itertools.count(1):
                name = f"{stem}{suffix}" if number == 1 else f"{stem}-{number}{suffix}"
                with contextlib.suppress(FileExistsError), open(os.path.join(where, name), "xb") as file:
                    file.write(content)
                    break
        except OSError as error:
            raise StorageError(
                f"nothing can be saved in the log folder: {error.strerror}",
                where=where,
                hint="allow this server to write there, or copy instead",
            ) from error
        return f"{folder}/{name}"

    def uri(self, path: str) -> str:
        return os.path.join(self._folder, *path.split("/"))


def _entry(path: str, stat: os.stat_result) -> FileEntry:
    identity = f"{stat.st_size}-{stat.st_mtime_ns}-{stat.st_ino}"
    return FileEntry(path, stat.st_size, identity, stat.st_mtime)
