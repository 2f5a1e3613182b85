"""Decide where a file is loaded: in a thread of this process, by the executor, or from the cache."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Set
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from torch_tb_profiler.base.errors import ShutdownError, UsageError, WorkerDiedError
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.cache import Cache
from torch_tb_profiler.discovery import ListedFile
from torch_tb_profiler.discovery.companions import companion_rank
from torch_tb_profiler.model.hardware_catalog import EMPTY_CATALOG, HardwareCatalog
from torch_tb_profiler.session.cache.entries import FileSummary, fetch_results, load_summary, result_name
from torch_tb_profiler.views import CACHED_VIEWS

if TYPE_CHECKING:
    from torch_tb_profiler.executors import JobExecutor, ProgressTuple
    from torch_tb_profiler.session.jobs import Loaded, LoadRequest

T = TypeVar("T")

logger = logging.getLogger(__name__)

LOOKUP_THREADS = 16
"""Requests to a shared cache that may be in flight at once."""

GZIP_RATIO = 12
"""Typical size of a trace relative to its gzip, to choose where to load it."""

LOADING_THREADS = 2
"""Small files that are loaded at once in this process."""

UNCACHED_FRACTION = 16
"""A file smaller than this fraction of a small file is parsed again faster than it is cached."""

WORKER_BYTES_PER_TRACE_BYTE = 3
"""Memory that loading the largest file may take, with a margin, as a multiple of its size."""

MIN_WORKER_BYTES = 1 << 30
"""Memory that a worker process gets however small the files are: its libraries take part of it."""


def worker_memory(settings: Settings) -> int:
    """Return the memory limit of a worker process in bytes: enough for the largest file, with a margin."""
    return max(WORKER_BYTES_PER_TRACE_BYTE * settings.trace_bytes, MIN_WORKER_BYTES)


def read_devices(path: str) -> HardwareCatalog:
    """Read the user's file of devices and operators; return an empty catalog if `path` is empty.

    A file that can't be used is logged, and the catalog has a note on it.
    """
    if not path:
        return EMPTY_CATALOG
    from torch_tb_profiler.model.hardware.catalog import parse_user_catalog

    name = os.path.basename(path)
    try:
        with open(path, encoding="utf-8") as file:
            return parse_user_catalog(file.read(), name)
    except UsageError as error:
        problem = error.message
        logger.warning("%s (%s); an entry looks like %s", problem, path, error.hint)
    except OSError as error:
        problem = f"{name}: {error.strerror}"
        logger.warning("%s (%s)", problem, path)
    except UnicodeDecodeError as error:
        problem = f"{name}: {error}"
        logger.warning("%s (%s)", problem, path)
    return HardwareCatalog(note=f"your device file was ignored: {problem}")


def _estimated_json_bytes(file: ListedFile) -> int:
    size = file.size * (GZIP_RATIO if file.path.endswith(".gz") else 1)
    return size + sum(map(_estimated_json_bytes, (*file.beside, *file.tables, *file.origins, *file.requests)))


class Loader:
    """Loads files; threads and processes start with the first file that needs them.

    own_process  nothing else runs in this process: it loads the first large file itself, and each further one that
                 is requested after that; worker processes load what is requested in between

    Not thread-safe: `RequestedFiles` calls it under its lock.
    """

    def __init__(self, settings: Settings, cache: Cache, own_process: bool = False) -> None:
        self._settings = settings
        self._cache = cache
        self.catalog = read_devices(settings.devices)
        self._executor: JobExecutor | None = None
        self._threads: ThreadPoolExecutor | None = None
        self._lookups: ThreadPoolExecutor | None = None
        self._own_process = own_process and settings.executor.startswith("processes:")
        self._large_file: Future[Loaded] | None = None
        self._prefetches: dict[str, tuple[str, Future[None]]] = {}
        self.closed = False

    @property
    def remote(self) -> bool:
        """Return whether files may be loaded on other machines."""
        return self._executor is not None and self._executor.remote

    def load(
        self, file: ListedFile, report: Callable[[ProgressTuple], None], *, bypass_cache: bool, alone: bool
    ) -> Future[Loaded]:
        """Start loading a file: in this process if the file is small or the process has nothing else to do.

        report        called with the progress, unless `progress` knows it
        bypass_cache  the trace comes back with the result instead of through the cache
        alone         the log has no other trace
        """
        if self._own_process:
            from torch_tb_profiler.base.memory import recycle_memory

            recycle_memory()  # before numpy is imported
        from torch_tb_profiler.session.jobs import load_file, load_in_own_process, load_in_worker

        request = replace(self._load_request(file), alone=alone and self._own_process)
        if self._is_small(file):
            cached = _estimated_json_bytes(file) > self._settings.small_file_bytes // UNCACHED_FRACTION
            cache = self._cache if cached else Cache("", 0)
            return self._thread_pool().submit(load_file, request, cache, report)
        if self._own_process and (self._large_file is None or self._large_file.done()):
            cache, memory = Cache("", 0) if bypass_cache else self._cache, worker_memory(self._settings)
            self._large_file = self._thread_pool().submit(
                load_in_own_process, request, cache, self._until_closed(report), memory
            )
            return self._large_file
        cache_bytes = 0 if bypass_cache else self._settings.cache_bytes
        executor = self._shared_executor()
        keep_open = not executor.remote  # the next job for this file goes to the same process
        return executor.submit(load_in_worker, request, self._cache.place, cache_bytes, keep_open)

    def submit(self, function: Callable[..., T], *arguments: object) -> Future[T]:
        """Run a function of plain values by the executor."""
        return self._shared_executor().submit(function, *arguments)

    def prefetch_answers(self, file: ListedFile, key: str, part: int | None, unavailable: Set[str]) -> None:
        """Let a worker build and cache the first answers of a trace's tabs, one after the other.

        A file that is requested in between is loaded before the remaining answers.

        key          of the file's cache entry
        unavailable  tabs that have nothing to show
        """
        from torch_tb_profiler.session.jobs import prefetch_answers, prefetched_views

        missing = [
            slug
            for slug in prefetched_views(unavailable)
            if not self._cache.has_json(key, result_name(slug, part))
        ]
        if self._is_small(file) or not missing or not self._shared_executor().background:
            return
        request, slugs = self._load_request(file), iter(missing)

        def submit_next(done: Future[None] | None = None) -> None:
            if done is not None and (done.cancelled() or done.exception() is not None):
                if not (self.closed or done.cancelled() or isinstance(done.exception(), ShutdownError)):
                    logger.warning("%s: prefetching an answer failed: %s", file.path, done)
                return
            executor, slug = self._executor, next(slugs, None)
            if executor is not None and slug is not None:
                arguments = request, part, slug, self._cache.place, self._settings.cache_bytes
                future = executor.submit(prefetch_answers, *arguments)
                self._prefetches[key] = (result_name(slug, part), future)
                future.add_done_callback(submit_next)

        submit_next()

    def build_answers(self, file: ListedFile, part: int | None, unavailable: Set[str]) -> None:
        """Build and cache the first answers of a cached trace's tabs in this process.

        unavailable  tabs that have nothing to show
        """
        from torch_tb_profiler.session.jobs import prefetch_answers, prefetch_reductions, prefetched_views

        request, cache = self._load_request(file), (self._cache.place, self._settings.cache_bytes)
        for slug in prefetched_views(unavailable):
            if slug in CACHED_VIEWS:
                prefetch_answers(request, part, slug, *cache)
        prefetch_reductions(request, part, unavailable, *cache)

    def is_prefetching(self, key: str, name: str) -> bool:
        """Return whether a worker is building an answer right now; one that is still queued may take long."""
        prefetch = self._prefetches.get(key)
        return prefetch is not None and prefetch[0] == name and prefetch[1].running()

    def is_large(self, file: ListedFile) -> bool:
        """Return whether a file is loaded by a worker."""
        return not self._is_small(file)

    def _thread_pool(self) -> ThreadPoolExecutor:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(LOADING_THREADS, thread_name_prefix="profiler-load")
        return self._threads

    def _until_closed(self, report: Callable[[ProgressTuple], None]) -> Callable[[ProgressTuple], None]:
        """Wrap `report` so that it raises once this loader is closed: a thread can't be killed like a worker."""

        def report_or_stop(progress: ProgressTuple) -> None:
            if self.closed:
                raise WorkerDiedError("loading was stopped")
            report(progress)

        return report_or_stop

    def _shared_executor(self) -> JobExecutor:
        from torch_tb_profiler.executors import make_executor

        if self._executor is None:
            self._executor = make_executor(self._settings.executor, worker_memory(self._settings))
        return self._executor

    def _is_small(self, file: ListedFile) -> bool:
        """Return whether a file is loaded in this process."""
        return _estimated_json_bytes(file) < self._settings.small_file_bytes

    def _load_request(self, file: ListedFile) -> LoadRequest:
        from torch_tb_profiler.session.jobs import LoadRequest, OtherFormat

        return LoadRequest(
            location=file.location.url,
            path=file.path,
            size=file.size,
            id=file.id,
            limit=self._settings.trace_bytes,
            catalog=self.catalog,
            beside=tuple((companion_rank(each.path), each.path) for each in file.beside),
            counters=tuple((each.path, each.size) for each in file.counters),
            shared=file.shared,
            rank=file.rank,
            tables=tuple((each.path, each.size) for each in file.tables),
            origins=tuple((each.path, each.size) for each in file.origins),
            requests=tuple((each.path, each.size) for each in file.requests),
            formats=tuple(
                OtherFormat(each.id.identity, tuple((part.path, part.size) for part in (each, *each.tables)))
                for each in file.formats
            ),
        )

    def look_up(self, key: str, summary: FileSummary | None = None) -> Future[FileSummary | None]:
        """Look up an entry in the shared cache, in the background, as the cache may be far away.

        summary  if it is known already, and only the results next to it are wanted
        """
        if self._lookups is None:
            self._lookups = ThreadPoolExecutor(LOOKUP_THREADS, thread_name_prefix="profiler-cache")
        return self._lookups.submit(self._fetch, key, summary)

    def _fetch(self, key: str, summary: FileSummary | None) -> FileSummary | None:
        summary = summary or load_summary(self._cache, key)
        if summary is not None:
            fetch_results(self._cache, key, summary)
        return summary

    def progress(self, future: Future[Loaded]) -> ProgressTuple | None:
        """Return the executor's progress with a file, or None if it doesn't know."""
        return self._executor.progress(future) if self._executor is not None else None

    def close(self) -> Callable[[], None]:
        """Accept no more work, and return a function that stops what is running, which may take a while."""
        self.closed = True
        executor, pools = self._executor, (self._threads, self._lookups)
        self._executor = self._threads = self._lookups = None

        def stop() -> None:
            if executor is not None:
                executor.shutdown(wait=False, cancel_futures=True)
            for pool in pools:
                if pool is not None:
                    pool.shutdown(wait=True, cancel_futures=True)

        return stop
