"""Where Ascend's profiler puts its traces: a folder per process and recording; another file names the rank.

run/host_4242_20240102030405006_ascend_pt/profiler_info_3.json
run/host_4242_20240102030405006_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json      rank 3 of run
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

_FOLDER = r"(?:(?P<run>.+)/)?(?P<worker>[^/]+)_(?P<stamp>\d{14,20})_ascend_pt"
_TRACE = re.compile(rf"^(?P<folder>{_FOLDER})/ASCEND_PROFILER_OUTPUT/trace_view\.json(?:\.gz)?$")
_INFO = re.compile(rf"^(?P<folder>{_FOLDER})/profiler_info_(?P<rank>\d{{1,9}})\.json$")


class Place(NamedTuple):
    """Of one trace; `run` is "" in the log folder itself."""

    run: str
    worker: str
    rank: int | None
    stamp: str


class AscendFolders:
    """The folders among some paths."""

    def __init__(self, paths: Iterable[str]) -> None:
        matches = [match for path in paths if (match := _INFO.match(path))]
        self._ranks = {match["folder"]: int(match["rank"]) for match in matches}

    def place(self, path: str) -> Place | None:
        """What the folders around a trace say; None of every other file."""
        match = _TRACE.match(path)
        if match is None:
            return None
        rank = self._ranks.get(match["folder"])
        worker = match["worker"] if rank is None else f"rank{rank}"
        return Place(match["run"] or "", worker, rank, match["stamp"])
