"""The work on one file, as functions of plain values so that any executor can run them anywhere.

`load_file` reads and analyzes a trace; `prefetch_answers` builds the first answer of a view from a cached trace.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from shlex import quote
from typing import BinaryIO, TypeVar, cast

import msgspec
from msgspec.structs import replace

from torch_tb_profiler import views
from torch_tb_profiler.base.errors import ShutdownError, StorageError, TooLargeError, TraceError
from torch_tb_profiler.base.memo import Memo
from torch_tb_profiler.base.memory import keeps_freed_memory, resume_recycling
from torch_tb_profiler.base.threads import lend_threads
from torch_tb_profiler.cache import Cache
from torch_tb_profiler.discovery.catalog import combined_identity, ranked_identity
from torch_tb_profiler.executors import ProgressTuple, limited_memory, release_memory, report_progress
from torch_tb_profiler.executors.job import NATIVE_READER
from torch_tb_profiler.ingest import Progress, read_trace, without_gc
from torch_tb_profiler.ingest.runtime import Report, receive_preview
from torch_tb_profiler.model.calls.nesting import use_compiled_functions
from torch_tb_profiler.model.hardware_catalog import EMPTY_CATALOG, HardwareCatalog
from torch_tb_profiler.model.health import HealthNote
from torch_tb_profiler.model.ranks import split_trace, trace_rank, with_fallback_rank
from torch_tb_profiler.model.steps import step_noun
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.session.cache.entries import (
    SUMMARY,
    FileSummary,
    answer_name,
    encode_json,
    entry_key,
    preview_key,
    result_name,
)
from torch_tb_profiler.session.cache.similarity import sketch_names
from torch_tb_profiler.session.cache.tables import save_columns, save_tables_at_end, use_table_cache
from torch_tb_profiler.storage import FileId, Location, open_location
from torch_tb_profiler.view import Tab, TraceView
from torch_tb_profiler.views import all_tabs, all_views, find_tab, find_view

T = TypeVar("T")

_READ_AHEAD_THREADS = 3
"""Threads that read a file ahead, if its format can make use of them."""

_MANY_EVENTS = 500_000
"""What fewer events leave behind is less than a process may keep of freed memory at any time (128 MB)."""

_open: dict[str, Trace] = {}
"""In a worker: the trace of the previous job by its key, with the tables that were derived from it."""


class OtherFormat(msgspec.Struct, frozen=True):
    """A recording in another format: its identity, and (path, stored bytes) of its files."""

    identity: str
    files: tuple[tuple[str, int], ...]


class LoadRequest(msgspec.Struct, frozen=True):
    """The file to load, and how.

    location  URL of the place, `path` relative to it
    size      stored bytes
    id        as it was listed
    limit     bytes of JSON that may be read, 0 for no limit
    catalog   the user's devices
    beside    (rank, path) of further files of the same recording (`ListedFile.beside`)
    shared    other files may have more of these than this one
    counters  (path, stored bytes) of the files with hardware counters of its kernels
    rank      the rank that the names around the file give it
    tables    (path, stored bytes) of the files that are read as one with it
    origins   (path, stored bytes) of the files that say where its kernels come from, or what was recorded
    requests  (path, stored bytes) of the files that say when requests arrived
    formats   the same recording in less detailed formats, which are read if it can't be
    alone     its log has no other trace: what ranks are compared by is left to whoever asks for it
    """

    location: str
    path: str
    size: int
    id: FileId
    limit: int
    catalog: HardwareCatalog = EMPTY_CATALOG
    beside: tuple[tuple[int, str], ...] = ()
    counters: tuple[tuple[str, int], ...] = ()
    shared: bool = False
    rank: int | None = None
    tables: tuple[tuple[str, int], ...] = ()
    origins: tuple[tuple[str, int], ...] = ()
    requests: tuple[tuple[str, int], ...] = ()
    formats: tuple[OtherFormat, ...] = ()
    alone: bool = False


class Loaded(msgspec.Struct, frozen=True):
    """The result of a job.

    results  answers that are built for every trace (`result_name`): the first page of the overview
    reduced  reductions for the views of runs (`cache.packed`); both are empty if they are in the cache
    trace    only if the job ran in the requesting process, or if nothing could be cached
    """

    summary: FileSummary
    results: dict[str, bytes]
    reduced: dict[str, bytes]
    cached: bool
    trace: Trace | None


# ---- in a worker, or in the process of a command ---------------------------------------------------------


def load_in_worker(request: LoadRequest, cache_dir: str, cache_bytes: int, keep_open: bool = False) -> Loaded:
    """Run `load_file` in a worker process and return the summary; everything that was cached stays in the cache.

    keep_open  keep the trace open until the next job, to build the first answers of the other tabs
    """
    _open.clear()
    resume_recycling()
    enable_compiled_functions()
    cache = Cache(cache_dir, cache_bytes)
    with without_gc():
        loaded = load_file(request, cache, report_progress)
    if not loaded.cached:
        return loaded
    if keep_open and loaded.trace is not None:
        _open[entry_key(request.id, request.catalog)] = loaded.trace
    return replace(loaded, trace=None)


def load_in_own_process(
    request: LoadRequest, cache: Cache, report: Callable[[ProgressTuple], None], memory: int
) -> Loaded:
    """Run `load_file` in a process that has nothing else to do, limited to `memory` bytes like a worker.

    The native reader is used here, too: if it crashes, it says what to do, and nothing else is lost.
    """
    enable_compiled_functions(own_process=True)
    with limited_memory(memory), without_gc():
        return load_file(request, cache, report)


def prefetched_views(unavailable: Set[str]) -> tuple[str, ...]:
    """Return the slugs of the views whose first answers are built ahead, in the order of the navigation.

    The view that opens a tab comes before the tab's other views; tabs that have nothing to show are left out.
    """
    offered = (view for view in all_views() if isinstance(view, TraceView) and view.tab not in unavailable)
    return tuple(view.slug for view in offered if view.cached == "on_request" or view.first is not None)


def prefetch_answers(request: LoadRequest, part: int | None, slug: str, cache_dir: str, cache_bytes: int) -> None:
    """Build and cache the first answer of a view, unless it is cached already or the trace is gone.

    That is the answer without parameters, and those with the view's filters; or the answers to the parameters that
    the page requests first. Then the names of these answers are stored as the view's result, and its columns next
    to it.
    """
    cache = Cache(cache_dir, cache_bytes)
    key, name = entry_key(request.id, request.catalog), result_name(slug, part)
    if cache.load_json(key, name) is not None:
        return
    trace = _open_cached_part(request, part, cache, key, prepares=True)
    if trace is None:
        return
    view = find_view(slug)
    assert isinstance(view, TraceView)
    with without_gc():
        if view.first is None:
            for filtered in view.filters:
                cache.save_json(key, answer_name(slug, part, filtered), encode_json(view.build(trace, filtered)))
            result = encode_json(view.build(trace, view.params()))
        else:
            first_params = {answer_name(slug, part, params): params for params in view.first(trace)}
            for answer, params in first_params.items():
                cache.save_json(key, answer, encode_json(view.build(trace, params)))
            save_columns(trace, view, part, cache, key)
            result = encode_json(list(first_params))
        cache.save_json(key, name, result)
    if trace._memo.store is not None:
        # The next view reads what both need from the cache; the rest would add up to more than the file's columns.
        trace._memo.clear()


def _open_cached_part(
    request: LoadRequest, part: int | None, cache: Cache, key: str, prepares: bool = False
) -> Trace | None:
    """Return a part of a cached trace, whose tables are cached as well, or None if the trace is gone.

    prepares  as for `use_table_cache`
    """
    enable_compiled_functions()
    file_trace = open_cached(cache, key, request.catalog)
    if file_trace is None:
        return None
    trace = file_trace if part is None else split_trace(file_trace)[part]
    use_table_cache(trace, cache, key, part, prepares=prepares)
    return trace


def open_cached(cache: Cache, key: str, catalog: HardwareCatalog) -> Trace | None:
    """Return, in a worker, a cached trace, with all that this process derived from it, or None if it is gone."""
    trace = _open.get(key)
    if trace is None and (cached := cache.load_trace(key)) is not None:
        trace = replace(cached, catalog=catalog)
        _open.clear()
        _open[key] = trace
    return trace


def prefetch_reductions(
    request: LoadRequest, part: int | None, unavailable: Set[str], cache_dir: str, cache_bytes: int
) -> None:
    """Build and cache what ranks are compared by of a cached trace that was loaded alone."""
    cache = Cache(cache_dir, cache_bytes)
    key = entry_key(request.id, request.catalog)
    tabs = [tab for tab in all_tabs() if tab.slug not in unavailable]
    mains = [main for tab in tabs for main in tab.reductions_on_load]
    if all(cache.has_reduced(key, result_name(main.cache_name, part)) for main in mains):
        return
    trace = _open_cached_part(request, part, cache, key)
    if trace is None:
        return
    with without_gc():
        for tab in tabs:
            for name, content in _reductions(tab, trace, part).items():
                cache.save_reduced(key, name, content)


def enable_compiled_functions(own_process: bool = False) -> None:
    """Derive tables from traces with compiled functions, if they are allowed and were built.

    own_process  this process has nothing else to do, so that they are allowed unless the user forbids it
    """
    if own_process:
        os.environ.setdefault(*NATIVE_READER)
    from torch_tb_profiler.ingest.kineto.native.nesting import compiled_functions
    from torch_tb_profiler.model.schedule.compiled import use_schedule_functions
    from torch_tb_profiler.model.schedule.compiled_threads import use_thread_functions
    from torch_tb_profiler.session.native.schedule import load_schedule_functions, load_thread_functions

    use_compiled_functions(compiled_functions())
    use_schedule_functions(load_schedule_functions())
    use_thread_functions(load_thread_functions())
    enable_job_functions(anywhere=False)


def enable_checked_functions() -> None:
    """Answer what is asked of a trace with the compiled functions that may be used in any process.

    Unless the user forbids it: what they get has been checked in Python, so that a file can't make them read or
    write beyond a column.
    """
    from torch_tb_profiler.model.schedule.compiled import use_schedule_functions
    from torch_tb_profiler.session.native.schedule import load_schedule_functions

    use_schedule_functions(load_schedule_functions(anywhere=True))
    enable_job_functions()


def enable_job_functions(anywhere: bool = True) -> None:
    """Compare the ranks of a large job with compiled functions, unless the user forbids it.

    anywhere  in any process: what these functions get has been checked in Python, so that a file can't make them
              read or write beyond a column
    """
    from torch_tb_profiler.analyses.distributed.compiled import use_replay_functions
    from torch_tb_profiler.base.compiled import use_column_functions
    from torch_tb_profiler.session.native.job import job_functions

    functions = job_functions(anywhere=anywhere)
    use_column_functions(None if functions is None else functions.columns)
    use_replay_functions(None if functions is None else functions.replay)


# ---- loading a file -------------------------------------------------------------------------------------


def load_file(request: LoadRequest, cache: Cache, report: Callable[[ProgressTuple], None]) -> Loaded:
    """Read a file, build what is needed of every trace, and cache all of it.

    Raises TraceError if the file is no usable trace (TooLargeError if it exceeds the limit or the available
    memory), StorageError if it can't be read.
    """
    location = open_location(request.location)
    try:
        return _load(location, request, cache, report)
    except MemoryError:
        message = "not enough memory to load this file"
    except TooLargeError as error:
        message = error.message
    uri = location.uri(request.path)
    command = f"torch-tb-profiler slice {quote(uri)} --from 0s --to 1s -o part.json.gz"
    raise TooLargeError(message, hint=f"cut a part out: {command}; or raise TORCH_PROFILER_TRACE_BYTES")


def return_memory(events: int) -> None:
    """Return to the system what reading this many events has left behind, as the analyses would add to it.

    Where it is kept, those of few events use it again instead: before the system gives pages back, it clears them,
    which takes longer than many a table.
    """
    if events >= _MANY_EVENTS or not keeps_freed_memory():
        release_memory()


def _load(
    location: Location, request: LoadRequest, cache: Cache, report: Callable[[ProgressTuple], None]
) -> Loaded:
    path, size = request.path, request.size

    def report_reading(progress: Progress) -> None:
        report((progress.stage, progress.bytes_done, progress.bytes_total, progress.events))

    with ThreadPoolExecutor(_READ_AHEAD_THREADS, thread_name_prefix="profiler-read") as threads:
        _submit(threads, _import_tabs, request.alone)  # while compiled code reads
        thread_loan = lend_threads(threads if available_cores() > 1 else None)
        preview_name = preview_key(entry_key(request.id, request.catalog))
        preview = receive_preview(partial(cache.save_trace, preview_name))
        with thread_loan, preview:
            trace = _read_first_readable(location, request, report_reading)
    identity = location.entry(path).identity
    for other, _ in request.tables:
        identity = combined_identity(identity, location.entry(other).identity)
    for counters, _ in request.counters:
        identity = combined_identity(identity, location.entry(counters).identity)
    for other, _ in (*request.origins, *request.requests):
        identity = combined_identity(identity, location.entry(other).identity)
    identity = ranked_identity(identity, request.rank)
    if request.rank is not None:
        trace = with_fallback_rank(trace, request.rank)
    if request.beside:
        from torch_tb_profiler.ingest.composer.companions import add_pytorch_files

        beside = [(number, partial(location.open, other)) for number, other in request.beside]
        merged = partial(location.open, path)
        trace = add_pytorch_files(
            trace, merged, beside, report=report_reading, limit=request.limit, shared=request.shared
        )
    for _, other in request.beside:
        identity = combined_identity(identity, location.entry(other).identity)
    for format_ in request.formats:
        identity = combined_identity(identity, format_.identity)
    if request.counters:
        from torch_tb_profiler.session.companion_files import add_counter_files

        trace = add_counter_files(trace, location, request.counters, request.limit)
    if request.origins:
        from torch_tb_profiler.session.companion_files import add_origin_files

        trace = add_origin_files(trace, location, path, request.origins, request.limit)
    if request.requests:
        from torch_tb_profiler.session.companion_files import add_request_files

        trace = add_request_files(trace, location, request.requests, request.limit)
    return_memory(len(trace))
    trace = replace(trace, catalog=request.catalog)
    if FileId(location.uri(path), identity) != request.id:
        raise StorageError(
            "the file changed while it was being read",
            where=location.uri(path),
            hint="the new version is read after the next listing",
        )
    key = entry_key(request.id, request.catalog)
    report(("analyzing", size, size, len(trace)))
    with ThreadPoolExecutor(1, thread_name_prefix="profiler-save") as saver:
        saved = _submit(saver, cache.save_trace, key, trace)  # writing leaves the other core to the analyses
        with save_tables_at_end(trace, cache, key):
            summary, results, reduced = analyze(trace, reduces=not request.alone)
        report(("saving", size, size, len(trace)))
        cached = saved.result()
    cached = cached and all(cache.save_json(key, name, result) for name, result in results.items())
    cached = cached and all(cache.save_reduced(key, name, content) for name, content in reduced.items())
    cached = cached and cache.save_json(key, SUMMARY, encode_json(summary))
    cache.remove_trace(preview_name)
    return Loaded(summary, {} if cached else results, {} if cached else reduced, cached, trace)


def _submit(threads: ThreadPoolExecutor, function: Callable[..., T], *arguments: object) -> Future[T]:
    """Run a function by one of the threads; raise ShutdownError while Python ends, as they take no more work."""
    try:
        return threads.submit(function, *arguments)
    except RuntimeError as error:
        raise ShutdownError from error


def _read_first_readable(location: Location, request: LoadRequest, report: Report) -> Trace:
    """Return the trace in the most detailed of its formats that can be read; a note says which couldn't be.

    Raises TraceError of the first one if none can be read.
    """
    unusable: list[TraceError] = []
    for files in (((request.path, request.size), *request.tables), *(each.files for each in request.formats)):
        path, size = files[0][0], sum(stored for _, stored in files)
        try:
            with _open_joined(location, [each for each, _ in files]) as stream:
                trace = read_trace(stream, size=size, report=report, limit=request.limit, name=path)
        except TooLargeError:
            raise
        except TraceError as error:
            unusable.append(error)
            continue
        if not unusable:
            return trace
        names = posixpath.basename(request.path), posixpath.basename(path)
        message = f"{names[0]} can't be read ({unusable[0].message}): this is {names[1]}, the same recording"
        note = HealthNote("other_format", "warning", message)
        return replace(trace, health=(*trace.health, note), _memo=Memo())
    raise unusable[0]


def _open_joined(location: Location, paths: Sequence[str]) -> BinaryIO:
    """Open a file, or several tables as one."""
    if len(paths) == 1:
        return location.open(paths[0])
    from torch_tb_profiler.ingest.streams import JoinedFiles

    return cast(BinaryIO, JoinedFiles([partial(location.open, path) for path in paths]))


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def analyze(trace: Trace, reduces: bool = True) -> tuple[FileSummary, dict[str, bytes], dict[str, bytes]]:
    """Return the summary of a trace, and by `result_name` the answers and the reductions built for every trace.

    reduces  a trace of one rank is reduced, too
    """
    from torch_tb_profiler.views._shared.availability import known_reasons

    trace_parts = split_trace(trace)
    parts: dict[int | None, Trace] = dict(trace_parts.items()) if trace_parts else {None: trace}
    unavailable: dict[str, str] = {}
    results: dict[str, bytes] = {}
    reduced: dict[str, bytes] = {}
    health: dict[str, HealthNote] = {note.kind: note for note in trace.health}
    for number, part in parts.items():
        known = {} if reduces or trace_parts else known_reasons(part)
        for slug in views.SLUGS:
            tab = None if slug in known else find_tab(slug)
            reason = known[slug](part) if tab is None else tab.reason(part)
            if reason is not None:
                unavailable[slug] = reason
            if reason is not None or tab is None:
                continue
            for view in tab.views_built_on_load:
                payload = view.build(part, view.params())
                answer = encode_json(payload)
                results.update((result_name(slug, number), answer) for slug in view.answered_by(payload))
                health.update((note.kind, note) for note in payload.health)
            if reduces or trace_parts:
                reduced.update(_reductions(tab, part, number))
    summary = FileSummary(
        len(trace) if trace.snapshot is None else len(trace.snapshot.history.action),
        trace_rank(trace),
        () if trace.recordings else tuple(trace_parts),
        max(len(trace.recordings), 1),
        unavailable,
        tuple(health.values()),
        sketch_names(trace),
        trace.origin_records.iterations,
        step_noun(next(iter(parts.values()))),
    )
    return summary, results, reduced


def _import_tabs(alone: bool) -> None:
    """Import what `analyze` needs of a trace, which is less if it isn't reduced."""
    from torch_tb_profiler.views._shared.availability import REASONS

    for slug in views.SLUGS:
        if not (alone and slug in REASONS):
            find_tab(slug)


def _reductions(tab: Tab, trace: Trace, part: int | None) -> dict[str, bytes]:
    """Return a tab's reductions of a trace by `result_name`."""
    from torch_tb_profiler.session.cache.packed import pack

    reductions = (each for main in tab.reductions_on_load for each in (main, main.details) if each is not None)
    return {result_name(each.cache_name, part): pack(each.reduce(trace)) for each in reductions}
