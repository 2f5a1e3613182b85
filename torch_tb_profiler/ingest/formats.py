"""What an importer is: how its files are recognized, and how one is parsed.

A listing asks every importer for names and first bytes: what parses is imported once a file is parsed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, Protocol

from torch_tb_profiler.ingest.progress import Report

if TYPE_CHECKING:
    from torch_tb_profiler.model.trace import Trace

FileKind = Literal["snapshot", "timeline"]
"""The files that may lie beside the traces of a run; the page knows them by these names."""


class ParseTrace(Protocol):
    def __call__(self, stream: BinaryIO, *, size: int, report: Report, limit: int) -> Trace:
        """As `ingest.read_trace`."""
        ...


@dataclass(frozen=True)
class TraceFormat:
    """A format of traces.

    name      for people
    suffixes  how names of its files end, in lower case; several formats may share one
    sniff     True if the first bytes of a file (unpacked, if they were packed with gzip) look like it
    parse     an open file to a trace
    recordings  a file may hold several, one after the other (`Trace.recordings`)
    alone       its names alone say nothing, and a file is a run of its own: not a worker of the run beside it
    """

    name: str
    suffixes: tuple[str, ...]
    sniff: Callable[[bytes], bool]
    parse: ParseTrace
    recordings: bool = False
    alone: bool = False


@dataclass(frozen=True)
class FileFormat:
    """A format of files beside the traces of a run, known by the ends of their names.

    kind   what a `view.FileView` names as its `format`
    parse  an open file to the value that the view is built from; TraceError if that cannot be done
    """

    kind: FileKind
    suffixes: tuple[str, ...]
    parse: Callable[[BinaryIO], Any]


@dataclass(frozen=True)
class ForeignFormat:
    """Files of another tool that may lie in a log folder.

    kind      for people, in the singular
    suffixes  how names of its files end, in lower case; one that begins with "/" is a whole name
    sniff     as of a `TraceFormat`; None if the name alone says it
    advice    what to do with such a file: a clause
    """

    kind: str
    suffixes: tuple[str, ...]
    sniff: Callable[[bytes], bool] | None
    advice: str


Format = TraceFormat | FileFormat | ForeignFormat
