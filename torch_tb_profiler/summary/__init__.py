"""What matters of a run on one page: of a job of many ranks the job."""

from __future__ import annotations

from torch_tb_profiler.summary.build import Source, summarize
from torch_tb_profiler.summary.fit import MAX_BYTES, as_json, as_markdown
from torch_tb_profiler.summary.payload import VERSION, Summary

__all__ = ["MAX_BYTES", "VERSION", "Source", "Summary", "as_json", "as_markdown", "summarize"]
