"""The session: the one object that surfaces talk to."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.discovery import Catalog, ListedRun, Span, Worker
from torch_tb_profiler.model.health import HealthNote
from torch_tb_profiler.session.answers import (
    Answer,
    Answers,
    ViewRequest,
    unavailable_reasons,
    unavailable_without_trace,
)
from torch_tb_profiler.session.exports import Download, Excerpt, Exports
from torch_tb_profiler.session.files import RequestedFiles
from torch_tb_profiler.session.log import LogFolders, Root
from torch_tb_profiler.session.state import ErrorInfo, FileState
from torch_tb_profiler.session.targets import RequestedNames, Target, Targets
from torch_tb_profiler.storage import FileId
from torch_tb_profiler.views import all_views

if TYPE_CHECKING:
    from torch_tb_profiler.model.trace import Trace


def open_session(
    roots: str | Sequence[Root], settings: Settings | None = None, *, own_process: bool = False
) -> Session:
    """Open a session over a log folder, a URL, or one trace file (or several), and list it once.

    settings     by default those of the environment
    own_process  this process does nothing else, so it may load large files itself

    Raises ProfilerError if a place can't be listed.
    """
    places = [Root(roots)] if isinstance(roots, str) else roots
    session = Session(places, settings or Settings.from_environment(), own_process=own_process)
    session.scan()
    if session.error is not None:
        session.close()
        raise session.error.exception()
    return session


class Session:
    """The runs in some log folders. Nothing is listed or parsed before it is requested."""

    def __init__(self, roots: Sequence[Root], settings: Settings, *, own_process: bool = False) -> None:
        self._files = RequestedFiles(settings, own_process)
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
        """Stop listing and loading, and end the worker processes."""
        self._log.close()
        self._files.close()
        if self._importer is not None:
            self._importer.join()

    # ---- runs ---------------------------------------------------------------------------------------

    @property
    def root(self) -> str:
        """Return the log folders, without secrets in their addresses."""
        return self._log.label

    @property
    def scanned(self) -> bool:
        """Return whether the first listing is complete."""
        return self._log.scanned

    @property
    def error(self) -> ErrorInfo | None:
        """Return the error of the last listing, or None if there was none."""
        return self._log.error

    @property
    def catalog(self) -> Catalog:
        """Return the runs of the last listing."""
        return self._log.catalog

    def start(self) -> None:
        """List in the background, now and every few seconds, until `close`."""
        self._files.prefetches = True
        self._log.start()

    def import_views(self) -> None:
        """Import the views in the background, once, before the first request for one arrives."""
        if self._importer is None:
            self._importer = threading.Thread(target=all_views, name="profiler-views", daemon=True)
            self._importer.start()

    def scan(self) -> Catalog:
        """List the folders now; if one can't be listed, set `error` and keep the runs that are known."""
        return self._log.scan()

    def workers(self, run: ListedRun) -> tuple[Worker, ...]:
        """Return the workers of a run; a file that turned out to hold several ranks is one worker per rank."""
        return self._targets.workers(run)

    def find(self, run: str | None, worker: str | None, span: str | None) -> Target:
        """Resolve names, each defaulting to the first; NotFoundError lists the valid names."""
        return self._targets.find(RequestedNames(run, worker, span))

    def is_snapshot(self, run: str | None, worker: str | None, span: str | None) -> bool:
        """Return whether a recording is a memory snapshot without a trace; NotFoundError for unknown names."""
        target = self.find(run, worker, span)
        return any(target.file.path == each.file.path for each in target.run.memory_files)

    def comparison_view(self, *sides: tuple[str | None, str | None, str | None]) -> str:
        """Return the view that compares recordings (run, worker, span): of memory snapshots, or of traces."""
        return "memory/compare" if all(self.is_snapshot(*side) for side in sides) else "diff"

    # ---- files --------------------------------------------------------------------------------------

    def state(self, span: Span) -> FileState:
        """Return the state of a span's file."""
        return self._files.state(span.file.id)

    def health(self, span: Span) -> tuple[HealthNote, ...]:
        """Return the notes on a span's file if it is ready, else none."""
        summary = self._files.summary(span.file.id)
        return summary.health if summary is not None else ()

    def load(self, span: Span) -> FileId:
        """Request a span's file and return at once. A growing file is not loaded until it is complete.

        Raises NotFoundError if it has disappeared since it was listed.
        """
        self._targets.request(span.file)
        return span.file.id

    def wait(self, file: FileId, timeout: float | None = None) -> bool:
        """Wait until a file that `load` requested is ready or failed; return False if it is not yet."""
        return self._files.wait(file, timeout)

    def retry(self, span: Span) -> None:
        """Load a failed file again; NotFoundError if it has disappeared since it was listed."""
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
        """Return the payload of a view, or the state of its file while that is loading or if it failed.

        A view of a run ignores `worker`, and answers with the ranks that are ready while the others are loading.
        For a view of a pair, `params` may also name what the trace is compared with (`view.BASE`). With `wait`,
        all files are waited for.

        Raises NotFoundError for unknown names, UsageError for unknown parameters.
        """
        return self._answers.answer(
            slug, ViewRequest(RequestedNames(run, worker, span), params or {}, wait, timeout)
        )

    def lacks_answers(self, run: str | None, worker: str | None, span: str | None) -> bool:
        """Return whether a large trace was opened here whose tabs `build_answers` has not prepared yet.

        Raises NotFoundError for unknown names.
        """
        target = self.find(run, worker, span)
        return self._files.lacks_answers(target.file.id, target.part)

    def build_answers(self, run: str | None, worker: str | None, span: str | None) -> None:
        """Build the first answers of a cached trace's tabs in this process, and cache them.

        Nothing is done for a trace that is not cached. Raises NotFoundError for unknown names.
        """
        target = self.find(run, worker, span)
        if self._files.cached_summary(target.file.id) is not None:
            self._targets.request(target.file)
            target = self.find(run, worker, span)  # with the summary, its part of the file is known
            self._files.build_answers(target.file.id, target.part)

    def unavailable_views(self, run: str | None, worker: str | None, span: str | None) -> Mapping[str, str] | None:
        """Return view slug -> why there is nothing to show, also for a run without a trace; see `unavailable`.

        Raises NotFoundError for unknown names.
        """
        selected = self._targets.run(run)
        if not selected.workers:
            return unavailable_without_trace(selected)
        return self.unavailable(self.find(run, worker, span))

    def step_noun(self, run: str | None, worker: str | None, span: str | None) -> str:
        """Return what a step of a trace is in a sentence; "step" also while its file is not loaded."""
        if not self._targets.run(run).workers:
            return "step"
        summary = self._files.summary(self.find(run, worker, span).file.id)
        return "step" if summary is None else summary.step_noun

    def unavailable(self, target: Target) -> Mapping[str, str] | None:
        """Return view slug -> why there is nothing to show, or None while the file is not loaded."""
        summary = self._files.summary(target.file.id)
        return None if summary is None else unavailable_reasons(summary, target.run)

    def trace(
        self,
        run: str | None = None,
        worker: str | None = None,
        span: str | None = None,
        *,
        capture: str | None = None,
        wait: bool = False,
        timeout: float | None = None,
    ) -> tuple[FileState, Trace | None]:
        """Return the columns of a trace; None while its file is loading or if it failed.

        capture  a run of the same log folder that holds captures of this run's graphs

        Raises NotFoundError for unknown names.
        """
        names = RequestedNames(run, worker, span)
        target = self._targets.resolve_and_request(names, wait, timeout)
        if capture is not None:
            from torch_tb_profiler.session.answers.build import open_with_captures

            return open_with_captures(self._files, self._targets, target, capture, wait, timeout)
        state, trace = self._files.open(target.file.id, target.part)
        while trace is not None and (current := self._targets.find(names)).trace != target.trace:
            target = current  # the file was loaded in the meantime, and holds several ranks
            state, trace = self._files.open(target.file.id, target.part)
        return state, trace

    # ---- files for other tools ----------------------------------------------------------------------

    def original(self, run: str | None = None, worker: str | None = None, span: str | None = None) -> Download:
        """Return the file of a span as it is stored; the caller closes the stream.

        Raises NotFoundError for unknown names, StorageError if it can't be opened.
        """
        return self._exports.original(RequestedNames(run, worker, span))

    def save(self, kind: str, content: bytes) -> str:
        """Write a table or a picture of the page into the log folder, and return where (`Exports.save`)."""
        return self._exports.save(kind, content)

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
        """Return a part of a trace as a trace file; None while the file is loading or if it failed.

        `params` are the fields of `analyses.timeline.ExcerptRange` as text. With `wait`, a part is also cut out of
        a file that is too large to be loaded, in passes over the file, which takes minutes.

        Raises NotFoundError for unknown names, UsageError for invalid parameters.
        """
        return self._exports.excerpt(RequestedNames(run, worker, span), params or {}, wait, timeout)
