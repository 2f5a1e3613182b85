"""What the routes answer: the typed bodies, from which the OpenAPI document and the page's types are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch_tb_profiler.model.health import Note
from torch_tb_profiler.session import ErrorInfo, FileState, ProgressInfo


@dataclass(frozen=True)
class ErrorBody:
    """The one shape of every error."""

    error: ErrorInfo


@dataclass(frozen=True)
class FileCounts:
    """How many files are in which state."""

    waiting: int
    loading: int
    ready: int
    failed: int


@dataclass(frozen=True)
class RunInfo:
    """A run in the list; `bytes` as stored."""

    name: str
    workers: int
    spans: int
    bytes: int
    files: FileCounts


@dataclass(frozen=True)
class Runs:
    """`scanning` is true until the first listing is done; `error` says why the last one failed."""

    scanning: bool
    error: ErrorInfo | None
    root: str
    problems: list[str]
    runs: list[RunInfo]


@dataclass(frozen=True)
class SpanInfo:
    """One profiling cycle: its name, when it was, its file's stored bytes and state."""

    name: str
    label: str
    file: str
    bytes: int
    state: FileState


@dataclass(frozen=True)
class WorkerInfo:
    """One process of a run."""

    name: str
    rank: int | None
    spans: list[SpanInfo]


@dataclass(frozen=True)
class MemoryFileInfo:
    """A memory file; `file` is its number in `view/memory/snapshot` or `view/memory/timeline`, as `kind` says."""

    file: int
    name: str
    kind: Literal["snapshot", "timeline"]
    bytes: int


@dataclass(frozen=True)
class Workers:
    """The workers of a run, and the memory files beside its traces."""

    run: str
    workers: list[WorkerInfo]
    memory_files: list[MemoryFileInfo]


@dataclass(frozen=True)
class Spans:
    run: str
    worker: str
    spans: list[SpanInfo]


@dataclass(frozen=True)
class State:
    run: str
    worker: str
    span: str
    file: str
    state: FileState


@dataclass(frozen=True)
class FileHealth:
    """A file of a run, its state and the notes on it."""

    worker: str
    span: str
    file: str
    bytes: int
    state: FileState
    notes: list[Note]


@dataclass(frozen=True)
class Health:
    run: str
    files: list[FileHealth]


@dataclass(frozen=True)
class ViewInfo:
    """A tab; `available` is null while the file is not loaded, `reason` says why it is not."""

    slug: str
    title: str
    order: int
    scope: str
    available: bool | None
    reason: str | None


@dataclass(frozen=True)
class Views:
    views: list[ViewInfo]


@dataclass(frozen=True)
class Pending:
    """The answer of a view while its file is read."""

    state: Literal["waiting", "loading"]
    view: str
    run: str
    worker: str
    span: str
    progress: ProgressInfo | None
