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
from torch_tb_profiler.views import find_view

logger = logging.getLogger(__name__)


class Preparation:
    """Whoever opens a table will filter it: of a large trace that takes seconds where nothing was derived, and
    milliseconds afterwards. One tab at a time, each once, in a thread that keeps nobody from ending."""

    def __init__(self, files: Files, targets: Targets) -> None:
        self._files = files
        self._targets = targets
        self._begun: set[tuple[FileId, int | None, str]] = set()
        self._turn = threading.Lock()

    def begin(self, answer: Answer) -> None:
        """After a kept answer was given; returns at once."""
        target = self._targets.find(Names(answer.run, answer.worker, answer.span))
        key = target.file.id, target.part, answer.view
        if key in self._begun or not self._files.prepares(target.file.id):
            return
        self._begun.add(key)
        threading.Thread(target=self._derive, args=key, name="profiler-prepare", daemon=True).start()

    def _derive(self, file: FileId, part: int | None, slug: str) -> None:
        view = find_view(slug)
        if not isinstance(view, TraceView) or not fields(view.params):
            return
        with self._turn:
            _, trace = self._files.open(file, part)
            if trace is None:
                return
            try:
                view.build(trace, view.params())
            except Exception:  # whoever asks for it is told
                logger.exception("%s: deriving what %s needs failed", file.uri, slug)
