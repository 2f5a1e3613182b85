"""How a file of AORTA's metrics begins."""

from __future__ import annotations

import re

_LINE = re.compile(rb'\{(?=[^\n]*"global_step"\s*:)[^\n]*"profile"\s*:\s*\{')


def looks_like_metrics(head: bytes) -> bool:
    """True for the first bytes (unpacked) of a file whose first line is an iteration with its profile."""
    return bool(_LINE.match(head.lstrip(b"\xef\xbb\xbf \t\r\n")))
