"""The name of what the cache keeps of a file: it tells the structure, so that nothing of another one is found."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from torch_tb_profiler import views
from torch_tb_profiler.cache import Cache, cache_key
from torch_tb_profiler.model.catalog import NO_DEVICES, Catalog
from torch_tb_profiler.storage import FileId

if TYPE_CHECKING:
    from torch_tb_profiler.view import View

_NAME = "structure"
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(views.__file__)))

_known: dict[tuple[str, tuple[str, ...]], str] = {}


def entry_key(cache: Cache, file: FileId, catalog: Catalog = NO_DEVICES) -> str:
    """The name of what a cache holds of a file, as this program writes it with the views it has.

    catalog  the user's devices: figures that rest on other ones are in another entry
    """
    devices = msgspec.json.encode(catalog, order="deterministic").decode()
    return cache_key(file, f"{structure(cache)}; {devices}")


def structure(cache: Cache) -> str:
    """Of the columns, the summary, and what is made of every trace for each tab.

    Spelling it takes all views: the cache of this machine keeps it under the stamp of the program's files.
    The program's text stands for what a type does not say: another one may compute the same fields differently.
    """
    key = cache.place, views.SLUGS
    if key not in _known:
        stamp = _stamp(views.SLUGS)
        kept = None if cache.shared else cache.load_json(stamp, _NAME)
        _known[key] = _spelled(views.SLUGS) if kept is None else kept.decode()
        if kept is None and not cache.shared:
            cache.save_json(stamp, _NAME, _known[key].encode())
    return _known[key]


@lru_cache(maxsize=1)
def _stamp(slugs: tuple[str, ...]) -> str:
    """Another one whenever a file of the program is written."""
    stats = ((file.path, file.stat()) for file in _files(_PACKAGE))
    listed = sorted(f"{path} {stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns}" for path, stat in stats)
    return hashlib.sha256("\0".join((sys.version, *slugs, *listed)).encode()).hexdigest()[:40]


def _files(folder: str) -> Iterator[os.DirEntry[str]]:
    """The program's files."""
    with os.scandir(folder) as listing:
        for entry in listing:
            if entry.name.endswith(".py"):
                yield entry
            elif entry.is_dir() and entry.name not in ("__pycache__", "static"):
                yield from _files(entry.path)


@lru_cache(maxsize=1)
def _spelled(slugs: tuple[str, ...]) -> str:
    from torch_tb_profiler.cache.structure import structure_of
    from torch_tb_profiler.model.trace import Trace
    from torch_tb_profiler.session.kept.summary import FileSummary

    listed = [view for slug in slugs for view in views.views_of(slug)]
    kept = [type_ for view in listed for type_ in _kept_types(view)]
    spelled = structure_of(Trace, FileSummary, *dict.fromkeys(kept))
    digest = hashlib.sha256(spelled.encode())
    for path in sorted(file.path for file in _files(_PACKAGE)):
        digest.update(Path(path).read_bytes())
    return f"{' '.join(view.slug for view in listed)}; {digest.hexdigest()}"


def _kept_types(view: View) -> list[type[Any]]:
    """What is kept with a trace for a view."""
    from torch_tb_profiler.view import RunView, TraceView

    if isinstance(view, RunView):
        details = view.reduction.details
        return [view.reduction.type, *(() if details is None else (details.type,))]
    return [view.payload] if isinstance(view, TraceView) and view.kept != "never" else []
