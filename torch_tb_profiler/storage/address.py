"""Which storage a URL leads to."""

from __future__ import annotations

import os
import re

from torch_tb_profiler.storage.local import LocalLocation
from torch_tb_profiler.storage.location import Location

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
