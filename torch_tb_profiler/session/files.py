"""The files that were requested: the state of each, and what it holds."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence, Set
from concurrent.futures import Future
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec.structs import replace

from torch_tb_profiler.base.errors import ProfilerError
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.cache import Cache, cache_key
from torch_tb_profiler.discovery import ListedFile
from torch_tb_profiler.session.cache.entries import (
    PREPARED,
    FileSummary,
    answer_name,
    entry_contents,
    load_summaries,
    load_summary,
    preview_key,
    result_name,
    save_summaries,
)
from torch_tb_profiler.session.loading import Loader
from torch_tb_profiler.session.open_traces import OpenTraces
from torch_tb_profiler.session.state import ErrorInfo, FileState, HealthCounts, ProgressInfo
from torch_tb_profiler.storage import FileId

if TYPE_CHECKING:
    from torch_tb_profiler.executors import ProgressTuple
    from torch_tb_profiler.model.trace import Trace
    from torch_tb_profiler.session.jobs import Loaded
    from torch_tb_profiler.view import TraceView

T = TypeVar("T")

logger = logging.getLogger(__name__)

MAX_EVICTIONS = 2
"""If the cache evicts a trace this often before it could be opened, it is too small for all who use it."""


class _RequestedFile(msgspec.Struct):
    """A file that was requested.

    key         of its cache entry
    evictions   how often the cache evicted it before it could be opened
    cached      everything that was built of it is in the cache
    alone       its log has no other trace
    prefetched  parts for which the first answers of all tabs are prefetched
    """

    listed: ListedFile
    key: str
    future: Future[Any] | None = None
    summary: FileSummary | None = None
    error: ErrorInfo | None = None
    progress: ProgressTuple | None = None
    results: dict[str, bytes] = msgspec.field(default_factory=dict)
    reduced: dict[str, bytes] = msgspec.field(default_factory=dict)
    evictions: int = 0
    cached: bool = True
    alone: bool = False
    prefetched: set[int | None] = msgspec.field(default_factory=set)
    done: threading.Event = msgspec.field(default_factory=threading.Event)


class RequestedFiles:
    """Loads files on request, in the background, each at most once at a time.

    prefetches  answers are prefetched: users of a server who open one view will open others
    """

    prefetches = False

    def __init__(self, settings: Settings, own_process: bool = False) -> None:
        self._cache = Cache.from_settings(settings)
        self._loader = Loader(settings, self._cache, own_process)
        self._own_process = own_process
        self._small_bytes = settings.small_file_bytes
        self._files: dict[FileId, _RequestedFile] = {}
        self._open = OpenTraces(settings.memory_bytes)
        self._lock = threading.RLock()

    @property
    def small_bytes(self) -> int:
        """Return the size up to which files are read in this process."""
        return self._small_bytes

    @property
    def own_process(self) -> bool:
        """Return whether this process has nothing else to do."""
        return self._own_process

    # ---- state --------------------------------------------------------------------------------------

    def request(self, listed: ListedFile, alone: bool = False) -> None:
        """Request a file and return at once. Loaded or cached files are ready immediately.

        alone  the log has no other trace
        """
        with self._lock:
            file = self._files.get(listed.id)
            if file is None:
                file = self._files[listed.id] = _RequestedFile(listed, self._key(listed.id), alone=alone)
            if file.summary is None and file.error is None and file.future is None:
                if self._cache.shared:
                    self._look_up(file)
                else:
                    self._use_or_load(file, load_summary(self._cache, file.key))

    def request_all(self, files: Sequence[ListedFile]) -> None:
        """Request the files of a job and return at once; cached summaries are read from one file."""
        summaries = None
        if not self._cache.shared and not all(file.id in self._files for file in files):
            summaries = load_summaries(self._cache, [self._key(file.id) for file in files])
        if summaries is not None and len(summaries) == len(files):
            with self._lock:
                for listed, summary in zip(files, summaries, strict=True):
                    if listed.id not in self._files:
                        file = self._files[listed.id] = _RequestedFile(listed, self._key(listed.id))
                        self._use_or_load(file, summary)
        for listed in files:
            self.request(listed)

    def cache_summaries(self, files: Sequence[ListedFile]) -> None:
        """Cache the summaries of a job's files for `request_all` of later processes, if all are ready."""
        with self._lock:
            requested = [self._files.get(file.id) for file in files]
        summaries = [
            file.summary for file in requested if file is not None and file.summary is not None and file.cached
        ]
        if not self._cache.shared and len(summaries) == len(files):
            save_summaries(self._cache, [self._key(file.id) for file in files], summaries)

    def submit(self, function: Callable[..., T], *arguments: object) -> Future[T]:
        """Run a function of plain values in a worker process, with those that load files."""
        with self._lock:
            return self._loader.submit(function, *arguments)

    def retry(self, id_: FileId) -> None:
        """Forget a failure, so that the next request loads the file again."""
        with self._lock:
            file = self._files.get(id_)
            if file is not None and file.error is not None:
                del self._files[id_]

    def state(self, id_: FileId) -> FileState:
        """Return the state of a file; one that was not requested is waiting."""
        with self._lock:
            file = self._files.get(id_)
            if file is None:
                return FileState("waiting")
            if file.error is not None:
                return FileState("failed", error=file.error)
            if file.summary is not None:
                counts = file.summary.severities()
                health = HealthCounts(counts["error"], counts["warning"], counts["info"])
                return FileState("ready", health=health, events=file.summary.events)
            progress = self._progress(file)
            if progress is None:
                return FileState("waiting")
            return FileState("loading", progress=ProgressInfo(*progress))

    def wait(self, id_: FileId, timeout: float | None = None) -> bool:
        """Wait until a requested file is ready or failed; return False if it is not yet."""
        with self._lock:
            file = self._files.get(id_)
        return file is not None and file.done.wait(timeout)

    def keep_only(self, ids: Set[FileId]) -> None:
        """Forget the files that are no longer listed, except those that are being loaded."""
        with self._lock:
            for id_ in [id_ for id_, file in self._files.items() if id_ not in ids and file.future is None]:
                del self._files[id_]
            self._open.keep_only(self._files.keys())

    def close(self) -> None:
        """Stop all work and close all traces."""
        with self._lock:
            stop = self._loader.close()
            self._open.keep_only(frozenset())
        stop()

    # ---- summaries and results ----------------------------------------------------------------------

    def summary(self, id_: FileId) -> FileSummary | None:
        """Return the summary of a file that is ready, else None."""
        with self._lock:
            file = self._files.get(id_)
            return file.summary if file is not None else None

    def cached_summary(self, id_: FileId) -> FileSummary | None:
        """Return the summary of a file that is ready or cached on this machine; nothing is loaded for it."""
        summary = self.summary(id_)
        if summary is not None or self._cache.shared:
            return summary
        return load_summary(self._cache, self._key(id_))

    def result(self, id_: FileId, slug: str, part: int | None) -> bytes | None:
        """Return the cached answer of a view without parameters, or None if it must be built."""
        name = result_name(slug, part)
        with self._lock:
            file = self._files.get(id_)
            if file is None or file.summary is None:
                return None
            result = file.results.get(name)
        return result if result is not None else self._cache.load_json(file.key, name)

    def reduced(self, id_: FileId, name: str, part: int | None, mapped: bool) -> bytes | memoryview | None:
        """Return the cached reduction of a file (`cache.packed`), or None if it must be built."""
        with self._lock:
            file = self._files.get(id_)
            if file is None or file.summary is None:
                return None
            content = file.reduced.get(entry_name := result_name(name, part))
        return content if content is not None else self._cache.load_reduced(file.key, entry_name, mapped)

    def cache_reduced(self, id_: FileId, name: str, part: int | None, content: bytes) -> None:
        """Cache a reduction of a file that was not built when it was loaded; a failure costs only time."""
        self._cache.save_reduced(self._key(id_), result_name(name, part), content)

    def prefetched_answer(self, id_: FileId, slug: str, part: int | None, params: msgspec.Struct) -> bytes | None:
        """Return the prefetched answer of a view to parameters that the page requests first, or often, or None.

        A shared cache is not asked: there are many requests, and few of them are the first.
        """
        name = answer_name(slug, part, params)
        with self._lock:
            file = self._files.get(id_)
        if file is None or file.summary is None or not self._cache.has_json(file.key, name):
            return None
        return self._cache.load_json(file.key, name)

    def cache_answer(self, id_: FileId, slug: str, part: int | None, payload: bytes) -> None:
        """Cache a view's answer without parameters; a failure costs only time."""
        self._cache.save_json(self._key(id_), result_name(slug, part), payload)

    def key(self, id_: FileId) -> str:
        """Return the key of a file's cache entry."""
        with self._lock:
            file = self._files.get(id_)
        return self._key(id_) if file is None else file.key

    def cached_answer(self, key: str, slug: str) -> bytes | None:
        """Return a cached answer about a whole job, or None if it must be built."""
        return self._cache.load_json(key, result_name(slug, None))

    def cache_job_answer(self, key: str, slug: str, payload: bytes) -> None:
        """Cache an answer about a whole job for later servers; a failure costs only time."""
        self._cache.save_json(key, result_name(slug, None), payload)

    def prefetch_answers(self, id_: FileId, part: int | None) -> None:
        """Let a worker build and cache the first answers of all tabs, once per trace that a user looks at."""
        if not self.prefetches or self._loader.closed:
            return
        with self._lock:
            file = self._files.get(id_)
            if file is None or file.summary is None or part in file.prefetched:
                return
            file.prefetched.add(part)
            self._loader.prefetch_answers(file.listed, file.key, part, file.summary.unavailable.keys())

    def lacks_answers(self, id_: FileId, part: int | None) -> bool:
        """Return whether a large file was opened here whose first answers `build_answers` has not built yet."""
        with self._lock:
            file = self._files.get(id_)
        if file is None or not file.cached or not self._cache.enabled or self._cache.shared:
            return False
        is_open = any(self._open.get(id_, each) is not None for each in (part, None))
        return (
            is_open
            and self._loader.is_large(file.listed)
            and not self._cache.has_json(file.key, result_name(PREPARED, part))
        )

    def build_answers(self, id_: FileId, part: int | None) -> None:
        """Build and cache the first answers of the tabs of a file that is ready, in this process."""
        with self._lock:
            file = self._files[id_]
        if file.summary is not None:
            self._loader.build_answers(file.listed, part, file.summary.unavailable.keys())
            self._cache.save_json(file.key, result_name(PREPARED, part), b"true")

    def is_prefetching(self, id_: FileId, slug: str, part: int | None) -> bool:
        """Return whether a worker is building a view's first answer right now."""
        with self._lock:
            file = self._files.get(id_)
        return file is not None and self._loader.is_prefetching(file.key, result_name(slug, part))

    def is_large(self, listed: ListedFile) -> bool:
        """Return whether a file is loaded by a worker, which may take long."""
        return self._loader.is_large(listed)

    def should_prepare(self, id_: FileId) -> bool:
        """Return whether a file's tables should be derived ahead of requests: on a server, for a large file."""
        with self._lock:
            file = self._files.get(id_)
        active = self.prefetches and not self._loader.closed
        return active and file is not None and self._loader.is_large(file.listed)

    # ---- traces -------------------------------------------------------------------------------------

    def open(self, id_: FileId, part: int | None) -> tuple[FileState, Trace | None]:
        """Return the trace of a file if it is ready; if the cache has evicted it, load it again."""
        state = self.state(id_)
        if state.state != "ready":
            return state, None
        trace = self.trace(id_, part)
        if trace is None:
            self.reload(id_)
        return self.state(id_), trace

    def preview(self, id_: FileId) -> Trace | None:
        """Return what can be shown of a file while it is being read, or None."""
        cached: Trace | None = self._cache.load_trace(preview_key(self._key(id_)))
        return cached

    def trace(self, id_: FileId, part: int | None) -> Trace | None:
        """Return the trace of a file (or of one part of it) that is ready, or None if it must be loaded again."""
        trace = self._open.get(id_, part)
        if trace is None:
            # Don't hold the lock here: the shared cache may be far away.
            trace = self._open.get(id_, None)
            if trace is None:
                cached = self._cache.load_trace(self._key(id_))
                trace = None if cached is None else replace(cached, catalog=self._loader.catalog)
            if trace is not None and part is not None:
                from torch_tb_profiler.model.ranks import split_trace

                trace = split_trace(trace).get(part)
            if trace is None:
                return None
            from torch_tb_profiler.session.cache import tables
            from torch_tb_profiler.session.jobs import enable_checked_functions, enable_compiled_functions

            if self._own_process:
                from torch_tb_profiler.base.memory import allow_huge_pages, recycle_arrays

                enable_compiled_functions(own_process=True)
                allow_huge_pages(False)
                recycle_arrays()
            elif len(trace) >= tables.MIN_EVENTS:
                enable_checked_functions()
            tables.use_table_cache(trace, self._cache, self._key(id_), part)
            trace = self._open.add(id_, part, trace)
        with self._lock:
            if id_ in self._files:
                self._files[id_].evictions = 0
        return trace

    def restore_columns(self, id_: FileId, part: int | None, view: TraceView[Any, Any], trace: Trace) -> None:
        """Let an open trace use the cached tables of a view."""
        from torch_tb_profiler.session.cache.tables import restore_columns

        restore_columns(trace, view, part, self._cache, self._key(id_))

    def reload(self, id_: FileId) -> None:
        """Load a file again whose cache entry is gone.

        If that happens twice before the trace could be opened (others fill a cache that is too small), the trace
        bypasses the cache.
        """
        with self._lock:
            file = self._files.get(id_)
            if file is None or file.future is not None:
                return
            file.summary = None
            file.evictions += 1
            file.done.clear()
            self._load(file)

    # ---- loading ------------------------------------------------------------------------------------

    def _key(self, id_: FileId) -> str:
        return cache_key(id_, self._entry_contents)

    @cached_property
    def _entry_contents(self) -> str:
        return entry_contents(self._loader.catalog)

    def _look_up(self, file: _RequestedFile, summary: FileSummary | None = None) -> None:
        """Look a file up in the shared cache in the background, so that no request waits for it."""
        if self._loader.closed:
            self._refuse(file)
            return

        def finish(lookup: Future[FileSummary | None]) -> None:
            if lookup.cancelled():
                return
            with self._lock:
                try:
                    self._use_or_load(file, lookup.result())
                except ProfilerError as error:
                    file.future, file.error = None, ErrorInfo.of(error, where=file.listed.path, stage="reading")
                    file.done.set()

        file.future = self._loader.look_up(file.key, summary)
        file.future.add_done_callback(finish)

    def _use_or_load(self, file: _RequestedFile, summary: FileSummary | None) -> None:
        """Use the cached summary of a file; load the file if there is none."""
        file.summary = summary
        if summary is None:
            self._load(file)
        else:
            file.future = None
            file.done.set()

    def _load(self, file: _RequestedFile) -> None:
        if self._loader.closed:
            self._refuse(file)
            return

        def report(progress: ProgressTuple) -> None:
            file.progress = progress

        file.future = self._loader.load(
            file.listed, report, bypass_cache=file.evictions >= MAX_EVICTIONS, alone=file.alone
        )
        file.future.add_done_callback(lambda future: self._finish_loading(file, future))

    def _refuse(self, file: _RequestedFile) -> None:
        """Fail a file that is requested after `close`, so that nobody waits for it."""
        file.future = None
        file.error = ErrorInfo("usage", "the log is closed", file.listed.path, "open it again", "reading")
        file.done.set()

    def _finish_loading(self, file: _RequestedFile, future: Future[Loaded]) -> None:
        stage = (self._progress(file) or ("reading",))[0]
        cached_out_of_reach = self._is_cached_out_of_reach(file, future)
        with self._lock:
            file.future = None
            if cached_out_of_reach:
                file.error = self._cache_not_shared()
            elif future.cancelled():
                uri = file.listed.id.uri
                file.error = ErrorInfo("worker_died", "loading was stopped", uri, "try again", stage)
            elif (error := future.exception()) is not None:
                if not isinstance(error, ProfilerError):
                    logger.error("loading %s failed", file.listed.path, exc_info=error)
                file.error = ErrorInfo.of(error, where=file.listed.path, stage=stage)
            else:
                loaded = future.result()
                if loaded.cached and loaded.trace is None and self._loader.remote and self._cache.shared:
                    self._look_up(file, loaded.summary)
                    return
                file.summary = loaded.summary
                file.results, file.reduced, file.cached = loaded.results, loaded.reduced, loaded.cached
                if loaded.trace is not None:
                    self._open.add(file.listed.id, None, loaded.trace)
        file.done.set()

    def _is_cached_out_of_reach(self, file: _RequestedFile, future: Future[Loaded]) -> bool:
        """Return whether a worker on another machine cached the trace where this server can't reach it."""
        if not self._loader.remote or future.cancelled() or future.exception():
            return False
        return future.result().cached and not self._cache.has_trace(file.key)

    def _cache_not_shared(self) -> ErrorInfo:
        return ErrorInfo(
            "cluster",
            "the cluster loaded this file, but its workers don't share a cache with this server",
            self._cache.place,
            "set TORCH_PROFILER_CACHE_DIR to a folder or URL that the server and all workers can reach, "
            "and install the same version of torch-tb-profiler on all of them",
            "saving",
        )

    def _progress(self, file: _RequestedFile) -> ProgressTuple | None:
        progress = self._loader.progress(file.future) if file.future is not None else None
        return progress or file.progress
