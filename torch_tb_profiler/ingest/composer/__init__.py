"""Chrome traces of Composer's profiler: events of the trainer, samples of the machine, and PyTorch's own events.

A bare list whose closing bracket may be missing; the pid is the rank, the tid the process of the training loop.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, BinaryIO

from torch_tb_profiler.ingest.formats import TraceFormat
from torch_tb_profiler.ingest.runtime import Report

if TYPE_CHECKING:
    from torch_tb_profiler.model.trace import Trace

__all__ = ["FORMATS"]

_MARK = re.compile(rb'"name"\s*:\s*"(?:global_rank|clock_sync_timestamp_us|event/batch)"')


def looks_like_composer(head: bytes) -> bool:
    """True for the first bytes (unpacked) of a list of events with those that only Composer writes."""
    return head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[") and _MARK.search(head) is not None


def read_composer(stream: BinaryIO, *, size: int, report: Report, limit: int) -> Trace:
    """As every chrome trace: what its events mean is told by their names (`model.trainer`)."""
    from torch_tb_profiler.ingest.kineto.read import read_chrome_trace
    from torch_tb_profiler.model.trace import COMPOSER

    return replace(read_chrome_trace(stream, size=size, report=report, limit=limit), producer=COMPOSER)


FORMATS = (TraceFormat("Composer trace", (".json", ".json.gz"), looks_like_composer, read_composer),)
