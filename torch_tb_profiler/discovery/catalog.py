"""The listing of log folders: runs, their workers, and the spans of each."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import BinaryIO, Literal

import msgspec
from msgspec.structs import replace

from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.base.grammar import list_options, plural
from torch_tb_profiler.ingest.formats import FileKind
from torch_tb_profiler.storage import FileEntry, FileId, Location


def combined_identity(own: str, companion: str) -> str:
    """Return the identity of a file read together with another; it changes whenever either does."""
    return f"{own} with {companion}"


def ranked_identity(own: str, rank: int | None) -> str:
    """Return the identity of a file with the rank that names around it give; it changes whenever either does."""
    return own if rank is None else f"{own} of rank {rank}"


class ListedFile(msgspec.Struct, frozen=True):
    """A file as it was listed, with the files that are read together with it.

    path      relative to its location
    size      stored bytes
    id        its identity; includes `beside`, `counters`, `tables`, `origins`, `requests`, `formats`, and `rank`
    beside    PyTorch's own files of the same recording, which describe devices and job
    counters  files with hardware counters of the kernels of this trace
    shared    other files may use `beside` as well
    rank      rank of its process, from names and files around it
    tables    further tables of the same recording, which are one trace with this one
    origins   files that say where the kernels of this trace come from, or what its recorder was asked for
    requests  files that say when requests of its engine arrived
    formats   the same recording in less detailed formats: they are read if this file can't be
    mtime     epoch seconds of its last change, or None if the storage has none
    """

    location: Location
    path: str
    size: int
    id: FileId
    beside: tuple[ListedFile, ...] = ()
    counters: tuple[ListedFile, ...] = ()
    shared: bool = False
    rank: int | None = None
    tables: tuple[ListedFile, ...] = ()
    origins: tuple[ListedFile, ...] = ()
    requests: tuple[ListedFile, ...] = ()
    formats: tuple[ListedFile, ...] = ()
    mtime: float | None = None

    @classmethod
    def of(cls, location: Location, entry: FileEntry) -> ListedFile:
        return cls(
            location, entry.path, entry.size, FileId(location.uri(entry.path), entry.identity), mtime=entry.mtime
        )

    def with_rank(self, rank: int | None) -> ListedFile:
        """Return the file with the rank that names around it give."""
        if rank is None and self.rank is None:
            return self
        return replace(self, id=FileId(self.id.uri, ranked_identity(self.id.identity, rank)), rank=rank)

    def with_companions(self, beside: Sequence[ListedFile], shared: bool = False) -> ListedFile:
        """Return the file, read together with PyTorch's own files of the recording."""
        return replace(self, id=self._combined_id(beside), beside=tuple(beside), shared=shared)

    def with_counters(self, counters: Sequence[ListedFile]) -> ListedFile:
        """Return the file, read together with its counters."""
        return replace(self, id=self._combined_id(counters), counters=tuple(counters))

    def with_tables(self, tables: Sequence[ListedFile]) -> ListedFile:
        """Return the file, read together with the other tables of its recording."""
        return replace(self, id=self._combined_id(tables), tables=tuple(tables))

    def with_origins(self, origins: Sequence[ListedFile]) -> ListedFile:
        """Return the file, read together with the files that say where its kernels come from."""
        return replace(self, id=self._combined_id(origins), origins=tuple(origins))

    def with_requests(self, requests: Sequence[ListedFile]) -> ListedFile:
        """Return the file, read together with the files that say when requests arrived."""
        return replace(self, id=self._combined_id(requests), requests=tuple(requests))

    def with_formats(self, formats: Sequence[ListedFile]) -> ListedFile:
        """Return the file, for which these are read if it can't be."""
        return replace(self, id=self._combined_id(formats), formats=tuple(formats))

    def _combined_id(self, others: Sequence[ListedFile]) -> FileId:
        identity = self.id.identity
        for each in others:
            identity = combined_identity(identity, each.id.identity)
        return FileId(self.id.uri, identity)

    @property
    def name(self) -> str:
        """Return the file's name without folders."""
        return self.path.rpartition("/")[2]

    def open(self) -> BinaryIO:
        """Open the file for reading; raise StorageError on failure."""
        return self.location.open(self.path)


class Span(msgspec.Struct, frozen=True):
    """One profiling cycle of a worker.

    name   its number, from "1"
    label  when it was recorded, or of which step
    part   its number in a file of several recordings, its rank in a file of several ranks, otherwise None
    """

    name: str
    label: str
    file: ListedFile
    part: int | None = None


class Worker(msgspec.Struct, frozen=True):
    """One process of a run; `rank` is None if no name gives it."""

    name: str
    rank: int | None
    spans: tuple[Span, ...]


class MemoryFile(msgspec.Struct, frozen=True):
    """A memory snapshot or timeline beside the traces; its name gives the `kind`."""

    name: str
    kind: FileKind
    file: ListedFile


class DumpFile(msgspec.Struct, frozen=True):
    """A file about a job that stands still.

    rank    None of a log, which may be of several ranks
    kind    a flight recorder's dump, the stacks of the process, or a log
    series  its name without rank and suffix; files of the same series belong to one dump of the job
    """

    rank: int | None
    kind: Literal["recorder", "stack", "log"]
    series: str
    file: ListedFile


class ListedRun(msgspec.Struct, frozen=True):
    """A folder of traces, with its memory files and flight recorder dumps; one with dumps may have no trace.

    is_capture    whether its traces are captures of the graphs of another run, which are listed after all others
    tracker_name  the name that an experiment tracker recorded for it
    """

    name: str
    workers: tuple[Worker, ...]
    memory_files: tuple[MemoryFile, ...] = ()
    is_capture: bool = False
    dumps: tuple[DumpFile, ...] = ()
    tracker_name: str | None = None

    def files(self) -> list[ListedFile]:
        return [span.file for worker in self.workers for span in worker.spans]


class OtherFiles(msgspec.Struct, frozen=True):
    """Files of one other tool in the log folders.

    kind    what the files are, for people
    advice  a clause that says what to do with them
    """

    kind: str
    advice: str
    files: tuple[ListedFile, ...]


class Catalog(msgspec.Struct, frozen=True, dict=True):
    """All runs, sorted by name, captures of others last.

    problems  what couldn't be listed, and which runs were renamed
    """

    runs: tuple[ListedRun, ...] = ()
    problems: tuple[str, ...] = ()
    others: tuple[OtherFiles, ...] = ()

    @cached_property
    def _by_name(self) -> dict[str, ListedRun]:
        return {run.name: run for run in self.runs}

    @property
    def others_headline(self) -> str | None:
        """Return a headline with the number of files of other tools, or None if there are none."""
        count = sum(len(each.files) for each in self.others)
        return f"{plural(count, 'file')} of other tools" if count else None

    def run(self, name: str | None) -> ListedRun:
        """Return a run by name, or the first with a trace if None; NotFoundError lists the runs."""
        if name is None and self.runs:
            return next((run for run in self.runs if run.workers), self.runs[0])
        if name is not None and name in self._by_name:
            return self._by_name[name]
        if not self.runs:
            raise NotFoundError("there are no runs", hint="no trace file was found in the log folder")
        raise NotFoundError(
            f"there is no run {name!r}", hint=list_options("runs", (run.name for run in self.runs))
        )


def find_worker(workers: tuple[Worker, ...], name: str | None) -> Worker:
    """Return a worker by name, or the first if None; NotFoundError lists the workers."""
    for worker in workers:
        if name is None or worker.name == name:
            return worker
    raise NotFoundError(f"there is no worker {name!r}", hint=list_options("workers", (w.name for w in workers)))


def find_span(worker: Worker, name: str | None) -> Span:
    """Return a span by name, or the first if None; NotFoundError lists the spans."""
    for span in worker.spans:
        if name is None or span.name == name:
            return span
    raise NotFoundError(f"there is no span {name!r}", hint=list_options("spans", (s.name for s in worker.spans)))
