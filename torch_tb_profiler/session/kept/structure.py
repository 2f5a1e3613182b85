"""The name of what the cache keeps of a file: it tells the structure, so that nothing of another one is found."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from functools import lru_cache

import msgspec

from torch_tb_profiler import views
from torch_tb_profiler.cache import cache_key
from torch_tb_profiler.model.catalog import EMPTY_CATALOG, Catalog
from torch_tb_profiler.storage import FileId

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(views.__file__)))


def entry_key(file: FileId, catalog: Catalog = EMPTY_CATALOG) -> str:
    """The name of what a cache holds of a file, as this program writes it with the views it has.

    catalog  the user's devices: figures that rest on other ones are in another entry
    """
    devices = msgspec.json.encode(catalog, order="deterministic").decode()
    return cache_key(file, f"{structure(views.SLUGS)}; {devices}")


@lru_cache(maxsize=1)
def structure(slugs: tuple[str, ...]) -> str:
    """Of the columns, the summary, and what is made of every trace for each tab.

    All of it follows from the program's text, which also says how each field is computed. Reading it takes 5 ms;
    asking the types would take the import of all views before the first byte of a trace is read.
    """
    digest = hashlib.sha256()
    for name, path in sorted(_files(_PACKAGE)):
        with open(path, "rb") as file:
            text = file.read()
        digest.update(f"{name}\0{len(text)}\0".encode())
        digest.update(text)
    return f"{' '.join(slugs)}; {digest.hexdigest()}"


def _files(folder: str, inside: str = "") -> Iterator[tuple[str, str]]:
    """The program's files: their names in the package, and where they lie."""
    with os.scandir(folder) as listing:
        for entry in listing:
            name = f"{inside}{entry.name}"
            if entry.name.endswith(".py"):
                yield name, entry.path
            elif entry.is_dir() and entry.name not in ("__pycache__", "static"):
                yield from _files(entry.path, f"{name}/")
