"""The formats of files: what an importer declares, and which format a file name or its first bytes belong to.

A folder listing asks every importer for names and first bytes, so parsers are imported only when a file is parsed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, NamedTuple, Protocol

from torch_tb_profiler.ingest.runtime import Report

if TYPE_CHECKING:
    from torch_tb_profiler.model.trace import Trace

FileKind = Literal["snapshot", "timeline"]
"""Kinds of files that may lie beside the traces of a run; the page uses these names."""


class ParseTrace(Protocol):
    def __call__(self, stream: BinaryIO, *, size: int, report: Report, limit: int) -> Trace:
        """Read a trace as `ingest.read_trace` does."""
        ...


class TraceFormat(NamedTuple):
    """A format of trace files.

    name        display name
    suffixes    endings of its file names, in lower case; several formats may share one
    sniff       returns True if the first bytes of a file (after gzip) look like this format
    parse       reads an open file into a trace
    recordings  a file may hold several recordings, one after the other (`Trace.recordings`)
    alone       the name says nothing about the format, and each file is a run of its own
    """

    name: str
    suffixes: tuple[str, ...]
    sniff: Callable[[bytes], bool]
    parse: ParseTrace
    recordings: bool = False
    alone: bool = False


class FileFormat(NamedTuple):
    """A format of files beside the traces of a run, recognized by their suffixes.

    Small files are read when they are requested; files of any size are loaded and cached as traces are.

    kind     the `format` that a `view.FileView` names
    parse    reads an open small file into the value that the view is built from; raises TraceError if it can't
    loaded   reads a file of any size into a trace
    content  returns the value that the view is built from, of such a trace
    """

    kind: FileKind
    suffixes: tuple[str, ...]
    parse: Callable[[BinaryIO], Any] | None = None
    loaded: ParseTrace | None = None
    content: Callable[[Trace], Any] | None = None


class ForeignFormat(NamedTuple):
    """A format of another tool whose files may lie in a log folder.

    kind      display name, singular
    suffixes  endings of its file names, in lower case; one that begins with "/" is an entire name
    sniff     as in `TraceFormat`; None if the name is enough
    advice    what to do with such a file, as a clause
    """

    kind: str
    suffixes: tuple[str, ...]
    sniff: Callable[[bytes], bool] | None
    advice: str


Format = TraceFormat | FileFormat | ForeignFormat


IMPORTERS: tuple[str, ...] = (
    "kineto",
    "composer",
    "aorta",
    "gpu_metrics",
    "rocprof",
    "perfetto",
    "memory",
    "foreign",
)
"""Packages or modules that export `FORMATS`; the first one reads traces that no format recognizes."""


def trace_formats() -> tuple[TraceFormat, ...]:
    return _trace_formats(IMPORTERS)


@cache
def _trace_formats(importers: tuple[str, ...]) -> tuple[TraceFormat, ...]:
    return tuple(fmt for fmt in _formats(importers) if isinstance(fmt, TraceFormat))


def recognize_trace(head: bytes) -> TraceFormat | None:
    """Return the last format that recognizes the unpacked first bytes; dialects follow their base format."""
    return next((fmt for fmt in reversed(trace_formats()) if fmt.sniff(head)), None)


class _Suffixes(NamedTuple):
    """The suffixes of the formats of some importers: a job has thousands of files, each asked for several times.

    trace       of traces, longest first
    recordings  of traces that may hold several recordings; alone: of those that are runs of their own
    beside      of files beside the traces
    """

    trace: tuple[str, ...]
    recordings: tuple[str, ...]
    alone: tuple[str, ...]
    beside: tuple[str, ...]


@cache
def _suffixes(importers: tuple[str, ...]) -> _Suffixes:
    traces = _trace_formats(importers)
    return _Suffixes(
        tuple(sorted({suffix for fmt in traces for suffix in fmt.suffixes}, key=len, reverse=True)),
        tuple(suffix for fmt in traces if fmt.recordings for suffix in fmt.suffixes),
        tuple(suffix for fmt in traces if fmt.alone for suffix in fmt.suffixes),
        tuple(suffix for fmt in _formats(importers) if isinstance(fmt, FileFormat) for suffix in fmt.suffixes),
    )


def trace_suffix(name: str) -> str | None:
    """Return the longest trace suffix that `name` ends with, or None."""
    name, suffixes = name.lower(), _suffixes(IMPORTERS).trace
    return next(filter(name.endswith, suffixes), None) if name.endswith(suffixes) else None


def may_hold_recordings(name: str) -> bool:
    """Return whether a file of this name may hold several recordings, one after the other."""
    return name.lower().endswith(_suffixes(IMPORTERS).recordings)


def may_be_separate_run(name: str) -> bool:
    """Return whether a file of this name may have a format whose files are runs of their own."""
    return name.lower().endswith(_suffixes(IMPORTERS).alone)


def file_format_by_name(name: str) -> FileFormat | None:
    """Return the format of a file beside the traces, or None if its name has no known suffix."""
    name = name.lower()
    if name.endswith(_suffixes(IMPORTERS).beside):
        for fmt in _formats(IMPORTERS):
            if isinstance(fmt, FileFormat) and name.endswith(fmt.suffixes):
                return fmt
    return None


def file_format_by_kind(kind: str) -> FileFormat:
    """Return the format of the files of this kind."""
    return next(fmt for fmt in _formats(IMPORTERS) if isinstance(fmt, FileFormat) and fmt.kind == kind)


def foreign_formats_by_name(name: str) -> list[ForeignFormat]:
    """Return the formats of other tools that a file of this name may have."""
    path = f"/{name.lower()}"
    return [fmt for fmt in _formats(IMPORTERS) if isinstance(fmt, ForeignFormat) and path.endswith(fmt.suffixes)]


def foreign_format_by_head(head: bytes) -> ForeignFormat | None:
    """Return the format of another tool whose files begin with these unpacked bytes, or None."""
    for fmt in _formats(IMPORTERS):
        if isinstance(fmt, ForeignFormat) and fmt.sniff is not None and fmt.sniff(head):
            return fmt
    return None


@cache
def _formats(importers: tuple[str, ...]) -> tuple[Format, ...]:
    package = __name__.rpartition(".")[0]
    return tuple(fmt for name in importers for fmt in import_module(f"{package}.{name}").FORMATS)
