"""Recognize files by their first bytes, where the name isn't enough; each content is read once."""

from __future__ import annotations

from collections.abc import Set

import msgspec

from torch_tb_profiler.base.errors import StorageError
from torch_tb_profiler.discovery.catalog import ListedFile
from torch_tb_profiler.ingest.flight_recorder import looks_like_dump
from torch_tb_profiler.ingest.formats import (
    ForeignFormat,
    TraceFormat,
    foreign_formats_by_name,
    may_be_separate_run,
    recognize_trace,
)
from torch_tb_profiler.ingest.streams import HEAD_BYTES, unpack_head
from torch_tb_profiler.storage import FileId


class _RecognizedFile(msgspec.Struct, frozen=True):
    """The formats that recognize a file's first bytes."""

    trace: TraceFormat | None
    foreign: ForeignFormat | None = None
    dump: bool = False


class Sniffer:
    """Recognizes files and caches the result by file identity, so that polling reads no unchanged file again."""

    def __init__(self) -> None:
        self._recognized: dict[FileId, _RecognizedFile] = {}

    def is_trace(self, file: ListedFile) -> bool:
        """Return whether a file begins like a trace; False if it can't be read."""
        return self._recognize(file).trace is not None

    def is_dump(self, file: ListedFile) -> bool:
        """Return whether a file begins like a flight recorder's dump; False if it can't be read."""
        return self._recognize(file).dump

    def is_separate_run(self, file: ListedFile) -> bool:
        """Return whether a file is a run by itself, not a worker of the run in its folder."""
        if not may_be_separate_run(file.name):
            return False
        format_ = self._recognize(file).trace
        return format_ is not None and format_.alone

    def foreign_format(self, file: ListedFile) -> ForeignFormat | None:
        """Return the format of another tool that a file's name or first bytes show, or None."""
        candidates = foreign_formats_by_name(file.name)
        certain = next((each for each in candidates if each.sniff is None), None)
        return certain or (self._recognize(file).foreign if candidates else None)

    def _recognize(self, file: ListedFile) -> _RecognizedFile:
        """Return the cached formats of a file; a file that couldn't be read is tried again at the next call."""
        if file.id not in self._recognized:
            try:
                with file.open() as stream:
                    head = unpack_head(stream.read(HEAD_BYTES))
            except (OSError, StorageError):
                return _RecognizedFile(None)
            candidates = foreign_formats_by_name(file.name)
            foreign = next((each for each in candidates if each.sniff is not None and each.sniff(head)), None)
            self._recognized[file.id] = _RecognizedFile(
                recognize_trace(head) if foreign is None else None, foreign, looks_like_dump(head)
            )
        return self._recognized[file.id]

    def keep_only(self, ids: Set[FileId]) -> None:
        """Drop the cached results of other files."""
        self._recognized = {id_: formats for id_, formats in self._recognized.items() if id_ in ids}
