"""How a chrome trace begins."""

from __future__ import annotations

import re

_EVENTS = re.compile(rb'"traceEvents"\s*:')
_KINETO = re.compile(rb'"(?:schemaVersion|deviceProperties|distributedInfo|baseTimeNanoseconds)"\s*:')
_BARE_LIST = re.compile(rb'^\s*\[\s*\{[^{}]*"(?:ph|ts)"\s*:', re.DOTALL)


def looks_like_chrome_trace(head: bytes) -> bool:
    """True for the first bytes (unpacked) of a chrome trace: an object with its keys, or a bare list of events."""
    head = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if head.startswith(b"{"):
        return bool(_EVENTS.search(head) or _KINETO.search(head))
    return bool(_BARE_LIST.match(head))
