"""Export files for other tools: a trace file as it is stored, or a part of a trace."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from torch_tb_profiler.base.errors import TooLargeError, UsageError
from torch_tb_profiler.base.format import format_duration
from torch_tb_profiler.discovery import ListedFile
from torch_tb_profiler.session.files import RequestedFiles
from torch_tb_profiler.session.log import LogFolders
from torch_tb_profiler.session.state import FileState
from torch_tb_profiler.session.targets import RequestedNames, Targets

if TYPE_CHECKING:
    from torch_tb_profiler.analyses.timeline import ExcerptRange
    from torch_tb_profiler.ingest import Progress, Report

logger = logging.getLogger(__name__)

SAVED_FOLDER = "saved_by_profiler"
"""Folder below the log folder for what the page saves there; no file in it is a trace."""

SAVED_KINDS = ("csv", "svg", "png")

MAX_SAVED_BYTES = 64 << 20
"""Largest table or picture that the page may save into the log folder."""

BYTES_PER_EVENT = 256
"""JSON of a typical event, to convert a limit in bytes to a number of events."""


class Download(msgspec.Struct, frozen=True):
    """A stored file, open for reading; `name` has no folders."""

    name: str
    size: int
    stream: BinaryIO


class Excerpt(msgspec.Struct, frozen=True):
    """A part of a trace as pieces of JSON, with a name for the file."""

    name: str
    pieces: Iterator[bytes]


class Exports:
    """The exports of a session; `max_bytes` limits the JSON that is held in memory at once."""

    def __init__(self, log: LogFolders, files: RequestedFiles, targets: Targets, max_bytes: int) -> None:
        self._log = log
        self._files = files
        self._targets = targets
        self._max_bytes = max_bytes

    def save(self, kind: str, content: bytes) -> str:
        """Write a file of a kind (SAVED_KINDS) into the log folder, named after the time, and return where it is.

        Raises UsageError for another kind or more than MAX_SAVED_BYTES, StorageError if it can't be written.
        """
        if kind not in SAVED_KINDS:
            raise UsageError(f"nothing is saved as {kind!r}", hint=f"kinds: {', '.join(SAVED_KINDS)}")
        if len(content) > MAX_SAVED_BYTES:
            raise UsageError(f"more than {MAX_SAVED_BYTES >> 20} MiB can't be saved in the log folder")
        return self._log.save(SAVED_FOLDER, f"{datetime.now():%Y-%m-%d_%H-%M-%S}", f".{kind}", content)

    def original(self, names: RequestedNames) -> Download:
        """Open the stored file, as `Session.original` does."""
        file = self._targets.find(names).file
        self._log.check_listed(file)
        size = file.location.entry(file.path).size  # it may have been replaced since it was listed
        return Download(file.name, size, file.open())

    def excerpt(
        self, names: RequestedNames, params: Mapping[str, str], wait: bool, timeout: float | None
    ) -> tuple[FileState, Excerpt | None]:
        """Cut a part out of a trace, as `Session.excerpt` does."""
        from torch_tb_profiler.analyses.timeline import ExcerptRange
        from torch_tb_profiler.analyses.timeline.excerpt import write_excerpt
        from torch_tb_profiler.view import parse_params

        cut = parse_params(ExcerptRange, params)
        if cut.begin is not None and cut.end is not None and cut.begin >= cut.end:
            begin, end = format_duration(cut.begin), format_duration(cut.end)
            raise UsageError(f"the time range is empty: it begins at {begin} and ends at {end}")
        target = self._targets.resolve_and_request(names, wait, timeout)
        file = target.file
        state, trace = self._files.open(file.id, target.part)
        stem = file.name.removesuffix(".gz").removesuffix(".json").removesuffix(".pt.trace")
        name = f"{stem}.slice.json"
        if trace is not None:
            return state, Excerpt(name, write_excerpt(trace, cut))
        if wait and state.error is not None and state.error.code == TooLargeError.code:
            return state, Excerpt(name, _cut_large_file(file, cut, self._max_bytes))
        return state, None


def _cut_large_file(file: ListedFile, cut: ExcerptRange, max_bytes: int) -> Iterator[bytes]:
    """Cut a part out of a file that is too large to be loaded, in two passes over the file.

    The first pass finds the start of the trace, the second reads the events of the part.

    max_bytes  limit for the JSON of the part

    Raises UsageError for a step, because steps are found only in a loaded trace, and TooLargeError if the part is
    too large as well.
    """
    from msgspec.structs import replace

    from torch_tb_profiler.analyses.timeline.excerpt import write_excerpt
    from torch_tb_profiler.ingest.kineto.part import PartWindow
    from torch_tb_profiler.ingest.kineto.read import find_start, read_part

    if cut.step is not None:
        raise UsageError(
            "the file is too large to select a step from", hint="select a time range with --from and --to"
        )
    with file.open() as stream:
        start = find_start(stream, size=file.size, report=_log_progress(file.path, "first"))
    window = PartWindow(
        None if cut.begin is None else start + cut.begin,
        None if cut.end is None else start + cut.end,
        frozenset(name.strip().lower() for name in cut.categories.split(",") if name.strip()),
        cut.min_duration_ns,
    )
    with file.open() as stream:
        report = _log_progress(file.path, "second")
        trace = read_part(stream, window, size=file.size, report=report, max_events=max_bytes // BYTES_PER_EVENT)
    shift = start - trace.trace_start_ns
    begin = None if cut.begin is None else cut.begin + shift
    end = None if cut.end is None else cut.end + shift
    return write_excerpt(trace, replace(cut, begin=begin, end=end))


def _log_progress(path: str, ordinal: str) -> Report:
    """Return a function that logs the progress of a pass at every tenth of the file."""
    logged = 0

    def report(progress: Progress) -> None:
        nonlocal logged
        tenth = 10 * progress.bytes_done // progress.bytes_total if progress.bytes_total else 0
        if tenth > logged:
            logged = tenth
            logger.info("%s: %s of two passes, %d%%", path, ordinal, 10 * tenth)

    return report
