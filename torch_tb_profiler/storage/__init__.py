"""Access to traces wherever they are: local folders and every URL that fsspec supports.

This is the only package that imports fsspec.
"""

from __future__ import annotations

from torch_tb_profiler.storage.local import LocalLocation, local_path
from torch_tb_profiler.storage.location import FileEntry, FileId, Location, Scan
from torch_tb_profiler.storage.store import RemoteStore

__all__ = ["FileEntry", "FileId", "Location", "RemoteStore", "Scan", "local_path", "open_location"]


def open_location(url: str) -> Location:
    """Return the location of a path or URL, without connecting to it."""
    path = local_path(url)
    if path is None:
        from torch_tb_profiler.storage.remote import RemoteLocation

        return RemoteLocation(url)
    return LocalLocation(path)
