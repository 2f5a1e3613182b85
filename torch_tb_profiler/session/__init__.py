"""Sessions turn a log folder into payloads. This is the only package that joins discovery, loading, and views.

    session -> answers -> targets -> log      what exists
                       -> files   -> jobs     what has been loaded

Imports go in this direction only: nothing on the right imports anything on its left.
"""

from __future__ import annotations

from torch_tb_profiler.model.health import HealthNote
from torch_tb_profiler.session.answers import Answer
from torch_tb_profiler.session.exports import MAX_SAVED_BYTES, Download, Excerpt
from torch_tb_profiler.session.log import Root
from torch_tb_profiler.session.session import Session, open_session
from torch_tb_profiler.session.state import ErrorInfo, FileState, HealthCounts, ProgressInfo
from torch_tb_profiler.session.targets import Target

__all__ = [
    "MAX_SAVED_BYTES",
    "Answer",
    "Download",
    "ErrorInfo",
    "Excerpt",
    "FileState",
    "HealthCounts",
    "HealthNote",
    "ProgressInfo",
    "Root",
    "Session",
    "Target",
    "open_session",
]
