"""The files that were asked for: in what state each is, and what it holds."""

from __future__ import annotations

import logging
import threading
from collections.abc import Set
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from torch_tb_profiler.base.errors import ProfilerError
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.cache import Cache
from torch_tb_profiler.discovery import ListedFile
from torch_tb_profiler.session.devices import read_devices
from torch_tb_profiler.session.kept.structure import entry_key
from torch_tb_profiler.session.kept.summary import FileSummary, asked_name, load_summary, result_name
from torch_tb_profiler.session.loading import Loader
from torch_tb_profiler.session.open_traces import OpenTraces
from torch_tb_profiler.session.state import ErrorInfo, FileState, HealthCounts, ProgressInfo
from torch_tb_profiler.storage import FileId

if TYPE_CHECKING:
    import msgspec

    from torch_tb_profiler.executors import ProgressTuple
    from torch_tb_profiler.model.trace import Trace
    from torch_tb_profiler.session.jobs import Loaded
    from torch_tb_profiler.view import TraceView

logger = logging.getLogger(__name__)

LOST_TWICE = 2
"""A cache that drops a trace so often before it could be opened is too small for all who use it."""


@dataclass
class _File:
    """A file that was asked for.

    key   of its entry in the cache
    lost  how often the cache dropped it before it could be opened
    ahead parts of which the first answers of all tabs are made ahead
    """

    listed: ListedFile
    key: str
    future: Future[Any] | None = None
    summary: FileSummary | None = None
    error: ErrorInfo | None = None
    progress: ProgressTuple | None = None
    results: dict[str, bytes] = field(default_factory=dict)
    reduced: dict[str, bytes] = field(default_factory=dict)
    lost: int = 0
    ahead: set[int | None] = field(default_factory=set)
    done: threading.Event = field(default_factory=threading.Event)


class Files:
    """Loads files on request, in the background, each at most once at a time.

    serves  answers are made ahead: whoever asks for one view will ask for others
    """

    serves = False

    def __init__(self, settings: Settings, own_process: bool = False) -> None:
        self._cache = Cache.from_settings(settings)
        self._catalog = read_devices(settings.devices)
        self._loader = Loader(settings, self._cache, self._catalog, own_process)
        self._files: dict[FileId, _File] = {}
        self._open = OpenTraces(settings.memory_bytes)
        self._lock = threading.RLock()

    def request(self, listed: ListedFile) -> None:
        """Ask for a file; returns at once. Loaded or cached files are ready immediately."""
        with self._lock:
            file = self._files.get(listed.id)
            if file is None:
                file = self._files[listed.id] = _File(listed, self._key(listed.id))
            if file.summary is None and file.error is None and file.future is None:
                if self._cache.shared:
                    self._look_up(file)
                else:
                    self._use(file, load_summary(self._cache, file.key))

    def retry(self, id_: FileId) -> None:
        """Forget a failure, so that the next request loads again."""
        with self._lock:
            file = self._files.get(id_)
            if file is not None and file.error is not None:
                del self._files[id_]

    def state(self, id_: FileId) -> FileState:
        """The state of a file; one that nobody asked for is waiting."""
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
        """Wait until a requested file is ready or failed; False if it is not yet."""
        with self._lock:
            file = self._files.get(id_)
        return file is not None and file.done.wait(timeout)

    def summary(self, id_: FileId) -> FileSummary | None:
        """The summary of a file that is ready, else None."""
        with self._lock:
            file = self._files.get(id_)
            return file.summary if file is not None else None

    def kept_summary(self, id_: FileId) -> FileSummary | None:
        """The summary of a file that is ready, or that this machine's cache holds; nothing is read for it."""
        known = self.summary(id_)
        if known is not None or self._cache.shared:
            return known
        return load_summary(self._cache, self._key(id_))

    def result(self, id_: FileId, slug: str, part: int | None) -> bytes | None:
        """What a view made of a file, kept since; None if it must be made again."""
        name = result_name(slug, part)
        with self._lock:
            file = self._files.get(id_)
            if file is None or file.summary is None:
                return None
            result = file.results.get(name)
        return result if result is not None else self._cache.load_json(file.key, name)

    def reduced(self, id_: FileId, name: str, part: int | None, mapped: bool) -> bytes | memoryview | None:
        """What a file was reduced to (`kept.packed`); None if it must be made again."""
        with self._lock:
            file = self._files.get(id_)
            if file is None or file.summary is None:
                return None
            content = file.reduced.get(kept_as := result_name(name, part))
        return content if content is not None else self._cache.load_reduced(file.key, kept_as, mapped)

    def answer_to(self, id_: FileId, slug: str, part: int | None, params: msgspec.Struct) -> bytes | None:
        """What was made ahead of a view's answer to the parameters that the page asks with first, or None.

        Only of what this machine holds: there are many questions, and few of them are the first.
        """
        name = asked_name(slug, part, params)
        with self._lock:
            file = self._files.get(id_)
        if file is None or file.summary is None or not self._cache.has_json(file.key, name):
            return None
        return self._cache.load_json(file.key, name)

    def keep(self, id_: FileId, slug: str, part: int | None, payload: bytes) -> None:
        """Keep what a view made of a file; nothing is lost but time where that is not possible."""
        self._cache.save_json(self._key(id_), result_name(slug, part), payload)

    def answer_ahead(self, id_: FileId, part: int | None) -> None:
        """Have the first answers of all tabs made and kept, once, as somebody looks at this trace."""
        if not self.serves or self._loader.closed:
            return
        with self._lock:
            file = self._files.get(id_)
            if file is None or file.summary is None or part in file.ahead:
                return
            file.ahead.add(part)
            self._loader.answer_ahead(file.listed, file.key, part, file.summary.unavailable.keys())

    def prepares(self, id_: FileId) -> bool:
        """Whether what a file's tabs need is worth deriving before it is asked for: here, and of a large file."""
        with self._lock:
            file = self._files.get(id_)
        return self.serves and not self._loader.closed and file is not None and self._loader.is_large(file.listed)

    def making(self, id_: FileId, slug: str, part: int | None) -> bool:
        """Whether a worker is making a view's answer ahead right now."""
        with self._lock:
            file = self._files.get(id_)
        return file is not None and self._loader.making(file.key, result_name(slug, part))

    def trace(self, id_: FileId, part: int | None) -> Trace | None:
        """The trace of a file that is ready (of one part of it); None if it must be loaded again."""
        trace = self._open.get(id_, part)
        if trace is None:
            # Not under the lock: the shared cache may be far away.
            trace = self._open.get(id_, None)
            if trace is None:
                kept = self._cache.load_trace(self._key(id_))
                trace = None if kept is None else replace(kept, catalog=self._catalog)
            if trace is not None and part is not None:
                from torch_tb_profiler.model.ranks import split_trace

                trace = split_trace(trace).get(part)
            if trace is None:
                return None
            trace = self._open.add(id_, part, trace)
        with self._lock:
            if id_ in self._files:
                self._files[id_].lost = 0
        return trace

    def restore(self, id_: FileId, part: int | None, view: TraceView[Any, Any], trace: Trace) -> None:
        """Have an open trace answer the tables that are kept for a view, once."""
        from torch_tb_profiler.session.kept.columns import restore_columns

        restore_columns(trace, view, part, self._cache, self._key(id_))

    def open(self, id_: FileId, part: int | None) -> tuple[FileState, Trace | None]:
        """The trace of a file if it is ready; if the cache has lost it, it is loading again."""
        state = self.state(id_)
        if state.state != "ready":
            return state, None
        trace = self.trace(id_, part)
        if trace is None:
            self.reload(id_)
        return self.state(id_), trace

    def reload(self, id_: FileId) -> None:
        """Load a file again whose cache entry has gone.

        If that happens twice before the trace could be opened (others fill a cache that is too small), the
        trace comes here past the cache.
        """
        with self._lock:
            file = self._files.get(id_)
            if file is None or file.future is not None:
                return
            file.summary = None
            file.lost += 1
            file.done.clear()
            self._submit(file)

    def keep_only(self, ids: Set[FileId]) -> None:
        """Forget the files that are no longer listed; one that is being read is left alone."""
        with self._lock:
            for id_ in [id_ for id_, file in self._files.items() if id_ not in ids and file.future is None]:
                del self._files[id_]
            self._open.keep_only(self._files.keys())

    def close(self) -> None:
        """Stop all work and forget everything."""
        with self._lock:
            stop = self._loader.close()
            self._open.keep_only(frozenset())
        stop()

    def _key(self, id_: FileId) -> str:
        return entry_key(id_, self._catalog)

    def _look_up(self, file: _File, summary: FileSummary | None = None) -> None:
        """Ask the shared cache in the background: a request must not wait for it."""
        if self._loader.closed:
            return

        def use(answer: Future[FileSummary | None]) -> None:
            if answer.cancelled():
                return
            with self._lock:
                try:
                    self._use(file, answer.result())
                except ProfilerError as error:
                    file.future, file.error = None, ErrorInfo.of(error, where=file.listed.path, stage="reading")
                    file.done.set()

        file.future = self._loader.look_up(file.key, summary)
        file.future.add_done_callback(use)

    def _use(self, file: _File, summary: FileSummary | None) -> None:
        """Take the summary that was kept, or have the file read."""
        file.summary = summary
        if summary is None:
            self._submit(file)
        else:
            file.future = None
            file.done.set()

    def _submit(self, file: _File) -> None:
        if self._loader.closed:
            return

        def report(progress: ProgressTuple) -> None:
            file.progress = progress

        file.future = self._loader.load(file.listed, report, past_cache=file.lost >= LOST_TWICE)
        file.future.add_done_callback(lambda future: self._finish(file, future))

    def _finish(self, file: _File, future: Future[Loaded]) -> None:
        stage = (self._progress(file) or ("reading",))[0]
        out_of_sight = self._out_of_sight(file, future)
        with self._lock:
            file.future = None
            if out_of_sight:
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
                file.results, file.reduced = loaded.results, loaded.reduced
                if loaded.trace is not None:
                    self._open.add(file.listed.id, None, loaded.trace)
        file.done.set()

    def _out_of_sight(self, file: _File, future: Future[Loaded]) -> bool:
        """True if a worker of another machine kept the trace where this server does not see it."""
        if not self._loader.remote or future.cancelled() or future.exception():
            return False
        return future.result().cached and not self._cache.has_trace(file.key)

    def _cache_not_shared(self) -> ErrorInfo:
        return ErrorInfo(
            "cluster",
            "the cluster read this file, but its workers' cache is not this server's",
            self._cache.place,
            "set TORCH_PROFILER_CACHE_DIR to a folder or URL that the server and all workers reach, "
            "and install the same torch-tb-profiler on all of them",
            "saving",
        )

    def _progress(self, file: _File) -> ProgressTuple | None:
        progress = self._loader.progress(file.future) if file.future is not None else None
        return progress or file.progress
