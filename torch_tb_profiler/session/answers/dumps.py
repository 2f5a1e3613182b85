"""Answer views of the flight recorder dumps of a run."""

from __future__ import annotations

from typing import Any

from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.discovery import ListedRun
from torch_tb_profiler.session.answers.answer import Answer, ViewRequest
from torch_tb_profiler.session.cache.entries import encode_json
from torch_tb_profiler.session.dumps import DumpReader
from torch_tb_profiler.session.files import RequestedFiles
from torch_tb_profiler.session.log import LogFolders
from torch_tb_profiler.session.state import FileState
from torch_tb_profiler.session.targets import Targets
from torch_tb_profiler.view import DumpsView, parse_params


class DumpAnswers:
    """The answers of views of the dumps of a run, built once for as long as the dumps stay the same."""

    def __init__(self, log: LogFolders, files: RequestedFiles, targets: Targets) -> None:
        self._log = log
        self._targets = targets
        self._reader = DumpReader(files.submit, files.small_bytes)
        self._last: tuple[object, bytes] | None = None

    def answer(self, view: DumpsView[Any, Any], request: ViewRequest) -> Answer:
        params = parse_params(view.params, request.params)
        run = self._find_run(request.names.run)
        files = [dump.file for dump in run.dumps]
        if request.wait:
            self._log.wait_until_complete(files, request.timeout)
            run = self._find_run(run.name)
        answer = Answer(view.slug, run.name, "", "", FileState("waiting"), None)
        if any(map(self._log.is_growing, files)):
            return answer
        state, job = self._reader.read(run.dumps, request.wait, request.timeout)
        if job is None:
            return Answer(view.slug, run.name, "", "", state, None)
        key = view.slug, params, job
        last = self._last
        if last is None or last[0] != key:
            last = self._last = key, encode_json(view.build(job, params))
        return Answer(view.slug, run.name, "", "", state, last[1])

    def _find_run(self, name: str | None) -> ListedRun:
        """Return a run with dumps by name, or the first one if None."""
        run = self._targets.run(name)
        if name is None and not run.dumps:
            run = next((each for each in self._targets.runs if each.dumps), run)
        if not run.dumps:
            raise NotFoundError(
                "there are no flight recorder dumps in the run",
                where=run.name,
                hint="put the files `nccl_trace_rank_*` of all ranks into its folder",
            )
        return run
