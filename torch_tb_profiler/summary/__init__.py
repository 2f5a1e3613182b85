"""Summaries: a run, or a job of many ranks, on one page."""

from __future__ import annotations

from torch_tb_profiler.summary.build import summarize
from torch_tb_profiler.summary.formats import MAX_BYTES, as_json, as_markdown
from torch_tb_profiler.summary.payload import VERSION, Summary
from torch_tb_profiler.summary.source import SummarySource

__all__ = ["MAX_BYTES", "VERSION", "Summary", "SummarySource", "as_json", "as_markdown", "summarize"]
