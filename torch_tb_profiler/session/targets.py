"""Resolve the names in a request to a run, a worker, and a span, and request their file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.discovery import ListedFile, ListedRun, Span, Worker
from torch_tb_profiler.discovery.catalog import find_span, find_worker
from torch_tb_profiler.discovery.companions import companion_rank, is_merged, unmerged_workers
from torch_tb_profiler.ingest.formats import may_hold_recordings
from torch_tb_profiler.session.files import RequestedFiles
from torch_tb_profiler.session.log import LogFolders

_RANK = lazy_regex(r"rank\d{1,9}")


class RequestedNames(NamedTuple):
    """The run, worker, and span that a request names; None means the first."""

    run: str | None = None
    worker: str | None = None
    span: str | None = None


class TargetNames(NamedTuple):
    """The names of an existing trace."""

    run: str
    worker: str
    span: str


class Target(msgspec.Struct, frozen=True):
    """One trace: a span of a worker of a run; `part` is its number in a file that holds several."""

    run: ListedRun
    worker: Worker
    span: Span
    part: int | None = None

    @property
    def names(self) -> TargetNames:
        return TargetNames(self.run.name, self.worker.name, self.span.name)

    @property
    def trace(self) -> tuple[TargetNames, int | None]:
        """Return the identity of the trace: a file may turn out to hold several traces once it is read."""
        return self.names, self.part

    @property
    def file(self) -> ListedFile:
        return self.span.file


def check_has_trace(run: ListedRun) -> None:
    """Raise NotFoundError if a run has only flight recorder dumps."""
    if not run.workers:
        raise NotFoundError(
            "the run has no trace, only flight recorder dumps",
            where=run.name,
            hint="the Hangs tab and `torch-tb-profiler view hangs` read them",
        )


class Targets:
    """All targets: from the listing of the log folders, and from the contents of files that have been read."""

    def __init__(self, log: LogFolders, files: RequestedFiles) -> None:
        self._log = log
        self._files = files

    def run(self, name: str | None) -> ListedRun:
        """Return a run by name, or the first if None; NotFoundError lists the runs."""
        return self._log.catalog.run(name)

    @property
    def runs(self) -> tuple[ListedRun, ...]:
        return self._log.catalog.runs

    def workers(self, run: ListedRun) -> tuple[Worker, ...]:
        """Return the workers of a run; a file that turned out to hold several ranks is one worker per rank.

        A rank that has only PyTorch's file, next to merged files that don't hold the rank, comes last.
        """
        listed = [each for worker in run.workers for each in self._split_by_rank(worker)]
        return (*listed, *self._find_unmerged_ranks(run))

    def _find_unmerged_ranks(self, run: ListedRun) -> list[Worker]:
        """Return the ranks that no merged file holds, once all merged files of the run are read or failed."""
        merged_ranks: dict[ListedFile, frozenset[int]] = {}
        for file in filter(is_merged, run.files()):
            summary = self._files.summary(file.id)
            if summary is not None:
                rank = summary.rank
                if rank is None and not file.shared:
                    rank = companion_rank(file.beside[0].path)
                merged_ranks[file] = frozenset(summary.ranks or (() if rank is None else (rank,)))
            elif self._files.state(file.id).state == "failed":
                merged_ranks[file] = frozenset()
            else:
                return []
        return unmerged_workers(merged_ranks)

    def find(self, names: RequestedNames) -> Target:
        """Resolve names, each defaulting to the first; NotFoundError lists the valid names."""
        run, name = self.run(names.run), names.worker
        check_has_trace(run)
        workers = self.workers(run)
        listed = {worker.name for worker in run.workers}
        if name in listed and all(worker.name != name for worker in workers):
            # The plain name of a merged file means its first rank.
            name = next(worker.name for worker in workers if worker.name.startswith(f"{name}/rank"))
        worker = self._find_unread_rank(run, workers, name) or find_worker(workers, name)
        span = self._find_unread_recording(worker, names.span) or find_span(worker, names.span)
        return Target(run, worker, span, span.part)

    def spans(self, run: ListedRun, name: str) -> list[Span]:
        """Return the spans of a name: one per worker that has it, or may have it once its file is read."""
        spans = [self.span(worker, name) for worker in self.workers(run)]
        return [span for span in spans if span is not None]

    def span(self, worker: Worker, name: str) -> Span | None:
        """Return a worker's span of a name, or one that it may turn out to have once its file is read."""
        listed = next((span for span in worker.spans if span.name == name), None)
        return listed or self._find_unread_recording(worker, name)

    def request(self, file: ListedFile) -> None:
        """Request a file and return at once. A growing file is not loaded until it is complete.

        Raises NotFoundError if it has disappeared since it was listed.
        """
        self._log.check_listed(file)
        if not self._log.is_growing(file):
            self._files.request(file, alone=self._log.holds_one_trace)

    def request_all(self, files: Sequence[ListedFile]) -> None:
        """Request the files of a job like `request`."""
        for file in files:
            self._log.check_listed(file)
        self._files.request_all([file for file in files if not self._log.is_growing(file)])

    def wait_until_complete(self, files: Sequence[ListedFile], timeout: float | None) -> None:
        """Wait until none of these files is growing, up to `timeout` seconds; resolve names again after that."""
        self._log.wait_until_complete(files, timeout)

    def resolve_and_request(self, names: RequestedNames, wait: bool, timeout: float | None) -> Target:
        """Resolve names and request the file; if `wait`, wait until it is complete and loaded."""
        target = self.find(names)
        while True:
            if wait:
                self.wait_until_complete([target.file], timeout)
                target = self.find(names)
            self.request(target.file)
            if wait:
                self._files.wait(target.file.id, timeout)
            if self._files.state(target.file.id).state != "ready":
                return target
            again = self.find(names)  # a merged file has turned out to hold several workers
            if again.file.id == target.file.id:
                return again
            target = again  # the file was replaced while it was read

    def _find_unread_rank(self, run: ListedRun, workers: Sequence[Worker], name: str | None) -> Worker | None:
        """Return the worker `worker/rank3` while the file of `worker` has not been read; None for other names."""
        plain, _, rank = (name or "").rpartition("/")
        worker = next((each for each in run.workers if each.name == plain), None)
        if worker is None or not _RANK.fullmatch(rank) or any(each.name == name for each in workers):
            return None
        number = int(rank.removeprefix("rank"))
        spans = tuple(
            replace(span, part=number) for span in worker.spans if self._files.summary(span.file.id) is None
        )
        return Worker(f"{plain}/{rank}", number, spans) if spans else None

    def _find_unread_recording(self, worker: Worker, name: str | None) -> Span | None:
        """Return span 3 while the last file, which may hold several recordings, has not been read; else None."""
        last = worker.spans[-1]
        number = int(name) if name is not None and re.fullmatch(r"[1-9]\d{0,8}", name) else 0
        unread = may_hold_recordings(last.file.name) and self._files.summary(last.file.id) is None
        return replace(last, name=str(number)) if unread and number > len(worker.spans) else None

    def _split_by_rank(self, worker: Worker) -> list[Worker]:
        """Return one worker per rank of a merged file, else the worker with the rank that its files have."""
        summaries = [self._files.summary(span.file.id) for span in worker.spans]
        if any(summary is not None and summary.recordings > 1 for summary in summaries):
            worker = self._with_recordings(worker)
            summaries = [self._files.summary(span.file.id) for span in worker.spans]
        ranks = sorted({rank for summary in summaries if summary is not None for rank in summary.ranks})
        if not ranks:
            ranks_in_file = {
                summary.rank for summary in summaries if summary is not None and summary.rank is not None
            }
            rank = ranks_in_file.pop() if len(ranks_in_file) == 1 else worker.rank
            return [worker if rank == worker.rank else Worker(worker.name, rank, worker.spans)]
        return [
            Worker(
                f"{worker.name}/rank{rank}",
                rank,
                tuple(
                    replace(span, part=rank)
                    for span, summary in zip(worker.spans, summaries, strict=True)
                    if summary is None or rank in summary.ranks
                ),
            )
            for rank in ranks
        ]

    def _with_recordings(self, worker: Worker) -> Worker:
        """Return the worker with one span per recording: a file may hold several, one after the other."""
        spans: list[Span] = []
        for span in worker.spans:
            summary = self._files.summary(span.file.id)
            count = 1 if summary is None else summary.recordings
            for part in range(count):
                label = span.label if count == 1 else f"{span.label}, recording {part + 1} of {count}"
                spans.append(Span(str(len(spans) + 1), label, span.file, part if count > 1 else None))
        return replace(worker, spans=tuple(spans)) if len(spans) > len(worker.spans) else worker
