"""Loading of files: who is asked for, in what state it is, what is kept of it in memory."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from torch_tb_profiler.base.errors import ProfilerError
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.cache import Cache, cache_key
from torch_tb_profiler.executors import JobExecutor, ProgressTuple
from torch_tb_profiler.model.ranks import split_ranks
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.session.jobs import (
    Facts,
    Loaded,
    facts_from_cache,
    gather_facts,
    load_file,
    load_in_worker,
    result_name,
)
from torch_tb_profiler.session.state import ErrorInfo, FileState, HealthCounts, ProgressInfo

logger = logging.getLogger(__name__)

EVENT_BYTES = 400
TRACE_BYTES = 1 << 20
"""What the views derive takes up to so much memory per event and trace; the columns are mapped from the cache."""

LOOKUPS = 16
"""Questions to a shared cache that are on their way at once."""

GZIP_RATIO = 12
"""How much larger than its gzip a trace typically is; for the choice of where to parse."""


@dataclass
class _File:
    location: str
    path: str
    size: int
    uri: str
    key: str
    future: Future[Any] | None = None
    facts: Facts | None = None
    error: ErrorInfo | None = None
    progress: ProgressTuple | None = None
    results: dict[str, bytes] = field(default_factory=dict)
    lost: int = 0
    done: threading.Event = field(default_factory=threading.Event)


class TraceStore:
    """Loads files on request, in the background, each at most once at a time."""

    def __init__(self, settings: Settings, make_executor: Callable[[], JobExecutor]) -> None:
        self._settings = settings
        self._cache = Cache.from_settings(settings)
        self._make_executor = make_executor
        self._executor: JobExecutor | None = None
        self._threads: ThreadPoolExecutor | None = None
        self._lookups: ThreadPoolExecutor | None = None
        self._closed = False
        self._files: dict[str, _File] = {}
        self._open: OrderedDict[str, Trace] = OrderedDict()
        self._lock = threading.RLock()

    def request(self, location: str, path: str, size: int, uri: str, identity: str) -> str:
        """Ask for a file; returns its key at once. Loaded or cached files are ready immediately."""
        key = cache_key(uri, identity)
        with self._lock:
            file = self._files.get(key)
            if file is None:
                file = self._files[key] = _File(location, path, size, uri, key)
            if file.facts is None and file.error is None and file.future is None:
                if self._cache.shared:
                    self._look_up(file)
                else:
                    self._use(file, facts_from_cache(self._cache, key))
        return key

    def key_of(self, uri: str, identity: str) -> str:
        """The key that `request` would return."""
        return cache_key(uri, identity)

    def retry(self, key: str) -> None:
        """Forget a failure, so that the next request loads again."""
        with self._lock:
            file = self._files.get(key)
            if file is not None and file.error is not None:
                del self._files[key]

    def state(self, key: str) -> FileState:
        """The state of a file; one that nobody asked for is waiting."""
        with self._lock:
            file = self._files.get(key)
            if file is None:
                return FileState("waiting")
            if file.error is not None:
                return FileState("failed", error=file.error)
            if file.facts is not None:
                counts = file.facts.severities()
                health = HealthCounts(counts["error"], counts["warning"], counts["info"])
                return FileState("ready", health=health, events=file.facts.events)
            progress = self._progress(file)
            if progress is None:
                return FileState("waiting")
            return FileState("loading", progress=ProgressInfo(*progress))

    def wait(self, key: str, timeout: float | None = None) -> bool:
        """Wait until a requested file is ready or failed; False if it is not yet."""
        with self._lock:
            file = self._files.get(key)
        return file is not None and file.done.wait(timeout)

    def facts(self, key: str) -> Facts | None:
        """Facts of a file that is ready, else None."""
        with self._lock:
            file = self._files.get(key)
            return file.facts if file is not None else None

    def result(self, key: str, slug: str, which: int | None) -> bytes | None:
        """What a view made of a file when it was loaded; None if it must be made again."""
        name = result_name(slug, which)
        with self._lock:
            file = self._files.get(key)
            if file is None or file.facts is None:
                return None
            kept = file.results.get(name)
        return kept if kept is not None else self._cache.load_json(key, name)

    def trace(self, key: str, which: int | None) -> Trace | None:
        """The trace of a file that is ready (of one rank of a merged file); None if it must be loaded again."""
        name, whole = f"{key}/{which}", f"{key}/None"
        with self._lock:
            trace = self._open.get(name)
            merged = self._open.get(whole)
        if trace is None:
            # Not under the lock: the shared cache may be far away.
            trace = merged if merged is not None else self._cache.load_trace(key)
            if trace is not None and which is not None:
                trace = split_ranks(trace).get(which)
            if trace is None:
                return None
        with self._lock:
            trace = self._open.setdefault(name, trace)  # another request may have been quicker
            if key in self._files:
                self._files[key].lost = 0
            self._open.move_to_end(name)
            self._evict()
            return trace

    def reload(self, key: str) -> None:
        """Load a file again whose cache entry has gone.

        If that happens twice before the trace could be opened (others fill a cache that is too small), the
        trace comes here past the cache.
        """
        with self._lock:
            file = self._files.get(key)
            if file is None or file.future is not None:
                return
            file.facts = None
            file.lost += 1
            file.done.clear()
            self._submit(file)

    def close(self) -> None:
        """Stop all work and forget everything."""
        with self._lock:
            self._closed = True
            executor, pools = self._executor, (self._threads, self._lookups)
            self._executor = self._threads = self._lookups = None
            self._open.clear()
        if executor is not None:
            executor.shutdown(wait=False, cancel_futures=True)
        for pool in pools:
            if pool is not None:
                pool.shutdown(wait=True, cancel_futures=True)

    def _look_up(self, file: _File, facts: Facts | None = None) -> None:
        """Ask the shared cache in the background: it may be far away, and a request must not wait for it."""
        if self._closed:
            return
        if self._lookups is None:
            self._lookups = ThreadPoolExecutor(LOOKUPS, thread_name_prefix="profiler-cache")
        future: Future[Facts | None] = self._lookups.submit(gather_facts, self._cache, file.key, facts)

        def use(found: Future[Facts | None]) -> None:
            if found.cancelled():
                return
            with self._lock:
                try:
                    self._use(file, found.result())
                except ProfilerError as error:
                    file.future, file.error = None, ErrorInfo.of(error, where=file.path, stage="reading")
                    file.done.set()

        file.future = future
        future.add_done_callback(use)

    def _use(self, file: _File, kept: Facts | None) -> None:
        """Take the facts that were kept, or have the file read."""
        file.facts = kept
        if kept is None:
            self._submit(file)
        else:
            file.future = None
            file.done.set()

    def _submit(self, file: _File) -> None:
        if self._closed:
            return
        plain = file.size * (GZIP_RATIO if file.path.endswith(".gz") else 1)
        if plain < self._settings.small_file_bytes:
            # A small file is quicker parsed again than kept.
            cache = self._cache if plain > self._settings.small_file_bytes // 16 else Cache("", 0)

            def report(progress: ProgressTuple) -> None:
                file.progress = progress

            if self._threads is None:
                self._threads = ThreadPoolExecutor(2, thread_name_prefix="profiler-load")
            file.future = self._threads.submit(
                load_file,
                file.location,
                file.path,
                file.size,
                file.key,
                self._settings.trace_bytes,
                cache,
                report,
            )
        else:
            if self._executor is None:
                self._executor = self._make_executor()
            settings = self._settings
            file.future = self._executor.submit(
                load_in_worker,
                file.location,
                file.path,
                file.size,
                file.key,
                settings.trace_bytes,
                self._cache.place,
                settings.cache_bytes if file.lost < 2 else 0,
            )
        file.future.add_done_callback(lambda future: self._finish(file, future))

    def _finish(self, file: _File, future: Future[Loaded]) -> None:
        stage = (self._progress(file) or ("reading",))[0]
        out_of_sight = self._out_of_sight(file, future)
        with self._lock:
            file.future = None
            if out_of_sight:
                file.error = ErrorInfo(
                    "cluster",
                    "the cluster read this file, but its workers' cache is not this server's",
                    self._cache.place,
                    "set TORCH_PROFILER_CACHE_DIR to a folder or URL that the server and all workers reach",
                    "saving",
                )
            elif future.cancelled():
                file.error = ErrorInfo("worker_died", "loading was stopped", file.uri, "try again", stage)
            elif (error := future.exception()) is not None:
                if not isinstance(error, ProfilerError):
                    logger.error("loading %s failed", file.path, exc_info=error)
                file.error = ErrorInfo.of(error, where=file.path, stage=stage)
            else:
                loaded = future.result()
                if loaded.cached and loaded.trace is None and self._elsewhere() and self._cache.shared:
                    self._look_up(file, loaded.facts)
                    return
                file.facts = loaded.facts
                file.results = loaded.results
                if loaded.trace is not None:
                    self._open[f"{file.key}/None"] = loaded.trace
                    self._evict()
        file.done.set()

    def _out_of_sight(self, file: _File, future: Future[Loaded]) -> bool:
        """True if a worker of another machine kept the trace where this server does not see it."""
        if not self._elsewhere() or future.cancelled() or future.exception():
            return False
        return future.result().cached and not self._cache.holds_trace(file.key)

    def keep_only(self, keys: set[str]) -> None:
        """Forget the files that are no longer listed; one that is being read is left alone."""
        with self._lock:
            for key in [key for key, file in self._files.items() if key not in keys and file.future is None]:
                del self._files[key]
            for name in [name for name in self._open if name.partition("/")[0] not in self._files]:
                del self._open[name]

    def _elsewhere(self) -> bool:
        """True if jobs may run on other machines."""
        return self._executor is not None and self._executor.elsewhere

    def _evict(self) -> None:
        while len(self._open) > 1 and not self._affordable():
            self._open.popitem(last=False)

    def _affordable(self) -> bool:
        taken = sum(TRACE_BYTES + EVENT_BYTES * len(trace) for trace in self._open.values())
        return taken <= self._settings.memory_bytes

    def _progress(self, file: _File) -> ProgressTuple | None:
        if file.future is not None and self._executor is not None:
            return self._executor.progress(file.future) or file.progress
        return file.progress
