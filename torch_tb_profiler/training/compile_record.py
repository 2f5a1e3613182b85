"""The compile record: what torch.compile logs about its kernels, written beside the traces of a training.

PyTorch logs the code of each graph, and where each kernel in it comes from, for whoever listens to its trace
logger. The record has the form of the files of `TORCH_TRACE`, with the four kinds of entries that join a kernel
with the program. Of a hundred others, PyTorch would print graphs and encode events for each, which costs more than
all else here: so it is told that nobody listens to them.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

MAX_RECORD_BYTES = 64 * 2**20
"""Most bytes of entries that are kept in a process; later ones are dropped, and the record says how many."""

_LOGGER = "torch.__trace"
_RENDERER = "trace_structured"
_LEVEL_VARIABLE = "INDUCTOR_PROVENANCE"
_CONFIG = "torch._inductor.config"
_ARTIFACTS = (
    "inductor_provenance_tracking_node_mappings",
    "inductor_provenance_tracking_kernel_stack_traces",
)
_CODE = "inductor_output_code"
_CACHE_KEYS = ("fx_graph_cache_miss", "fx_graph_cache_hit", "fx_graph_cache_bypass")


class CompileRecorder(logging.Handler):
    """Keeps the entries of PyTorch's trace logger that say where kernels come from.

    It never raises into a compile, and keeps at most `limit` bytes.
    """

    def __init__(self, limit: int = MAX_RECORD_BYTES) -> None:
        super().__init__(logging.DEBUG)
        self._entries: list[str] = []
        self._left = limit
        self._guard = threading.Lock()
        self.dropped = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one entry; an error costs this entry only."""
        try:
            metadata = getattr(record, "metadata", None)
            if isinstance(metadata, dict):
                self._keep(metadata, str(getattr(record, "payload", None) or ""))
        except Exception:  # an error here must not stop a compile
            self.dropped += 1

    def _keep(self, metadata: dict[str, Any], payload: str) -> None:
        artifact = metadata.get("artifact")
        name = artifact.get("name") if isinstance(artifact, dict) else None
        if name in _CACHE_KEYS:  # the rest describes weights and configuration
            payload = json.dumps({"key": json.loads(payload).get("key")})
        elif name not in _ARTIFACTS and _CODE not in metadata:
            return
        body = "".join(f"\t{line}\n" for line in payload.split("\n"))
        entry = f"V0101 00:00:00.000000 {os.getpid()} compiled:0] {json.dumps(metadata)}\n{body}"
        with self._guard:
            if len(entry) > self._left:
                self.dropped += 1
                return
            self._left -= len(entry)
            self._entries.append(entry)

    def write(self, path: Path) -> bool:
        """Write the entries added since the last call; return False, and write no file, if there are none."""
        with self._guard:
            entries, self._entries = self._entries, []
        if not entries:
            return False
        part = path.with_name(f"{path.name}.part")
        part.write_text("".join(entries), encoding="utf-8", errors="replace")
        part.replace(path)
        return True


class TraceLogHandlers(list[logging.Handler]):
    """Handlers of PyTorch's trace logger; it is false for entries that none of them keeps.

    `torch._logging.trace_structured(name, metadata_fn, payload_fn=...)` renders an entry if the logger's list of
    handlers is true. Any other question, and any other handler, gets the answer of a list.
    """

    def __bool__(self) -> bool:
        if not all(isinstance(each, CompileRecorder) for each in self):
            return True
        caller = sys._getframe(1)
        return len(self) > 0 and (caller.f_code.co_name != _RENDERER or _is_wanted(caller.f_locals))


def _is_wanted(entry: Mapping[str, Any]) -> bool:
    """Return whether a recorder keeps the entry with these arguments; True if they aren't what is expected."""
    name = entry.get("name")
    if name != "artifact":
        return name in (_CODE, None)
    try:
        artifact = entry["metadata_fn"]()["name"]
    except Exception:  # PyTorch calls it again and reports what is wrong
        return True
    return artifact in _ARTIFACTS or artifact in _CACHE_KEYS


_recorder: CompileRecorder | None = None
_starting = threading.Lock()


def start_recording() -> CompileRecorder:
    """Start to record the compiles of this process, once, and return the recorder.

    Nothing of PyTorch is imported. It logs where kernels come from if its provenance level is at least 1, which is
    part of the key of its compile cache: graphs that were cached at level 0 are compiled once more.
    """
    global _recorder
    with _starting:
        if _recorder is None:
            config: Any = sys.modules.get(_CONFIG)
            if config is None:
                os.environ.setdefault(_LEVEL_VARIABLE, "1")
            elif not getattr(config.trace, "provenance_tracking_level", 1):
                config.trace.provenance_tracking_level = 1
            _recorder = CompileRecorder()
        logger = logging.getLogger(_LOGGER)
        if not isinstance(logger.handlers, TraceLogHandlers):
            logger.handlers = TraceLogHandlers(logger.handlers)
        if _recorder not in logger.handlers:
            logger.addHandler(_recorder)
            logger.setLevel(logging.DEBUG)
            logger.propagate = False
        return _recorder
