"""Views of the files beside the traces of a run."""

from __future__ import annotations

import threading
from typing import Any

from torch_tb_profiler.base.errors import NotFoundError, TraceError
from torch_tb_profiler.discovery import MemoryFile, Run
from torch_tb_profiler.ingest.registry import file_format
from torch_tb_profiler.session.answers.answer import Answer, Question
from torch_tb_profiler.session.kept.summary import encode
from torch_tb_profiler.session.log import LogFolders
from torch_tb_profiler.session.state import FileState
from torch_tb_profiler.session.targets import Targets
from torch_tb_profiler.storage import FileId
from torch_tb_profiler.view import FileView, parse_params


class FileAnswers:
    def __init__(self, log: LogFolders, targets: Targets) -> None:
        self._log = log
        self._targets = targets
        self._reading = threading.Lock()
        self._last: tuple[str, FileId, object] | None = None

    def answer(self, view: FileView[Any, Any, Any], question: Question) -> Answer:
        params = parse_params(view.params, question.params)
        run = self._targets.run(question.names.run)
        content = self._read(view, memory_file(run, params.file))
        payload = encode(view.build(content, params))
        worker = run.workers[0]
        return Answer(view.slug, run.name, worker.name, worker.spans[0].name, FileState("ready"), payload)

    def _read(self, view: FileView[Any, Any, Any], file: MemoryFile) -> object:
        """What a file says; that of the last one is kept."""
        id_ = file.file.id
        with self._reading:  # one at a time: a snapshot takes many times its size in memory while it is read
            if self._last is not None and self._last[:2] == (view.slug, id_):
                return self._last[2]
            self._last = None
            self._log.check_listed(file.file)
            with file.file.open() as stream:
                try:
                    content: object = file_format(view.format).parse(stream)
                except TraceError as error:
                    raise TraceError(error.message, where=file.name, hint=error.hint) from error
            self._last = view.slug, id_, content
            return content


def memory_file(run: Run, number: int) -> MemoryFile:
    """A memory file of a run by its number in the listing; NotFoundError if there is none."""
    if not 0 <= number < len(run.memory_files):
        raise NotFoundError(
            f"there is no memory file {number} in run {run.name!r}",
            hint=f"there are {len(run.memory_files)}: memory snapshots (*.pickle) and timelines (*.raw.json)",
        )
    return run.memory_files[number]
