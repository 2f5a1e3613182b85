"""Chrome traces of Composer's profiler: events of the trainer, samples of the machine, and PyTorch's own events.

The file is a bare list whose closing bracket may be missing. Its pid is the rank, its tid the process of the
training loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from msgspec.structs import replace

from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.ingest.formats import TraceFormat
from torch_tb_profiler.ingest.runtime import Report

if TYPE_CHECKING:
    from torch_tb_profiler.model.trace import Trace

__all__ = ["FORMATS"]

_COMPOSER_EVENT = lazy_regex(rb'"name"\s*:\s*"(?:global_rank|clock_sync_timestamp_us|event/batch)"')


def _looks_like_composer(head: bytes) -> bool:
    """Return whether these unpacked first bytes are a list with events that only Composer writes."""
    return head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[") and _COMPOSER_EVENT.search(head) is not None


def _parse(stream: BinaryIO, *, size: int, report: Report, limit: int) -> Trace:
    """Read the file like any Chrome trace; `model.trainer` recognizes its events by their names."""
    from torch_tb_profiler.ingest.kineto.read import read_chrome_trace
    from torch_tb_profiler.model.trace import COMPOSER

    return replace(read_chrome_trace(stream, size=size, report=report, limit=limit), producer=COMPOSER)


FORMATS = (TraceFormat("Composer trace", (".json", ".json.gz"), _looks_like_composer, _parse),)
