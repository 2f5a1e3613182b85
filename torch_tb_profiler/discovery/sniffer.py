"""What is this file? Asked only where the name does not say, and once per content."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from torch_tb_profiler.base.errors import StorageError
from torch_tb_profiler.discovery.catalog import ListedFile
from torch_tb_profiler.ingest.formats import (
    ForeignFormat,
    TraceFormat,
    foreign_formats_by_name,
    may_be_separate_run,
    recognize_trace,
)
from torch_tb_profiler.ingest.streams import HEAD_BYTES, unpack_head
from torch_tb_profiler.storage import FileId


@dataclass(frozen=True)
class _Verdict:
    trace: TraceFormat | None
    foreign: ForeignFormat | None = None


class Sniffer:
    """Remembers the verdict per file identity, so that polling reads no unchanged file again."""

    def __init__(self) -> None:
        self._verdicts: dict[FileId, _Verdict] = {}

    def is_trace(self, file: ListedFile) -> bool:
        """True if the first bytes look like a trace of PyTorch; a file that cannot be read is none."""
        return self._verdict(file).trace is not None

    def stands_alone(self, file: ListedFile) -> bool:
        """True if a file is a run of its own: no worker of the run that it lies beside."""
        if not may_be_separate_run(file.name):
            return False
        format_ = self._verdict(file).trace
        return format_ is not None and format_.alone

    def foreign(self, file: ListedFile) -> ForeignFormat | None:
        """Of which other tool a file is; None if its name or its first bytes say nothing of the kind."""
        candidates = foreign_formats_by_name(file.name)
        sure = next((each for each in candidates if each.sniff is None), None)
        return sure or (self._verdict(file).foreign if candidates else None)

    def _verdict(self, file: ListedFile) -> _Verdict:
        """One that could not be read is asked again."""
        if file.id not in self._verdicts:
            try:
                with file.open() as stream:
                    head = unpack_head(stream.read(HEAD_BYTES))
            except (OSError, StorageError):
                return _Verdict(None)
            candidates = foreign_formats_by_name(file.name)
            foreign = next((each for each in candidates if each.sniff is not None and each.sniff(head)), None)
            self._verdicts[file.id] = _Verdict(recognize_trace(head) if foreign is None else None, foreign)
        return self._verdicts[file.id]

    def keep_only(self, ids: Set[FileId]) -> None:
        """Forget the verdicts on other files."""
        self._verdicts = {id_: verdict for id_, verdict in self._verdicts.items() if id_ in ids}
