"""Chrome traces as Kineto and its relatives write them."""

from __future__ import annotations

from torch_tb_profiler.ingest.formats import TraceFormat
from torch_tb_profiler.ingest.kineto.part import Window
from torch_tb_profiler.ingest.kineto.read import find_start, read_chrome_trace, read_part
from torch_tb_profiler.ingest.kineto.sniff import looks_like_chrome_trace

__all__ = ["FORMATS", "Window", "find_start", "read_chrome_trace", "read_part"]

FORMATS = (TraceFormat("chrome trace", (".json", ".json.gz"), looks_like_chrome_trace, read_chrome_trace),)
