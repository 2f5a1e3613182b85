"""Cutting a part out of a file that is too large to be read whole."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from msgspec.structs import replace

from torch_tb_profiler.analyses.timeline.excerpt import excerpt
from torch_tb_profiler.base.cut import ExcerptRange
from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.discovery import ListedFile
from torch_tb_profiler.ingest import Progress, Report
from torch_tb_profiler.ingest.kineto.part import Window
from torch_tb_profiler.ingest.kineto.read import find_start, read_part

logger = logging.getLogger(__name__)

EVENT_BYTES = 256
"""JSON of a typical event; for how many events a part may hold."""


def cut_large(file: ListedFile, cut: ExcerptRange, limit: int) -> Iterator[bytes]:
    """As `excerpt`, in two passes over the file: one finds its start, one keeps what the cut wants.

    limit  bytes of JSON that the part may hold at once

    Raises UsageError for a step, which only a file that is read whole knows, TooLargeError if the part is too
    large as well.
    """
    if cut.step is not None:
        raise UsageError("the steps of so large a file are not known", hint="give a window: --from and --to")
    with file.open() as stream:
        start = find_start(stream, size=file.size, report=_logging(file.path, "first"))
    window = Window(
        None if cut.begin is None else start + cut.begin,
        None if cut.end is None else start + cut.end,
        frozenset(name.strip().lower() for name in cut.categories.split(",") if name.strip()),
        cut.min_duration_ns,
    )
    with file.open() as stream:
        report = _logging(file.path, "second")
        trace = read_part(stream, window, size=file.size, report=report, max_events=limit // EVENT_BYTES)
    later = start - trace.trace_start_ns
    begin = None if cut.begin is None else cut.begin + later
    end = None if cut.end is None else cut.end + later
    return excerpt(trace, replace(cut, begin=begin, end=end))


def _logging(path: str, ordinal: str) -> Report:
    """Logs every tenth of the way how far a pass is."""
    logged = 0

    def report(progress: Progress) -> None:
        nonlocal logged
        tenth = 10 * progress.bytes_done // progress.bytes_total if progress.bytes_total else 0
        if tenth > logged:
            logged = tenth
            logger.info("%s: %s of two passes, %d%%", path, ordinal, 10 * tenth)

    return report
