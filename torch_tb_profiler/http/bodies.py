"""The typed bodies of responses, from which the OpenAPI document and the page's types are generated."""

from __future__ import annotations

from typing import Literal

import msgspec

from torch_tb_profiler.ingest.formats import FileKind
from torch_tb_profiler.model.health import HealthNote
from torch_tb_profiler.session import ErrorInfo, FileState, ProgressInfo
from torch_tb_profiler.view import Section


class ErrorBody(msgspec.Struct, frozen=True):
    """An error; all errors have this shape."""

    error: ErrorInfo


class FileCounts(msgspec.Struct, frozen=True):
    """Number of files in each state."""

    waiting: int
    loading: int
    ready: int
    failed: int


class RunInfo(msgspec.Struct, frozen=True):
    """A run in the list; `bytes` is its stored size, `dumps` its flight recorder dumps and stacks of ranks.

    `tracker_name` is the name that an experiment tracker recorded for it, null if none did.
    """

    name: str
    workers: int
    spans: int
    bytes: int
    files: FileCounts
    dumps: int
    tracker_name: str | None


class OtherFilesInfo(msgspec.Struct, frozen=True):
    """Files of one other tool: their kind, what to do with them, and the paths of the first 20 of `count`."""

    kind: str
    advice: str
    count: int
    files: list[str]


class OtherToolsInfo(msgspec.Struct, frozen=True):
    """Files of other tools in the log folders; `headline` is a sentence that counts them."""

    headline: str
    kinds: list[OtherFilesInfo]


class RunsBody(msgspec.Struct, frozen=True):
    """All runs.

    `scanning` is true until the first listing is complete, `error` is the error of the last listing, and `others`
    is null if there are no files of other tools.
    """

    scanning: bool
    error: ErrorInfo | None
    root: str
    problems: list[str]
    runs: list[RunInfo]
    others: OtherToolsInfo | None


class SpanInfo(msgspec.Struct, frozen=True):
    """One profiling cycle: its name, a label with its time, and the stored bytes and the state of its file."""

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
    """A memory file; `file` is its number in `view/memory/snapshot` or `view/memory/timeline`, by `kind`.

    path  relative to the log folder; that of a worker's span if the run has snapshots only
    """

    file: int
    name: str
    kind: FileKind
    bytes: int
    path: str


class WorkersBody(msgspec.Struct, frozen=True):
    """The workers of a run, and the memory files next to its traces."""

    run: str
    workers: list[WorkerInfo]
    memory_files: list[MemoryFileInfo]


class SpansBody(msgspec.Struct, frozen=True):
    run: str
    worker: str
    spans: list[SpanInfo]


class StateBody(msgspec.Struct, frozen=True):
    run: str
    worker: str
    span: str
    file: str
    state: FileState


class SavedBody(msgspec.Struct, frozen=True):
    """Where the server has written a file."""

    file: str


class FileHealthInfo(msgspec.Struct, frozen=True):
    """A file of a run, its state, and the notes on it."""

    worker: str
    span: str
    file: str
    bytes: int
    state: FileState
    notes: list[HealthNote]


class HealthBody(msgspec.Struct, frozen=True):
    run: str
    files: list[FileHealthInfo]


class ViewInfo(msgspec.Struct, frozen=True):
    """A tab and its section in the navigation.

    `available` is null while the file is not loaded; `reason` explains why the tab is not available.
    """

    slug: str
    title: str
    section: Section
    available: bool | None
    reason: str | None


class ViewsBody(msgspec.Struct, frozen=True):
    """The tabs.

    step_noun  what a step of the trace is in a sentence: "step", or "iteration" of an inference engine
    """

    views: list[ViewInfo]
    step_noun: str = "step"


class PendingBody(msgspec.Struct, frozen=True):
    """The answer of a view while its file is loading."""

    state: Literal["waiting", "loading"]
    view: str
    run: str
    worker: str
    span: str
    progress: ProgressInfo | None
