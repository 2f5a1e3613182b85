"""What is kept is answered at once; all else takes the view."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from torch_tb_profiler.session.answers.answer import Answer, Question
from torch_tb_profiler.session.answers.kept import kept_answer
from torch_tb_profiler.session.files import Files
from torch_tb_profiler.session.log import LogFolders
from torch_tb_profiler.session.targets import Targets
from torch_tb_profiler.views import KEPT

if TYPE_CHECKING:
    from torch_tb_profiler.session.answers.made import MadeAnswers
    from torch_tb_profiler.session.answers.prepare import Preparation


class Answers:
    """Answers views over what the log folders list and the files hold."""

    def __init__(self, log: LogFolders, files: Files, targets: Targets) -> None:
        self._log = log
        self._files = files
        self._targets = targets
        self._lock = threading.Lock()
        self._made: MadeAnswers | None = None
        self._preparation: Preparation | None = None

    def answer(self, slug: str, question: Question) -> Answer:
        """As `Session.view`."""
        if slug in KEPT and not question.params:
            kept = kept_answer(self._files, self._targets, slug, question.names)
            if kept is not None:
                if self._files.serves:
                    self._prepares().begin(kept)
                return kept
        return self._makers().answer(slug, question)

    def _prepares(self) -> Preparation:
        """Imported with the contract of views, as what makes answers is: a command's kept answer needs none."""
        from torch_tb_profiler.session.answers.prepare import Preparation

        with self._lock:
            if self._preparation is None:
                self._preparation = Preparation(self._files, self._targets)
            return self._preparation

    def _makers(self) -> MadeAnswers:
        """Imported with the contract of views, which is slow to set up and which a kept answer does without."""
        from torch_tb_profiler.session.answers.made import MadeAnswers

        with self._lock:
            if self._made is None:
                self._made = MadeAnswers(self._log, self._files, self._targets)
            return self._made
