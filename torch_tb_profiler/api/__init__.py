"""The Python API: runs, the results of their views, and the columns of their traces.

`torch_tb_profiler` itself exports everything public.
"""

from __future__ import annotations

from torch_tb_profiler.api.columns import Columns
from torch_tb_profiler.api.log import Log, Run
from torch_tb_profiler.api.result import Result

__all__ = ["Columns", "Log", "Result", "Run"]
