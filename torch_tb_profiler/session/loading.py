"""Where a file is read: in a thread of this process, by the executor, or not at all because the cache has it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Set
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from torch_tb_profiler.base.errors import ShutdownError, WorkerDiedError
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.cache import Cache
from torch_tb_profiler.discovery import ListedFile
from torch_tb_profiler.discovery.beside import rank_beside
from torch_tb_profiler.model.catalog import Catalog
from torch_tb_profiler.session.kept.summary import FileSummary, fetch_results, load_summary, result_name

if TYPE_CHECKING:
    from torch_tb_profiler.executors import JobExecutor, ProgressTuple
    from torch_tb_profiler.session.jobs import Loaded, LoadRequest

logger = logging.getLogger(__name__)

LOOKUPS = 16
"""Questions to a shared cache that are on their way at once."""

GZIP_RATIO = 12
"""How much larger than its gzip a trace typically is; for the choice of where to parse."""

THREADS = 2
"""Small files that are read at once in this process."""

LEAST_MEMORY = 1 << 30
"""Bytes that a worker process gets however small the files may be: its libraries take a part of it."""


def worker_memory(settings: Settings) -> int:
    """Bytes that a worker process may take: what the largest file needs, and some more."""
    return max(3 * settings.trace_bytes, LEAST_MEMORY)


def _unpacked(file: ListedFile) -> int:
    """Bytes of JSON, estimated."""
    size = file.size * (GZIP_RATIO if file.path.endswith(".gz") else 1)
    return size + sum(map(_unpacked, (*file.beside, *file.tables)))


class Loader:
    """Starts the work on files; threads and processes start with the first file that needs them.

    own_process  nothing else runs in this process: it reads the first large file itself, and each further one that
                 is asked for once it has done that; worker processes read what is asked for meanwhile
    Not safe for threads: `Files` calls it under its lock.
    """

    def __init__(self, settings: Settings, cache: Cache, catalog: Catalog, own_process: bool = False) -> None:
        self._settings = settings
        self._cache = cache
        self._catalog = catalog
        self._executor: JobExecutor | None = None
        self._threads: ThreadPoolExecutor | None = None
        self._lookups: ThreadPoolExecutor | None = None
        self._own_process = own_process and settings.executor.startswith("processes:")
        self._large: Future[Loaded] | None = None
        self._ahead: dict[str, tuple[str, Future[None]]] = {}
        self.closed = False

    @property
    def remote(self) -> bool:
        """True if files may be read on other machines."""
        return self._executor is not None and self._executor.remote

    def load(
        self, file: ListedFile, report: Callable[[ProgressTuple], None], *, past_cache: bool
    ) -> Future[Loaded]:
        """Have a file read, in this process if it is small or this process is there for it alone.

        report      called with the progress, unless `progress` knows it
        past_cache  the trace comes back with the result instead of through the cache
        """
        if self._own_process:
            from torch_tb_profiler.executors.memory import recycle_memory

            recycle_memory()  # before numpy is imported
        from torch_tb_profiler.session.jobs import load_alone, load_file, load_in_worker

        request = self._request(file)
        if self._is_small(file):
            # A very small file is quicker parsed again than kept.
            cache = self._cache if _unpacked(file) > self._settings.small_file_bytes // 16 else Cache("", 0)
            return self._threads_here().submit(load_file, request, cache, report)
        if self._own_process and (self._large is None or self._large.done()):
            cache, memory = Cache("", 0) if past_cache else self._cache, worker_memory(self._settings)
            self._large = self._threads_here().submit(
                load_alone, request, cache, self._until_closed(report), memory
            )
            return self._large
        cache_bytes = 0 if past_cache else self._settings.cache_bytes
        executor = self._executor_of_all()
        stays = not executor.remote  # the next job of this file comes to the same process
        return executor.submit(load_in_worker, request, self._cache.place, cache_bytes, stays)

    def answer_ahead(self, file: ListedFile, key: str, part: int | None, without: Set[str]) -> None:
        """Have what the tabs of a trace answer first made in a worker and kept, one by one: a file that is
        asked for in the meantime comes before the rest of them.

        key      of its entry in the cache
        without  tabs that have nothing to show
        """
        from torch_tb_profiler.session.ahead import answer_in_worker, slugs_ahead

        missing = [
            slug
            for slug in slugs_ahead()
            if slug not in without and not self._cache.has_json(key, result_name(slug, part))
        ]
        if self._is_small(file) or not missing or not self._executor_of_all().background:
            return
        request, slugs = self._request(file), iter(missing)

        def submit_next(done: Future[None] | None = None) -> None:
            if done is not None and (done.cancelled() or done.exception() is not None):
                if not (self.closed or done.cancelled() or isinstance(done.exception(), ShutdownError)):
                    logger.warning("%s: an answer was not made ahead: %s", file.path, done)
                return
            executor, slug = self._executor, next(slugs, None)
            if executor is not None and slug is not None:
                work = request, part, slug, self._cache.place, self._settings.cache_bytes
                future = executor.submit(answer_in_worker, *work)
                self._ahead[key] = (result_name(slug, part), future)
                future.add_done_callback(submit_next)

        submit_next()

    def making(self, key: str, name: str) -> bool:
        """Whether a worker is making an answer ahead right now; one that waits for its turn may wait for long."""
        made = self._ahead.get(key)
        return made is not None and made[0] == name and made[1].running()

    def _threads_here(self) -> ThreadPoolExecutor:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="profiler-load")
        return self._threads

    def _until_closed(self, report: Callable[[ProgressTuple], None]) -> Callable[[ProgressTuple], None]:
        """A thread cannot be killed as a worker can: whoever reports in it learns that nobody waits any more."""

        def report_or_stop(progress: ProgressTuple) -> None:
            if self.closed:
                raise WorkerDiedError("reading was stopped")
            report(progress)

        return report_or_stop

    def _executor_of_all(self) -> JobExecutor:
        from torch_tb_profiler.executors import make_executor

        if self._executor is None:
            self._executor = make_executor(self._settings.executor, worker_memory(self._settings))
        return self._executor

    def is_large(self, file: ListedFile) -> bool:
        """Whether a file is read by a worker."""
        return not self._is_small(file)

    def _is_small(self, file: ListedFile) -> bool:
        """Whether a file is read in this process."""
        return _unpacked(file) < self._settings.small_file_bytes

    def _request(self, file: ListedFile) -> LoadRequest:
        from torch_tb_profiler.session.jobs import LoadRequest

        limit = self._settings.trace_bytes
        beside = tuple((rank_beside(each.path), each.path) for each in file.beside)
        counters = tuple((each.path, each.size) for each in file.counters)
        return LoadRequest(
            file.location.url,
            file.path,
            file.size,
            file.id,
            limit,
            self._catalog,
            beside,
            counters,
            file.shared,
            file.rank,
            tuple((each.path, each.size) for each in file.tables),
        )

    def look_up(self, key: str, summary: FileSummary | None = None) -> Future[FileSummary | None]:
        """Ask the shared cache for an entry, in the background: it may be far away.

        summary  if it is known already, and only what is kept beside it is wanted
        """
        if self._lookups is None:
            self._lookups = ThreadPoolExecutor(LOOKUPS, thread_name_prefix="profiler-cache")
        return self._lookups.submit(self._fetch, key, summary)

    def progress(self, future: Future[Loaded]) -> ProgressTuple | None:
        """How far the executor is with a file; None if it does not know."""
        return self._executor.progress(future) if self._executor is not None else None

    def close(self) -> Callable[[], None]:
        """Accept no more work; what is returned stops what is running, and may take a while."""
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

    def _fetch(self, key: str, summary: FileSummary | None) -> FileSummary | None:
        summary = summary or load_summary(self._cache, key)
        if summary is not None:
            fetch_results(self._cache, key, summary)
        return summary
