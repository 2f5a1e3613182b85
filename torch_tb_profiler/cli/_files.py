"""Files that a command writes."""

from __future__ import annotations

import gzip
import os
import sys
from collections.abc import Iterable

from torch_tb_profiler.base.errors import StorageError


def save(path: str, pieces: Iterable[bytes]) -> None:
    """Write a file, whole or not at all, packed if its name ends in .gz; "-" is stdout."""
    if path == "-":
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        return
    partial = f"{path}.part"
    try:
        with gzip.open(partial, "wb", 5) if path.endswith(".gz") else open(partial, "wb") as file:
            for piece in pieces:
                file.write(piece)
        os.replace(partial, path)
    except OSError as error:
        raise StorageError(f"cannot be written: {error.strerror or error}", where=path) from error
    finally:
        if os.path.exists(partial):
            os.remove(partial)
