"""How files of rocprofv3 begin: each function takes the first bytes of a file, unpacked."""

from __future__ import annotations

import re

_SQLITE = b"SQLite format 3\0"
_JSON = re.compile(rb'\{\s*"rocprofiler-sdk-tool"\s*:')


def looks_like_rocpd(head: bytes) -> bool:
    """A database whose tables are named rocpd's."""
    return head.startswith(_SQLITE) and b"rocpd_" in head


def looks_like_rocprof_json(head: bytes) -> bool:
    return bool(_JSON.match(head.lstrip(b"\xef\xbb\xbf \t\r\n")))
