"""Chrome traces as Kineto and its relatives write them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, BinaryIO

from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.ingest.formats import TraceFormat
from torch_tb_profiler.ingest.runtime import Report

if TYPE_CHECKING:
    from torch_tb_profiler.model.trace import Trace

__all__ = ["FORMATS", "looks_like_chrome_trace"]

_EVENTS = lazy_regex(rb'"traceEvents"\s*:')
_KINETO = lazy_regex(rb'"(?:schemaVersion|deviceProperties|distributedInfo|baseTimeNanoseconds)"\s*:')
_BARE_LIST = lazy_regex(rb'^\s*\[\s*\{[^{}]*"(?:ph|ts)"\s*:', re.DOTALL)


_PHASE = lazy_regex(rb'"ph"\s*:')
"""A key of every event. A list of other objects may have times, too: results, expectations of a test."""


def looks_like_chrome_trace(head: bytes) -> bool:
    """Return whether unpacked first bytes begin a chrome trace: an object with its keys, or a list of events."""
    head = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if head.startswith(b"{"):
        return bool(_EVENTS.search(head) or _KINETO.search(head))
    return bool(_BARE_LIST.match(head) and _PHASE.search(head))


def _parse(stream: BinaryIO, *, size: int, report: Report, limit: int) -> Trace:
    from torch_tb_profiler.ingest.kineto.read import read_chrome_trace

    return read_chrome_trace(stream, size=size, report=report, limit=limit)


FORMATS = (TraceFormat("chrome trace", (".json", ".json.gz"), looks_like_chrome_trace, _parse),)
