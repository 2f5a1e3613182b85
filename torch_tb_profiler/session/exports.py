"""Files for other tools: a trace as it is stored, or a part of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO

from torch_tb_profiler.base.cut import ExcerptRange
from torch_tb_profiler.base.errors import TooLargeError
from torch_tb_profiler.session.files import Files
from torch_tb_profiler.session.log import LogFolders
from torch_tb_profiler.session.state import FileState
from torch_tb_profiler.session.targets import Names, Targets


@dataclass(frozen=True)
class Download:
    """A stored file: its name without folders, its bytes, open for reading."""

    name: str
    size: int
    stream: BinaryIO


@dataclass(frozen=True)
class Excerpt:
    """A part of a trace as JSON: a name for the file, its pieces."""

    name: str
    pieces: Iterator[bytes]


class Exports:
    """Files that leave the session. `limit`: bytes of JSON that may be held at once."""

    def __init__(self, log: LogFolders, files: Files, targets: Targets, limit: int) -> None:
        self._log = log
        self._files = files
        self._targets = targets
        self._limit = limit

    def original(self, names: Names) -> Download:
        """As `Session.original`."""
        file = self._targets.find(names).file
        self._log.check_listed(file)
        size = file.location.entry(file.path).size  # it may have been replaced since it was listed
        return Download(file.name, size, file.open())

    def excerpt(
        self, names: Names, params: Mapping[str, str], wait: bool, timeout: float | None
    ) -> tuple[FileState, Excerpt | None]:
        """As `Session.excerpt`."""
        from torch_tb_profiler.analyses.timeline.excerpt import excerpt
        from torch_tb_profiler.session.cutting import cut_large
        from torch_tb_profiler.view import parse_params

        cut = parse_params(ExcerptRange, params)
        target = self._targets.ready(names, wait, timeout)
        file = target.file
        state, trace = self._files.open(file.id, target.part)
        stem = file.name.removesuffix(".gz").removesuffix(".json").removesuffix(".pt.trace")
        name = f"{stem}.slice.json"
        if trace is not None:
            return state, Excerpt(name, excerpt(trace, cut))
        if wait and state.error is not None and state.error.code == TooLargeError.code:
            return state, Excerpt(name, cut_large(file, cut, self._limit))
        return state, None
