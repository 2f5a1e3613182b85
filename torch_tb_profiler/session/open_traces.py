"""The traces that are open in this process, up to a memory limit; the least recently used are closed first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Set
from typing import TYPE_CHECKING

from torch_tb_profiler.storage import FileId

if TYPE_CHECKING:
    from torch_tb_profiler.model.trace import Trace

BYTES_PER_EVENT, BYTES_PER_TRACE = 400, 1 << 20
"""Upper estimates of the memory that views derive from a trace; its own columns are mapped from the cache."""


class OpenTraces:
    """Open traces by file and part of it (None: the entire file)."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._traces: OrderedDict[tuple[FileId, int | None], Trace] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, file: FileId, part: int | None) -> Trace | None:
        """Return a trace if it is open, and mark it as the most recently used."""
        with self._lock:
            trace = self._traces.get((file, part))
            if trace is not None:
                self._traces.move_to_end((file, part))
            return trace

    def add(self, file: FileId, part: int | None, trace: Trace) -> Trace:
        """Add a trace unless another request has added it already, and return the one that is open."""
        with self._lock:
            trace = self._traces.setdefault((file, part), trace)
            self._traces.move_to_end((file, part))
            while len(self._traces) > 1 and self._estimated_bytes() > self._max_bytes:
                self._traces.popitem(last=False)
            return trace

    def keep_only(self, files: Set[FileId]) -> None:
        """Close the traces of all other files."""
        with self._lock:
            for key in [key for key in self._traces if key[0] not in files]:
                del self._traces[key]

    def __len__(self) -> int:
        return len(self._traces)

    def _estimated_bytes(self) -> int:
        return sum(BYTES_PER_TRACE + BYTES_PER_EVENT * len(trace) for trace in self._traces.values())
