"""Every kind of view has its own way to an answer."""

from __future__ import annotations

from torch_tb_profiler.session.answers.answer import Answer, Question
from torch_tb_profiler.session.answers.of_file import FileAnswers
from torch_tb_profiler.session.answers.of_pair import PairAnswers
from torch_tb_profiler.session.answers.of_run import RunAnswers
from torch_tb_profiler.session.answers.of_trace import TraceAnswers
from torch_tb_profiler.session.files import Files
from torch_tb_profiler.session.log import LogFolders
from torch_tb_profiler.session.targets import Targets
from torch_tb_profiler.view import FileView, PairView, RankView, RunView, TraceView
from torch_tb_profiler.views import find_view


class MadeAnswers:
    """Answers that take the view."""

    def __init__(self, log: LogFolders, files: Files, targets: Targets) -> None:
        self._of_trace = TraceAnswers(files, targets)
        self._of_run = RunAnswers(files, targets, self._of_trace)
        self._of_pair = PairAnswers(files, targets)
        self._of_file = FileAnswers(log, targets)

    def answer(self, slug: str, question: Question) -> Answer:
        """As `Session.view`."""
        view = find_view(slug)
        match view:
            case TraceView():
                return self._of_trace.answer(view, question)
            case RunView() | RankView():
                return self._of_run.answer(view, question)
            case PairView():
                return self._of_pair.answer(view, question)
            case FileView():
                return self._of_file.answer(view, question)
