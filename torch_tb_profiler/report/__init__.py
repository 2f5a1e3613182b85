"""Reports: the page and its answers as one file that needs no server."""

from torch_tb_profiler.report.collect import collect
from torch_tb_profiler.report.page import ReportInfo, frame, page

__all__ = ["ReportInfo", "collect", "frame", "page"]
