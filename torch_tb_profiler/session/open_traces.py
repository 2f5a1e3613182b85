"""The traces that are open in this process: as many as fit into memory, the least recently used go first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Set
from typing import TYPE_CHECKING

from torch_tb_profiler.storage import FileId

if TYPE_CHECKING:
    from torch_tb_profiler.model.trace import Trace

EVENT_BYTES = 400
TRACE_BYTES = 1 << 20
"""What the views derive takes up to so much memory per event and trace; the columns are mapped from the cache."""


class OpenTraces:
    """Traces by file, and by part of it (None: the whole file)."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._traces: OrderedDict[tuple[FileId, int | None], Trace] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, file: FileId, part: int | None) -> Trace | None:
        """A trace that is open, now the most recently used."""
        with self._lock:
            trace = self._traces.get((file, part))
            if trace is not None:
                self._traces.move_to_end((file, part))
            return trace

    def add(self, file: FileId, part: int | None, trace: Trace) -> Trace:
        """Keep a trace; returns the one that is kept, which another request may have brought first."""
        with self._lock:
            trace = self._traces.setdefault((file, part), trace)
            self._traces.move_to_end((file, part))
            while len(self._traces) > 1 and self._bytes() > self._limit:
                self._traces.popitem(last=False)
            return trace

    def keep_only(self, files: Set[FileId]) -> None:
        """Close the traces of other files."""
        with self._lock:
            for key in [key for key in self._traces if key[0] not in files]:
                del self._traces[key]

    def __len__(self) -> int:
        return len(self._traces)

    def _bytes(self) -> int:
        return sum(TRACE_BYTES + EVENT_BYTES * len(trace) for trace in self._traces.values())
