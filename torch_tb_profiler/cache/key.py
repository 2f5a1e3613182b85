"""The name of a cache entry."""

from __future__ import annotations

import hashlib

from torch_tb_profiler.storage import FileId


def cache_key(file: FileId, structure: str) -> str:
    """Hex name of the entry of a file; tells neither the place nor the credentials of the source.

    structure  what tells what the entry holds, as text: entries that hold something else have other names
    """
    return hashlib.sha256("\0".join((structure, *file)).encode()).hexdigest()[:40]
