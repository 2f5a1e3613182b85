"""Reports: the page and its answers as one file that needs no server."""

from torch_tb_profiler.report.collect import collect_contents
from torch_tb_profiler.report.page import ReportInfo, render_frame, render_page

__all__ = ["ReportInfo", "collect_contents", "render_frame", "render_page"]
