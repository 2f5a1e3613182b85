"""Cache tables that were derived from a trace next to it, so that the next process reads them.

Separate from `entries`, which must not import numpy. Tables of small traces are not cached, as they are derived
faster than read; a cache that is shared over a network holds none, as it would send them to every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.cache import Cache
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.session.cache.entries import result_name
from torch_tb_profiler.view import TraceView

MIN_EVENTS = 100_000
"""Tables of traces with fewer events are not cached: all of them together are derived in 0.1 s."""


class CachedTables(msgspec.Struct, frozen=True):
    """The cached tables of a trace, or of one part of its file (`base.memo.TableStore`)."""

    cache: Cache
    key: str
    part: int | None
    prepares: bool = False

    def load(self, name: str, type_of: Callable[[], Any]) -> tuple[Any] | None:
        return self.cache.load_table(self.key, result_name(name, self.part), type_of)

    def save(self, name: str, table: object) -> None:
        self.cache.save_table(self.key, result_name(name, self.part), table)


class CollectedTables(msgspec.Struct, frozen=True):
    """The tables that are derived while a trace is analyzed, before any of them is cached."""

    tables: dict[str, object]
    prepares: bool = False

    def load(self, name: str, type_of: Callable[[], Any]) -> None:
        return None

    def save(self, name: str, table: object) -> None:
        self.tables[name] = table


@contextmanager
def save_tables_at_end(trace: Trace, cache: Cache, key: str) -> Iterator[None]:
    """Cache the `stored` tables that are derived inside the `with` block at its end, and later ones at once."""
    if not _caches_tables(trace, cache):
        yield
        return
    collected = CollectedTables({})
    trace._memo.store = collected
    yield
    trace._memo.store = CachedTables(cache, key, None)
    cache.save_tables(key, collected.tables)


def use_table_cache(
    trace: Trace, cache: Cache, key: str, part: int | None = None, *, prepares: bool = False
) -> None:
    """Let a trace read its `stored` tables from the cache, and write those that it derives.

    prepares  the `prepared` ones are written, too
    """
    if _caches_tables(trace, cache):
        trace._memo.store = CachedTables(cache, key, part, prepares)


def _caches_tables(trace: Trace, cache: Cache) -> bool:
    return cache.enabled and not cache.shared and len(trace) >= MIN_EVENTS


def save_columns(trace: Trace, view: TraceView[Any, Any], part: int | None, cache: Cache, key: str) -> None:
    """Store the derived tables that a view's answers need; a failure costs only time."""
    if view.columns is not None:
        cache.save_columns(key, result_name(view.slug, part), view.columns.of(trace))


@derived
def restore_columns(trace: Trace, view: TraceView[Any, Any], part: int | None, cache: Cache, key: str) -> None:
    """Let a trace use the cached tables of a view, if there are any."""
    if view.columns is not None:
        columns = cache.load_columns(key, result_name(view.slug, part))
        if columns is not None:
            view.columns.restore(trace, columns)
