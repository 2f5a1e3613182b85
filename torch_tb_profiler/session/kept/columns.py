"""Tables that were derived from a trace once, and are mapped from the cache instead."""

from __future__ import annotations

from typing import Any

from torch_tb_profiler.cache import Cache
from torch_tb_profiler.model.trace import Trace, derived
from torch_tb_profiler.session.kept.summary import result_name
from torch_tb_profiler.view import TraceView


def keep_columns(trace: Trace, view: TraceView[Any, Any], part: int | None, cache: Cache, key: str) -> None:
    """Keep what a view's answers take; nothing is lost but time where that is not possible."""
    if view.columns is not None:
        cache.save_columns(key, result_name(view.slug, part), view.columns.of(trace))


@derived
def restore_columns(trace: Trace, view: TraceView[Any, Any], part: int | None, cache: Cache, key: str) -> None:
    """Have a trace answer the tables that are kept for a view, if any are."""
    if view.columns is not None:
        columns = cache.load_columns(key, result_name(view.slug, part))
        if columns is not None:
            view.columns.restore(trace, columns)
