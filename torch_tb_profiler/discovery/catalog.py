"""Runs, their workers, and the spans of these."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import BinaryIO

from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.base.grammar import plural
from torch_tb_profiler.ingest.formats import FileKind
from torch_tb_profiler.storage import Entry, FileId, Location


def joined_identity(own: str, beside: str) -> str:
    """Of a file with the one beside it: changes whenever either does."""
    return f"{own} with {beside}"


def ranked_identity(own: str, rank: int | None) -> str:
    """Of a file with the rank that is told by what lies around it: changes whenever either does."""
    return own if rank is None else f"{own} of rank {rank}"


@dataclass(frozen=True)
class ListedFile:
    """A file as it was listed: `path` relative to its location, stored `size` in bytes.

    beside  other files of the same location that tell more of the same recording; a part of the identity
    shared  other files may have more of `beside` than this one
    counters  files with hardware counters of the kernels of this trace; a part of the identity, too
    tables  further tables of the same recording, read as one with this one; a part of the identity, too
    rank    of its process, as names and files around it tell; a part of the identity, too
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

    @classmethod
    def of(cls, location: Location, entry: Entry) -> ListedFile:
        return cls(location, entry.path, entry.size, FileId(location.uri(entry.path), entry.identity))

    def ranked(self, rank: int | None) -> ListedFile:
        """The same file, of a process whose rank is told by what lies around it."""
        return replace(self, id=FileId(self.id.uri, ranked_identity(self.id.identity, rank)), rank=rank)

    def joined(self, beside: Sequence[ListedFile], shared: bool = False) -> ListedFile:
        """The same file, read together with others."""
        return replace(self, id=self._id_with(beside), beside=tuple(beside), shared=shared)

    def counted(self, counters: Sequence[ListedFile]) -> ListedFile:
        """The same file, read together with its counters."""
        return replace(self, id=self._id_with(counters), counters=tuple(counters))

    def tabled(self, tables: Sequence[ListedFile]) -> ListedFile:
        """The same file, read as one with others of its recording."""
        return replace(self, id=self._id_with(tables), tables=tuple(tables))

    def _id_with(self, others: Sequence[ListedFile]) -> FileId:
        identity = self.id.identity
        for each in others:
            identity = joined_identity(identity, each.id.identity)
        return FileId(self.id.uri, identity)

    @property
    def name(self) -> str:
        """Without folders."""
        return posixpath.basename(self.path)

    def open(self) -> BinaryIO:
        """The file for reading; StorageError if it cannot be opened."""
        return self.location.open(self.path)


@dataclass(frozen=True)
class Span:
    """One profiling cycle of a worker; `name` counts from "1", `label` says when (or which step); `part` is its
    number in a file that holds several recordings, its rank in one of several ranks, None in all others."""

    name: str
    label: str
    file: ListedFile
    part: int | None = None


@dataclass(frozen=True)
class Worker:
    """One process of a run; `rank` as far as names tell."""

    name: str
    rank: int | None
    spans: tuple[Span, ...]


@dataclass(frozen=True)
class MemoryFile:
    """A memory snapshot or timeline beside the traces; `kind` as its name says."""

    name: str
    kind: FileKind
    file: ListedFile


@dataclass(frozen=True)
class Run:
    """A folder of traces, and the memory files in it."""

    name: str
    workers: tuple[Worker, ...]
    memory_files: tuple[MemoryFile, ...] = ()

    def files(self) -> list[ListedFile]:
        return [span.file for worker in self.workers for span in worker.spans]


@dataclass(frozen=True)
class OtherFiles:
    """Files of one other tool in the log folders: a `kind` for people, and a clause that says what to do."""

    kind: str
    advice: str
    files: tuple[ListedFile, ...]


@dataclass(frozen=True)
class Catalog:
    """All runs, sorted by name; `problems` say what could not be listed and which runs are renamed."""

    runs: tuple[Run, ...] = ()
    problems: tuple[str, ...] = ()
    others: tuple[OtherFiles, ...] = ()
    _by_name: dict[str, Run] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        self._by_name.update((run.name, run) for run in self.runs)

    @property
    def others_headline(self) -> str | None:
        """How many files of other tools there are; None without any."""
        count = sum(len(each.files) for each in self.others)
        return f"{plural(count, 'file')} of other tools" if count else None

    def run(self, name: str | None) -> Run:
        """A run by name, the first if None; NotFoundError says what there is."""
        if name is None and self.runs:
            return self.runs[0]
        if name is not None and name in self._by_name:
            return self._by_name[name]
        if not self.runs:
            raise NotFoundError("there are no runs", hint="no trace file was found in the log folder")
        raise NotFoundError(f"there is no run {name!r}", hint=_options("runs", (run.name for run in self.runs)))


def find_worker(workers: tuple[Worker, ...], name: str | None) -> Worker:
    """A worker by name, the first if None; NotFoundError says what there is."""
    for worker in workers:
        if name is None or worker.name == name:
            return worker
    raise NotFoundError(f"there is no worker {name!r}", hint=_options("workers", (w.name for w in workers)))


def find_span(worker: Worker, name: str | None) -> Span:
    """A span by name, the first if None; NotFoundError says what there is."""
    for span in worker.spans:
        if name is None or span.name == name:
            return span
    raise NotFoundError(f"there is no span {name!r}", hint=_options("spans", (s.name for s in worker.spans)))


def _options(what: str, names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - 10} more" if len(listed) > 10 else ""
    return f"{what}: {', '.join(listed[:10])}{more}"
