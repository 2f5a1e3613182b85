"""Store and restore tables that are derived from a trace (apart from `entries`, which must not import numpy)."""

from __future__ import annotations

from typing import Any

from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.cache import Cache
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.session.cache.entries import result_name
from torch_tb_profiler.view import TraceView


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
