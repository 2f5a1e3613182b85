"""Answer requests: a cached answer is returned at once, any other is built by its view."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from torch_tb_profiler.session.answers.answer import Answer, ViewRequest
from torch_tb_profiler.session.files import RequestedFiles
from torch_tb_profiler.session.log import LogFolders
from torch_tb_profiler.session.targets import RequestedNames, Targets
from torch_tb_profiler.storage import FileId
from torch_tb_profiler.views import CACHED_VIEWS, views_of

if TYPE_CHECKING:
    from torch_tb_profiler.session.answers.build import AnswerBuilder

logger = logging.getLogger(__name__)


class Answers:
    """The answers to views of the files in the log folders."""

    def __init__(self, log: LogFolders, files: RequestedFiles, targets: Targets) -> None:
        self._log = log
        self._files = files
        self._targets = targets
        self._preparation = Preparation(files, targets)
        self._lock = threading.Lock()
        self._builder: AnswerBuilder | None = None

    def answer(self, slug: str, request: ViewRequest) -> Answer:
        """Answer a view as `Session.view` does."""
        if slug in CACHED_VIEWS and not request.params:
            cached = cached_answer(self._files, self._targets, slug, request.names)
            if cached is not None:
                if self._files.prefetches:
                    self._preparation.start(cached)
                return cached
        return self._answer_builder().answer(slug, request)

    def _answer_builder(self) -> AnswerBuilder:
        """Return the builder; its import includes the contract of views, which cached answers don't need."""
        from torch_tb_profiler.session.answers.build import AnswerBuilder

        with self._lock:
            if self._builder is None:
                self._builder = AnswerBuilder(self._log, self._files, self._targets)
            return self._builder


def cached_answer(files: RequestedFiles, targets: Targets, slug: str, names: RequestedNames) -> Answer | None:
    """Return the cached answer of a view without parameters; None if there is none, or the file is not loaded.

    The view is not imported, which would take a while. The file is requested in any case, so that it starts
    loading before the view is imported.
    """
    target = targets.find(names)
    loaded = files.cached_summary(target.file.id) is not None
    targets.request(target.file)
    if not loaded:
        return None
    target = targets.find(names)  # with the summary, its part of the file is known
    payload = files.result(target.file.id, slug, target.part)
    if payload is None:
        return None
    files.prefetch_answers(target.file.id, target.part)
    return Answer(slug, *target.names, files.state(target.file.id), payload)


OpenedTab = tuple[FileId, int | None, str]
"""A tab of a trace that was opened: its file, the part of it, the slug."""


class Preparation:
    """Derives, in the background, the tables that further requests of an opened tab need.

    Users who open a table will filter it, and users who open a timeline will zoom: on a large trace the first time
    takes seconds if nothing was derived, and milliseconds afterwards. Tabs are prepared one at a time, each once,
    the last one opened first, in a daemon thread.
    """

    def __init__(self, files: RequestedFiles, targets: Targets) -> None:
        self._files = files
        self._targets = targets
        self._started: set[OpenedTab] = set()
        self._queue: list[OpenedTab] = []
        self._running = False
        self._lock = threading.Lock()

    def start(self, answer: Answer) -> None:
        """Prepare the tab of a cached answer; return at once."""
        target = self._targets.find(RequestedNames(answer.run, answer.worker, answer.span))
        tab = target.file.id, target.part, answer.view
        if tab in self._started or not self._files.should_prepare(target.file.id):
            return
        with self._lock:
            self._started.add(tab)
            self._queue.append(tab)
            start_thread, self._running = not self._running, True
        if start_thread:
            threading.Thread(target=self._prepare_all, name="profiler-prepare", daemon=True).start()

    def _prepare_all(self) -> None:
        while (tab := self._next_tab()) is not None:
            self._prepare(*tab)

    def _next_tab(self) -> OpenedTab | None:
        with self._lock:
            self._running = bool(self._queue)
            return self._queue.pop() if self._queue else None

    def _prepare(self, file: FileId, part: int | None, slug: str) -> None:
        from msgspec.structs import fields

        from torch_tb_profiler.view import TraceView

        views = [view for view in views_of(slug.partition("/")[0]) if isinstance(view, TraceView)]
        filterable = [view for view in views if view.slug == slug and fields(view.params)]
        try:
            trace = self._files.open(file, part)[1] if filterable else None
            if trace is None:
                return
            for view in views:  # windows of the timeline first: zooming is the most frequent request
                if view.columns is not None and view.first is not None:
                    self._files.restore_columns(file, part, view, trace)
                    view.build(trace, view.first(trace)[0])
            # What long filters need is in the store, if there is one, and is read on request within milliseconds.
            stored = trace._memo.store is not None
            for view in filterable:
                for params in (view.params(), *(() if stored else view.filters)):
                    view.build(trace, params)
        except Exception:  # a request for it will return the error
            logger.exception("%s: preparing %s failed", file.uri, slug)
