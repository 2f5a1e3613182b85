"""What further questions of a tab take, derived in the background once its kept answer has opened it."""

from __future__ import annotations

import logging
import threading

from msgspec.structs import fields

from torch_tb_profiler.session.answers.answer import Answer
from torch_tb_profiler.session.files import Files
from torch_tb_profiler.session.targets import Names, Targets
from torch_tb_profiler.storage import FileId
from torch_tb_profiler.view import TraceView
from torch_tb_profiler.views import views_of

logger = logging.getLogger(__name__)


Waiting = tuple[FileId, int | None, str]
"""A tab of a trace: its file, the part of it, the slug."""


class Preparation:
    """Whoever opens a table will filter it, and who opens a timeline will zoom: of a large trace that takes
    seconds where nothing was derived, and milliseconds afterwards. One tab at a time, each once, the one that was
    opened last first, in a thread that keeps nobody from ending."""

    def __init__(self, files: Files, targets: Targets) -> None:
        self._files = files
        self._targets = targets
        self._begun: set[Waiting] = set()
        self._waiting: list[Waiting] = []
        self._running = False
        self._lock = threading.Lock()

    def begin(self, answer: Answer) -> None:
        """After a kept answer was given; returns at once."""
        target = self._targets.find(Names(answer.run, answer.worker, answer.span))
        key = target.file.id, target.part, answer.view
        if key in self._begun or not self._files.prepares(target.file.id):
            return
        with self._lock:
            self._begun.add(key)
            self._waiting.append(key)
            starts, self._running = not self._running, True
        if starts:
            threading.Thread(target=self._derive_all, name="profiler-prepare", daemon=True).start()

    def _derive_all(self) -> None:
        while (key := self._next()) is not None:
            self._derive(*key)

    def _next(self) -> Waiting | None:
        with self._lock:
            self._running = bool(self._waiting)
            return self._waiting.pop() if self._waiting else None

    def _derive(self, file: FileId, part: int | None, slug: str) -> None:
        views = [view for view in views_of(slug.partition("/")[0]) if isinstance(view, TraceView)]
        own = [view for view in views if view.slug == slug and fields(view.params)]
        try:
            trace = self._files.open(file, part)[1] if own else None
            if trace is None:
                return
            for view in views:  # windows first: nobody has zoomed yet who would not
                if view.columns is not None and view.first is not None:
                    self._files.restore(file, part, view, trace)
                    view.build(trace, view.first(trace)[0])
            for view in own:
                for params in (view.params(), *view.filters):
                    view.build(trace, params)
        except Exception:  # whoever asks for it is told
            logger.exception("%s: deriving what %s needs failed", file.uri, slug)
