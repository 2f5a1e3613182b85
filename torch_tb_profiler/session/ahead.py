"""What the tabs of a trace answer first, made in a worker once the trace is looked at and kept with it."""

from __future__ import annotations

from torch_tb_profiler.cache import Cache
from torch_tb_profiler.ingest import without_gc
from torch_tb_profiler.model.ranks import split_trace
from torch_tb_profiler.session.jobs import LoadRequest, derived_from, use_compiled
from torch_tb_profiler.session.kept.columns import keep_columns
from torch_tb_profiler.session.kept.structure import entry_key
from torch_tb_profiler.session.kept.summary import asked_name, encode, result_name
from torch_tb_profiler.view import TraceView
from torch_tb_profiler.views import all_views, find_view


def slugs_ahead() -> tuple[str, ...]:
    """The views whose first answers are made ahead, in the order of the navigation; of a tab the one that opens
    it comes first."""
    views = (view for view in all_views() if isinstance(view, TraceView))
    return tuple(view.slug for view in views if view.kept == "asked" or view.first is not None)


def answer_in_worker(request: LoadRequest, part: int | None, slug: str, cache_dir: str, cache_bytes: int) -> None:
    """Make and keep what a view answers without parameters, or to the parameters it is asked with first (the names
    of these answers stand in its own then, and its columns are kept beside it); nothing if that is kept, or the
    trace is lost."""
    cache = Cache(cache_dir, cache_bytes)
    key, name = entry_key(request.id, request.catalog), result_name(slug, part)
    if cache.load_json(key, name) is not None:
        return
    use_compiled()
    whole = derived_from(cache, key, request.catalog)
    if whole is None:
        return
    trace = whole if part is None else split_trace(whole)[part]
    view = find_view(slug)
    assert isinstance(view, TraceView)
    with without_gc():
        if view.first is None:
            answer = encode(view.build(trace, view.params()))
        else:
            asked = {asked_name(slug, part, params): params for params in view.first(trace)}
            for kept_as, params in asked.items():
                cache.save_json(key, kept_as, encode(view.build(trace, params)))
            keep_columns(trace, view, part, cache, key)
            answer = encode(list(asked))
        cache.save_json(key, name, answer)
