"""Is this file a trace? Asked only where the name does not say, and once per content."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from typing import BinaryIO

from torch_tb_profiler.base.errors import StorageError

HEAD_BYTES = 1 << 16
_GZIP_MAGIC = b"\x1f\x8b"
_EVENTS = re.compile(rb'"traceEvents"\s*:')
_KINETO = re.compile(rb'"(?:schemaVersion|deviceProperties|distributedInfo|baseTimeNanoseconds)"\s*:')
_BARE_LIST = re.compile(rb'^\s*\[\s*\{[^{}]*"(?:ph|ts)"\s*:', re.DOTALL)


class Sniffer:
    """Remembers the verdict per file identity, so that polling reads no unchanged file again."""

    def __init__(self) -> None:
        self._verdicts: dict[str, bool] = {}

    def is_trace(self, key: str, open_file: Callable[[], BinaryIO]) -> bool:
        """True if the first bytes look like a chrome trace; an unreadable file is none (and asked again)."""
        if key not in self._verdicts:
            try:
                with open_file() as stream:
                    head = stream.read(HEAD_BYTES)
            except (OSError, StorageError):
                return False
            self._verdicts[key] = looks_like_trace(head)
        return self._verdicts[key]

    def keep_only(self, keys: set[str]) -> None:
        """Forget the verdicts on other files."""
        self._verdicts = {key: verdict for key, verdict in self._verdicts.items() if key in keys}


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
