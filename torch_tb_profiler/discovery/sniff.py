"""Is this file a trace? Asked only where the name does not say, and once per content."""

from __future__ import annotations

import re
import zlib
from collections.abc import Set

from torch_tb_profiler.base.errors import StorageError
from torch_tb_profiler.discovery.catalog import ListedFile
from torch_tb_profiler.storage import FileId

HEAD_BYTES = 1 << 16
_GZIP_MAGIC = b"\x1f\x8b"
_EVENTS = re.compile(rb'"traceEvents"\s*:')
_KINETO = re.compile(rb'"(?:schemaVersion|deviceProperties|distributedInfo|baseTimeNanoseconds)"\s*:')
_BARE_LIST = re.compile(rb'^\s*\[\s*\{[^{}]*"(?:ph|ts)"\s*:', re.DOTALL)


class Sniffer:
    """Remembers the verdict per file identity, so that polling reads no unchanged file again."""

    def __init__(self) -> None:
        self._verdicts: dict[FileId, bool] = {}

    def is_trace(self, file: ListedFile) -> bool:
        """True if the first bytes look like a chrome trace; an unreadable file is none (and asked again)."""
        if file.id not in self._verdicts:
            try:
                with file.open() as stream:
                    head = stream.read(HEAD_BYTES)
            except (OSError, StorageError):
                return False
            self._verdicts[file.id] = looks_like_trace(head)
        return self._verdicts[file.id]

    def keep_only(self, ids: Set[FileId]) -> None:
        """Forget the verdicts on other files."""
        self._verdicts = {id_: verdict for id_, verdict in self._verdicts.items() if id_ in ids}


def looks_like_trace(head: bytes) -> bool:
    """True for the head of a chrome trace, plain or gzip."""
    if head.startswith(_GZIP_MAGIC):
        try:
            head = zlib.decompressobj(31).decompress(head, 4 * HEAD_BYTES)
        except zlib.error:
            return False
    head = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if head.startswith(b"{"):
        return bool(_EVENTS.search(head) or _KINETO.search(head))
    return bool(_BARE_LIST.match(head))
