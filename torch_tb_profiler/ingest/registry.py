"""The importers, one folder each; a new one is a folder and a line here."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from torch_tb_profiler.ingest.formats import FileFormat, ForeignFormat, Format, TraceFormat

FOLDERS: tuple[str, ...] = (
    "kineto",
    "composer",
    "aorta",
    "nvidia_smi",
    "amd_smi",
    "dcgm",
    "rocprof",
    "perfetto",
    "memory",
    "foreign",
)
"""Each exports `FORMATS`. A trace that no format recognizes is read by the first."""


def trace_formats() -> tuple[TraceFormat, ...]:
    return tuple(each for each in _formats(FOLDERS) if isinstance(each, TraceFormat))


def recognize(head: bytes) -> TraceFormat | None:
    """The last format that recognizes the first bytes (unpacked) of a file: a dialect comes after its language."""
    return next((each for each in reversed(trace_formats()) if each.sniff(head)), None)


def trace_suffix(name: str) -> str | None:
    """The end of a file name that says that it may be a trace: the longest one that fits."""
    suffixes = [suffix for each in trace_formats() for suffix in each.suffixes if name.lower().endswith(suffix)]
    return max(suffixes, key=len, default=None)


def holds_recordings(name: str) -> bool:
    """Whether a file of this name may hold several recordings, one after the other."""
    return any(each.recordings and name.lower().endswith(each.suffixes) for each in trace_formats())


def may_stand_alone(name: str) -> bool:
    """Whether a file of this name may be of a format whose files are runs of their own."""
    return any(each.alone and name.lower().endswith(each.suffixes) for each in trace_formats())


def file_format_of(name: str) -> FileFormat | None:
    """The format of a file beside the traces, by its name."""
    for each in _formats(FOLDERS):
        if isinstance(each, FileFormat) and name.lower().endswith(each.suffixes):
            return each
    return None


def file_format(kind: str) -> FileFormat:
    """The format of a kind of files beside the traces."""
    return next(each for each in _formats(FOLDERS) if isinstance(each, FileFormat) and each.kind == kind)


def foreign_by_name(name: str) -> list[ForeignFormat]:
    """Of which other tools a file may be, by its name."""
    path = f"/{name.lower()}"
    return [each for each in _formats(FOLDERS) if isinstance(each, ForeignFormat) and path.endswith(each.suffixes)]


def foreign_by_head(head: bytes) -> ForeignFormat | None:
    """The other tool whose files begin with these bytes (unpacked), whatever the file is called."""
    for each in _formats(FOLDERS):
        if isinstance(each, ForeignFormat) and each.sniff is not None and each.sniff(head):
            return each
    return None


@cache
def _formats(folders: tuple[str, ...]) -> tuple[Format, ...]:
    package = __name__.rpartition(".")[0]
    return tuple(each for folder in folders for each in import_module(f"{package}.{folder}").FORMATS)
