"""Reports: the page and its answers as one file that needs no server."""

from torch_tb_profiler.report.collect import collect
from torch_tb_profiler.report.page import About, frame, page

__all__ = ["About", "collect", "frame", "page"]
