"""What the tabs of a trace answer first, made in a worker once the trace is looked at and kept with it."""

from __future__ import annotations

from dataclasses import replace

from torch_tb_profiler.cache import Cache
from torch_tb_profiler.ingest import without_gc
from torch_tb_profiler.model.ranks import split
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.session.jobs import LoadRequest
from torch_tb_profiler.session.kept.structure import entry_key
from torch_tb_profiler.session.kept.summary import encode, result_name
from torch_tb_profiler.view import TraceView
from torch_tb_profiler.views import all_views, find_view

_open: dict[str, Trace] = {}
"""The trace of the job before, with what was derived from it, by its key."""


def slugs_ahead() -> tuple[str, ...]:
    """The views whose first answers are made ahead, in the order of the navigation."""
    return tuple(view.slug for view in all_views() if isinstance(view, TraceView) and view.kept == "asked")


def answer_in_worker(request: LoadRequest, part: int | None, slug: str, cache_dir: str, cache_bytes: int) -> None:
    """Make and keep what a view answers without parameters; nothing if that is kept, or the trace is lost."""
    cache = Cache(cache_dir, cache_bytes)
    key, name = entry_key(cache, request.id, request.catalog), result_name(slug, part)
    if cache.load_json(key, name) is not None:
        return
    if key not in _open:
        kept = cache.load_trace(key)
        if kept is None:
            return
        _open.clear()
        _open[key] = replace(kept, catalog=request.catalog)
    trace = _open[key] if part is None else split(_open[key])[part]
    view = find_view(slug)
    assert isinstance(view, TraceView)
    with without_gc():
        cache.save_json(key, name, encode(view.build(trace, view.params())))
