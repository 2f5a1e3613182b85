"""The one object that surfaces talk to."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.discovery import Catalog, Run, Span, Worker
from torch_tb_profiler.model.health import HealthNote
from torch_tb_profiler.session.answers import Answer, Answers, Question, unavailable
from torch_tb_profiler.session.exports import Download, Excerpt, Exports
from torch_tb_profiler.session.files import Files
from torch_tb_profiler.session.log import LogFolders, Root
from torch_tb_profiler.session.state import ErrorInfo, FileState
from torch_tb_profiler.session.targets import Names, Target, Targets
from torch_tb_profiler.storage import FileId
from torch_tb_profiler.views import all_views

if TYPE_CHECKING:
    from torch_tb_profiler.model.trace import Trace


def open_session(
    roots: str | Sequence[Root], settings: Settings | None = None, *, own_process: bool = False
) -> Session:
    """A session over a log folder, a URL or one trace file (or several), listed once.

    settings     by default the environment's
    own_process  this process does nothing else: it may read large files itself
    Raises ProfilerError if a place cannot be listed.
    """
    places = [Root(roots)] if isinstance(roots, str) else roots
    session = Session(places, settings or Settings.from_environment(), own_process=own_process)
    session.scan()
    if session.error is not None:
        session.close()
        raise session.error.exception()
    return session


class Session:
    """Runs below some log folders. Nothing is listed or parsed before it is asked for."""

    def __init__(self, roots: Sequence[Root], settings: Settings, *, own_process: bool = False) -> None:
        self._files = Files(settings, own_process)
        self._log = LogFolders(roots, settings.poll_seconds, self._files.keep_only)
        self._targets = Targets(self._log, self._files)
        self._answers = Answers(self._log, self._files, self._targets)
        self._importer: threading.Thread | None = None
        self._exports = Exports(self._log, self._files, self._targets, settings.trace_bytes)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop polling and loading; worker processes end."""
        self._log.close()
        self._files.close()
        if self._importer is not None:
            self._importer.join()

    # ---- runs ---------------------------------------------------------------------------------------

    @property
    def root(self) -> str:
        """The log folders, without secrets that their addresses may hold."""
        return self._log.label

    @property
    def scanned(self) -> bool:
        """False until the first listing is done."""
        return self._log.scanned

    @property
    def error(self) -> ErrorInfo | None:
        """Why the last listing failed, None if it did not."""
        return self._log.error

    @property
    def catalog(self) -> Catalog:
        """The runs of the last listing."""
        return self._log.catalog

    def start(self) -> None:
        """List in the background, now and every few seconds, until `close`."""
        self._files.serves = True
        self._log.start()

    def expect_questions(self) -> None:
        """Somebody is about to ask: the views are imported, once, in the background."""
        if self._importer is None:
            self._importer = threading.Thread(target=all_views, name="profiler-views", daemon=True)
            self._importer.start()

    def scan(self) -> Catalog:
        """List now; a folder that cannot be listed leaves its error and the runs known so far."""
        return self._log.scan()

    def workers(self, run: Run) -> tuple[Worker, ...]:
        """The workers of a run; a file that turned out to hold several ranks counts as one worker per rank."""
        return self._targets.workers(run)

    def find(self, run: str | None, worker: str | None, span: str | None) -> Target:
        """Resolve names, each defaulting to the first; NotFoundError says what there is."""
        return self._targets.find(Names(run, worker, span))

    # ---- files --------------------------------------------------------------------------------------

    def state(self, span: Span) -> FileState:
        """The state of a span's file."""
        return self._files.state(span.file.id)

    def health(self, span: Span) -> tuple[HealthNote, ...]:
        """The notes of a file that is ready, else none."""
        summary = self._files.summary(span.file.id)
        return summary.health if summary is not None else ()

    def load(self, span: Span) -> FileId:
        """Ask for a span's file; returns at once. A growing file is left alone until it is whole.

        Raises NotFoundError if it has vanished since it was listed.
        """
        self._targets.request(span.file)
        return span.file.id

    def wait(self, file: FileId, timeout: float | None = None) -> bool:
        """Wait until a file that was asked for by `load` is ready or failed; False if it is not yet."""
        return self._files.wait(file, timeout)

    def retry(self, span: Span) -> None:
        """Load a failed file again; NotFoundError if it has vanished since it was listed."""
        self._files.retry(span.file.id)
        self._targets.request(span.file)

    # ---- views --------------------------------------------------------------------------------------

    def view(
        self,
        slug: str,
        run: str | None = None,
        worker: str | None = None,
        span: str | None = None,
        params: Mapping[str, str] | None = None,
        *,
        wait: bool = False,
        timeout: float | None = None,
    ) -> Answer:
        """The payload of a view, or the state of its file while it is loading or failed.

        Of a view of a run, `worker` says nothing, and what is ready is answered while the rest is loading;
        of a pair, `params` also hold what it is compared with (`view.BASE`). With `wait` all is waited for.
        Raises NotFoundError for unknown names, UsageError for unknown parameters.
        """
        return self._answers.answer(slug, Question(Names(run, worker, span), params or {}, wait, timeout))

    def unavailable(self, target: Target) -> Mapping[str, str] | None:
        """View slug -> why there is nothing to show; None while the file is not loaded."""
        summary = self._files.summary(target.file.id)
        return None if summary is None else unavailable(summary, target.run)

    def trace(
        self,
        run: str | None = None,
        worker: str | None = None,
        span: str | None = None,
        *,
        wait: bool = False,
        timeout: float | None = None,
    ) -> tuple[FileState, Trace | None]:
        """The columns of a trace; None while its file is loading or if it failed.

        Raises NotFoundError for unknown names.
        """
        names = Names(run, worker, span)
        target = self._targets.ready(names, wait, timeout)
        state, trace = self._files.open(target.file.id, target.part)
        while trace is not None and (now := self._targets.find(names)).trace != target.trace:
            target = now  # its file was read meanwhile, and holds several ranks
            state, trace = self._files.open(target.file.id, target.part)
        return state, trace

    # ---- files for other tools ----------------------------------------------------------------------

    def original(self, run: str | None = None, worker: str | None = None, span: str | None = None) -> Download:
        """The file of a span as it is stored; the caller closes the stream.

        Raises NotFoundError for unknown names, StorageError if it cannot be opened.
        """
        return self._exports.original(Names(run, worker, span))

    def excerpt(
        self,
        run: str | None = None,
        worker: str | None = None,
        span: str | None = None,
        params: Mapping[str, str] | None = None,
        *,
        wait: bool = False,
        timeout: float | None = None,
    ) -> tuple[FileState, Excerpt | None]:
        """A part of a trace as a trace file of its own; None while the file is loading or if it failed.

        `params` are the fields of `base.cut.Cut` as text. Raises NotFoundError for unknown names,
        UsageError for parameters that make no sense. A file that is too large to be read whole is cut in
        passes over it, which takes minutes: only with `wait`.
        """
        return self._exports.excerpt(Names(run, worker, span), params or {}, wait, timeout)
