"""Build answers: views of one trace, views of the files next to the traces, and the choice by kind of view."""

from __future__ import annotations

import logging
import threading
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from torch_tb_profiler.base.errors import NotFoundError, TraceError
from torch_tb_profiler.discovery import ListedRun, MemoryFile
from torch_tb_profiler.ingest.formats import FileFormat, file_format_by_kind
from torch_tb_profiler.session.answers.answer import Answer, ViewRequest, check_available
from torch_tb_profiler.session.cache.entries import encode_json
from torch_tb_profiler.session.files import RequestedFiles
from torch_tb_profiler.session.log import LogFolders
from torch_tb_profiler.session.state import FileState
from torch_tb_profiler.session.targets import RequestedNames, Target, Targets
from torch_tb_profiler.storage import FileId
from torch_tb_profiler.view import DumpsView, FileView, PairView, RankView, RunView, TraceView, parse_params
from torch_tb_profiler.views import find_view

if TYPE_CHECKING:
    from torch_tb_profiler.model.trace import Trace
    from torch_tb_profiler.session.answers.dumps import DumpAnswers
    from torch_tb_profiler.session.answers.pair import PairAnswers
    from torch_tb_profiler.session.answers.run import RunAnswers

logger = logging.getLogger(__name__)

MAX_RELOADS = 5
"""How often one request loads a trace again that others evict from a cache too small for all."""


class AnswerBuilder:
    """Builds the answers of views of every kind; what rarer kinds need is imported for the first of them."""

    def __init__(self, log: LogFolders, files: RequestedFiles, targets: Targets) -> None:
        self._log = log
        self._files = files
        self._targets = targets
        self._trace_answers = TraceAnswers(files, targets)
        self._file_answers = FileAnswers(log, files, targets)

    @cached_property
    def _run_answers(self) -> RunAnswers:
        from torch_tb_profiler.session.answers.run import RunAnswers

        return RunAnswers(self._files, self._targets, self._trace_answers.payload)

    @cached_property
    def _pair_answers(self) -> PairAnswers:
        from torch_tb_profiler.session.answers.pair import PairAnswers

        return PairAnswers(self._files, self._targets)

    @cached_property
    def _dump_answers(self) -> DumpAnswers:
        from torch_tb_profiler.session.answers.dumps import DumpAnswers

        return DumpAnswers(self._log, self._files, self._targets)

    def answer(self, slug: str, request: ViewRequest) -> Answer:
        """Answer a view as `Session.view` does."""
        view = find_view(slug)
        match view:
            case TraceView():
                return self._trace_answers.answer(view, request)
            case RunView() | RankView():
                return self._run_answers.answer(view, request)
            case PairView():
                return self._pair_answers.answer(view, request)
            case FileView():
                return self._file_answers.answer(view, request)
            case DumpsView():
                return self._dump_answers.answer(view, request)


class TraceAnswers:
    """The answers of views of one trace."""

    def __init__(self, files: RequestedFiles, targets: Targets) -> None:
        self._files = files
        self._targets = targets

    def answer(self, view: TraceView[Any, Any], request: ViewRequest) -> Answer:
        params = parse_params(view.params, request.params)
        target = self._targets.resolve_and_request(request.names, request.wait, request.timeout)
        run = getattr(params, "capture", None) if view.captures else None
        if run is not None:
            return self._answer_with_captures(view, params, target, request, run)
        reloads = MAX_RELOADS if request.wait else 0
        state, payload = self.payload(view, params, target, request.wait)
        while payload is None and reloads and state.state != "failed" and self._wait(target, request):
            target = self._targets.find(request.names)
            state, payload = self.payload(view, params, target, request.wait)
            reloads -= 1
        while payload is not None and (current := self._targets.find(request.names)).trace != target.trace:
            target = current  # the file was loaded in the meantime, and holds several ranks
            state, payload = self.payload(view, params, target, request.wait)
        partial = view.previews and payload is not None and state.state == "loading"
        return Answer(view.slug, *target.names, state, payload, int(partial))

    def _answer_with_captures(
        self, view: TraceView[Any, Any], params: msgspec.Struct, target: Target, request: ViewRequest, run: str
    ) -> Answer:
        """Answer a view for a trace with the graph captures in the traces of another run."""
        check_available(view, self._files.summary(target.file.id), target)
        state, trace = open_with_captures(self._files, self._targets, target, run, request.wait, request.timeout)
        payload = None if trace is None else encode_json(view.build(trace, params))
        return Answer(view.slug, *target.names, state, payload)

    def _wait(self, target: Target, request: ViewRequest) -> bool:
        return self._files.wait(target.file.id, request.timeout)

    def payload(
        self, view: TraceView[Any, Any], params: msgspec.Struct, target: Target, wait: bool
    ) -> tuple[FileState, bytes | None]:
        """Return a view's answer for one trace; None while the trace is loading, or if it failed.

        wait  the request is not repeated, so an answer that a worker is prefetching is built here, too
        """
        id_ = target.file.id
        check_available(view, self._files.summary(id_), target)
        cacheable = view.cached != "never" and params == view.params()
        if cacheable:
            cached = self._files.result(id_, view.slug, target.part)
            if cached is not None:
                self._files.prefetch_answers(id_, target.part)
                return self._files.state(id_), cached
        if view.first is not None or params in view.filters:
            prefetched = self._files.prefetched_answer(id_, view.slug, target.part, params)
            if prefetched is not None:
                return self._files.state(id_), prefetched
        if cacheable and not wait and self._files.is_prefetching(id_, view.slug, target.part):
            return FileState("loading"), None
        state, trace = self._files.open(id_, target.part)
        if trace is None and view.previews and not wait and state.state != "failed":
            preview = self._files.preview(id_)
            return state, None if preview is None else encode_json(view.build(preview, params))
        if trace is None:
            return state, None
        if view.columns is not None:
            self._files.restore_columns(id_, target.part, view, trace)
        payload = encode_json(view.build(trace, params))
        if cacheable and view.cached == "on_request":
            self._files.cache_answer(id_, view.slug, target.part, payload)
        self._files.prefetch_answers(id_, target.part)
        return state, payload


def open_with_captures(
    files: RequestedFiles, targets: Targets, target: Target, run: str, wait: bool, timeout: float | None
) -> tuple[FileState, Trace | None]:
    """Return the state and the trace of a target, with the graph captures in the traces of another run.

    Of that run, the workers of the same rank count, else all. The trace is None while a file is loading or if one
    failed; the state is of that file. Raises NotFoundError if there is no such run.
    """
    from torch_tb_profiler.session.companion_files import with_captures

    state, trace = files.open(target.file.id, target.part)
    if trace is None:
        return state, None
    workers = targets.workers(targets.run(run))
    same_rank = [worker for worker in workers if worker.rank == target.worker.rank]
    captured: list[tuple[str, Trace]] = []
    for worker in same_rank or workers:
        for span in worker.spans:
            names = RequestedNames(run, worker.name, span.name)
            other = targets.resolve_and_request(names, wait, timeout)
            state, other_trace = files.open(other.file.id, other.part)
            if other_trace is None:
                return state, None
            captured.append((f"{run}: {other.file.path}", other_trace))
    return state, with_captures(trace, captured)


class FileAnswers:
    """The answers of views of the memory files of a run.

    Snapshots are loaded and cached as traces are; exported timelines are small and are read on request.
    """

    def __init__(self, log: LogFolders, files: RequestedFiles, targets: Targets) -> None:
        self._log = log
        self._files = files
        self._targets = targets
        self._lock = threading.Lock()
        self._last: tuple[str, FileId, object] | None = None
        self._prepared: set[FileId] = set()

    def answer(self, view: FileView[Any, Any, Any], request: ViewRequest) -> Answer:
        params = parse_params(view.params, request.params)
        target = self._targets.find(request.names)
        number = params.file
        if number is None:
            number = default_file(target, view.format)
        file = memory_file(target.run, number)
        format_ = file_format_by_kind(view.format)
        if format_.content is None:
            payload = encode_json(view.build(self._read(view, file), params))
            return Answer(view.slug, *target.names, FileState("ready"), payload)
        id_ = file.file.id
        cacheable = view.cached and msgspec.structs.replace(params, file=None) == view.params()
        if cacheable and (cached := self._read_cached(view, file)) is not None:
            self._prepare(view, format_, id_)
            return Answer(view.slug, *target.names, self._files.state(id_), cached)
        state, trace = self._load(view, file, request)
        preview = None
        if trace is None and not request.wait and state.state != "failed":
            preview = self._files.preview(id_)
        shown = preview if trace is None else trace
        built = None if shown is None else encode_json(view.build(format_.content(shown), params))
        if cacheable and trace is not None and built is not None:
            self._files.cache_answer(id_, view.slug, None, built)
        return Answer(view.slug, *target.names, state, built, int(preview is not None))

    def _read_cached(self, view: FileView[Any, Any, Any], file: MemoryFile) -> bytes | None:
        """Return the cached answer of a view without parameters but the file, or None if it must be built."""
        if file.kind != view.format or self._files.cached_summary(file.file.id) is None:
            return None
        self._targets.request(file.file)
        return self._files.result(file.file.id, view.slug, None)

    def _prepare(self, view: FileView[Any, Any, Any], format_: FileFormat, id_: FileId) -> None:
        """Derive in the background, once per file, what further requests need; return at once."""
        content, prepare = format_.content, view.prepare
        if content is None or prepare is None or id_ in self._prepared or not self._files.should_prepare(id_):
            return
        self._prepared.add(id_)

        def derive() -> None:
            try:
                trace = self._files.open(id_, None)[1]
                if trace is not None:
                    prepare(content(trace))
            except Exception:  # a request for it will return the error
                logger.exception("%s: preparing %s failed", id_.uri, view.slug)

        threading.Thread(target=derive, name="profiler-prepare", daemon=True).start()

    def _load(
        self, view: FileView[Any, Any, Any], file: MemoryFile, request: ViewRequest
    ) -> tuple[FileState, Trace | None]:
        """Load a file and return its trace, or None while it is loading; small files are waited for.

        Raises TraceError if it can't be read.
        """
        if file.kind != view.format:
            raise TraceError(f"the file is not a memory {view.format} but a {file.kind}", where=file.name)
        id_ = file.file.id
        wait = request.wait or not self._files.is_large(file.file)
        if request.wait:
            self._targets.wait_until_complete([file.file], request.timeout)
        self._targets.request(file.file)
        state, trace = self._files.open(id_, None)
        reloads = MAX_RELOADS if wait else 0
        while trace is None and reloads and self._files.wait(id_, request.timeout):
            state, trace = self._files.open(id_, None)
            reloads = 0 if state.state == "failed" else reloads - 1
        if state.error is not None:
            raise TraceError(state.error.message, where=file.name, hint=state.error.hint)
        return state, trace

    def _read(self, view: FileView[Any, Any, Any], file: MemoryFile) -> object:
        """Return the parsed content of a file; that of the last file is cached."""
        id_ = file.file.id
        with self._lock:  # one at a time: parsing a snapshot takes many times its size in memory
            if self._last is not None and self._last[:2] == (view.slug, id_):
                return self._last[2]
            self._last = None
            self._log.check_listed(file.file)
            with file.file.open() as stream:
                try:
                    parse = file_format_by_kind(view.format).parse
                    assert parse is not None  # one without it is loaded
                    content: object = parse(stream)
                except TraceError as error:
                    raise TraceError(error.message, where=file.name, hint=error.hint) from error
            self._last = view.slug, id_, content
            return content


def default_file(target: Target, kind: str) -> int:
    """Return the number of the file of a target if it is of this kind, else of the first such file, else 0."""
    files = target.run.memory_files
    own = [number for number, each in enumerate(files) if each.kind == kind and each.file.id == target.file.id]
    return next(iter(own or [number for number, each in enumerate(files) if each.kind == kind]), 0)


def memory_file(run: ListedRun, number: int) -> MemoryFile:
    """Return a memory file of a run by its number in the listing; NotFoundError if there is none."""
    if not 0 <= number < len(run.memory_files):
        if not run.memory_files:
            raise NotFoundError(
                f"run {run.name!r} has no memory snapshot or timeline",
                hint="put snapshots (*.pickle) or timelines (*.raw.json) into its folder",
            )
        raise NotFoundError(
            f"there is no memory file {number} in run {run.name!r}",
            hint=f"files: 0 to {len(run.memory_files) - 1}",
        )
    return run.memory_files[number]
