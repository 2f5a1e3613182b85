"""From the names of a request to a file: the workers of a run, one trace, and asking for it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from torch_tb_profiler.discovery import ListedFile, Run, Span, Worker
from torch_tb_profiler.discovery.beside import is_merged, rank_beside, unmerged
from torch_tb_profiler.discovery.catalog import find_span, find_worker
from torch_tb_profiler.ingest.registry import holds_recordings
from torch_tb_profiler.session.files import Files
from torch_tb_profiler.session.log import LogFolders

_RANK = re.compile(r"rank\d{1,9}")


class Names(NamedTuple):
    """What a request names; None means the first."""

    run: str | None = None
    worker: str | None = None
    span: str | None = None


class FullNames(NamedTuple):
    """The names of an existing trace."""

    run: str
    worker: str
    span: str


@dataclass(frozen=True)
class Target:
    """One trace: a span of a worker of a run; `part` tells which of a file that holds several."""

    run: Run
    worker: Worker
    span: Span
    part: int | None = None

    @property
    def names(self) -> FullNames:
        return FullNames(self.run.name, self.worker.name, self.span.name)

    @property
    def trace(self) -> tuple[FullNames, int | None]:
        """Which trace it is: what was found before its file was read may turn out to be several."""
        return self.names, self.part

    @property
    def file(self) -> ListedFile:
        return self.span.file


class Targets:
    """Resolves names by what the log folders list and what the files turned out to hold."""

    def __init__(self, log: LogFolders, files: Files) -> None:
        self._log = log
        self._files = files

    def run(self, name: str | None) -> Run:
        """A run by name, the first if None; NotFoundError says what there is."""
        return self._log.catalog.run(name)

    @property
    def runs(self) -> tuple[Run, ...]:
        return self._log.catalog.runs

    def workers(self, run: Run) -> tuple[Worker, ...]:
        """The workers of a run; a file that turned out to hold several ranks counts as one worker per rank.

        A rank of which PyTorch's file alone is here, beside merged files that do not hold it, comes last.
        """
        known = [each for worker in run.workers for each in self._ranks_of(worker)]
        return (*known, *self._unmerged(run))

    def _unmerged(self, run: Run) -> list[Worker]:
        """Once all merged files of the run are read, or cannot be."""
        held: dict[ListedFile, frozenset[int]] = {}
        for file in filter(is_merged, run.files()):
            summary = self._files.summary(file.id)
            if summary is not None:
                one = (
                    rank_beside(file.beside[0].path) if summary.rank is None and not file.shared else summary.rank
                )
                held[file] = frozenset(summary.ranks or (() if one is None else (one,)))
            elif self._files.state(file.id).state == "failed":
                held[file] = frozenset()
            else:
                return []
        return unmerged(held)

    def find(self, names: Names) -> Target:
        """Resolve names, each defaulting to the first; NotFoundError says what there is."""
        run, name = self.run(names.run), names.worker
        workers = self.workers(run)
        listed = {worker.name for worker in run.workers}
        if name in listed and all(worker.name != name for worker in workers):
            # The plain name of a merged file means its first rank.
            name = next(worker.name for worker in workers if worker.name.startswith(f"{name}/rank"))
        worker = self._unread_rank(run, workers, name) or find_worker(workers, name)
        span = self._unread_recording(worker, names.span) or find_span(worker, names.span)
        return Target(run, worker, span, span.part)

    def spans(self, run: Run, name: str) -> list[Span]:
        """The spans of a name, one per worker that has it or may turn out to have it once its file is read."""
        spans = [self.span(worker, name) for worker in self.workers(run)]
        return [span for span in spans if span is not None]

    def span(self, worker: Worker, name: str) -> Span | None:
        """The span of a name that a worker has, or may turn out to have once its file is read."""
        known = next((span for span in worker.spans if span.name == name), None)
        return known or self._unread_recording(worker, name)

    def request(self, file: ListedFile) -> None:
        """Ask for a file; returns at once. A growing file is left alone until it is whole.

        Raises NotFoundError if it has vanished since it was listed.
        """
        self._log.check_listed(file)
        if not self._log.is_growing(file):
            self._files.request(file)

    def wait_until_whole(self, files: Sequence[ListedFile], timeout: float | None) -> None:
        """Wait while any of these files is growing, the timeout (s) at most; the names are resolved anew then."""
        self._log.wait_until_whole(files, timeout)

    def ready(self, names: Names, wait: bool, timeout: float | None) -> Target:
        """Resolve names and ask for the file; if `wait`, wait until it is whole, and read."""
        target = self.find(names)
        while True:
            if wait:
                self.wait_until_whole([target.file], timeout)
                target = self.find(names)
            self.request(target.file)
            if wait:
                self._files.wait(target.file.id, timeout)
            if self._files.state(target.file.id).state != "ready":
                return target
            again = self.find(names)  # a merged file has just become several workers
            if again.file.id == target.file.id:
                return again
            target = again  # the file was replaced while it was read

    def _unread_rank(self, run: Run, workers: Sequence[Worker], name: str | None) -> Worker | None:
        """`worker/rank3` while nobody knows whether the file of the worker holds it; None for all other names."""
        plain, _, rank = (name or "").rpartition("/")
        worker = next((each for each in run.workers if each.name == plain), None)
        if worker is None or not _RANK.fullmatch(rank) or any(each.name == name for each in workers):
            return None
        number = int(rank.removeprefix("rank"))
        spans = tuple(
            replace(span, part=number) for span in worker.spans if self._files.summary(span.file.id) is None
        )
        return Worker(f"{plain}/{rank}", number, spans) if spans else None

    def _unread_recording(self, worker: Worker, name: str | None) -> Span | None:
        """Span 3 while nobody knows how many recordings the last file of the worker holds; None for all others."""
        last = worker.spans[-1]
        number = int(name) if name is not None and re.fullmatch(r"[1-9]\d{0,8}", name) else 0
        unread = holds_recordings(last.file.name) and self._files.summary(last.file.id) is None
        return replace(last, name=str(number)) if unread and number > len(worker.spans) else None

    def _ranks_of(self, worker: Worker) -> list[Worker]:
        worker = self._with_recordings(worker)
        summaries = [self._files.summary(span.file.id) for span in worker.spans]
        ranks = sorted({rank for summary in summaries if summary is not None for rank in summary.ranks})
        if not ranks:
            ranks_in_file = {
                summary.rank for summary in summaries if summary is not None and summary.rank is not None
            }
            return [replace(worker, rank=ranks_in_file.pop() if len(ranks_in_file) == 1 else worker.rank)]
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
        """The recordings that lie one after the other in a file are spans of their own."""
        spans: list[Span] = []
        for span in worker.spans:
            summary = self._files.summary(span.file.id)
            count = 1 if summary is None else summary.recordings
            for part in range(count):
                label = span.label if count == 1 else f"{span.label}, recording {part + 1} of {count}"
                spans.append(Span(str(len(spans) + 1), label, span.file, part if count > 1 else None))
        return replace(worker, spans=tuple(spans)) if len(spans) > len(worker.spans) else worker
