"""What the routes answer: the typed bodies, from which the OpenAPI document and the page's types are made."""

from __future__ import annotations

from typing import Literal

import msgspec

from torch_tb_profiler.ingest.formats import FileKind
from torch_tb_profiler.model.health import HealthNote
from torch_tb_profiler.session import ErrorInfo, FileState, ProgressInfo
from torch_tb_profiler.view import Section


class ErrorBody(msgspec.Struct, frozen=True):
    """The one shape of every error."""

    error: ErrorInfo


class FileCounts(msgspec.Struct, frozen=True):
    """How many files are in which state."""

    waiting: int
    loading: int
    ready: int
    failed: int


class RunInfo(msgspec.Struct, frozen=True):
    """A run in the list; `bytes` as stored."""

    name: str
    workers: int
    spans: int
    bytes: int
    files: FileCounts


class OtherFilesInfo(msgspec.Struct, frozen=True):
    """Files of one other tool: what they are, what to do with them, and their paths (the first 20 of `count`)."""

    kind: str
    advice: str
    count: int
    files: list[str]


class OtherTools(msgspec.Struct, frozen=True):
    """Files of other tools in the log folders; `headline` counts them in words."""

    headline: str
    kinds: list[OtherFilesInfo]


class Runs(msgspec.Struct, frozen=True):
    """`scanning` is true until the first listing is done; `error` says why the last one failed; `others` is null
    if there is no file of another tool."""

    scanning: bool
    error: ErrorInfo | None
    root: str
    problems: list[str]
    runs: list[RunInfo]
    others: OtherTools | None


class SpanInfo(msgspec.Struct, frozen=True):
    """One profiling cycle: its name, when it was, its file's stored bytes and state."""

    name: str
    label: str
    file: str
    bytes: int
    state: FileState


class WorkerInfo(msgspec.Struct, frozen=True):
    """One process of a run."""

    name: str
    rank: int | None
    spans: list[SpanInfo]


class MemoryFileInfo(msgspec.Struct, frozen=True):
    """A memory file; `file` is its number in `view/memory/snapshot` or `view/memory/timeline`, as `kind` says."""

    file: int
    name: str
    kind: FileKind
    bytes: int


class Workers(msgspec.Struct, frozen=True):
    """The workers of a run, and the memory files beside its traces."""

    run: str
    workers: list[WorkerInfo]
    memory_files: list[MemoryFileInfo]


class Spans(msgspec.Struct, frozen=True):
    run: str
    worker: str
    spans: list[SpanInfo]


class State(msgspec.Struct, frozen=True):
    run: str
    worker: str
    span: str
    file: str
    state: FileState


class FileHealth(msgspec.Struct, frozen=True):
    """A file of a run, its state and the notes on it."""

    worker: str
    span: str
    file: str
    bytes: int
    state: FileState
    notes: list[HealthNote]


class Health(msgspec.Struct, frozen=True):
    run: str
    files: list[FileHealth]


class ViewInfo(msgspec.Struct, frozen=True):
    """A tab under its section of the navigation.

    `available` is null while the file is not loaded, `reason` says why it is not available.
    """

    slug: str
    title: str
    section: Section
    available: bool | None
    reason: str | None


class Views(msgspec.Struct, frozen=True):
    views: list[ViewInfo]


class Pending(msgspec.Struct, frozen=True):
    """The answer of a view while its file is read."""

    state: Literal["waiting", "loading"]
    view: str
    run: str
    worker: str
    span: str
    progress: ProgressInfo | None
