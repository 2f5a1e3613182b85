"""Python data: runs, what each view answers of them, and the columns of their traces.

Everything public is exported by `torch_tb_profiler` itself.
"""

from __future__ import annotations

from torch_tb_profiler.api.columns import Columns
from torch_tb_profiler.api.log import Log
from torch_tb_profiler.api.result import Result
from torch_tb_profiler.api.run import Run

__all__ = ["Columns", "Log", "Result", "Run"]
