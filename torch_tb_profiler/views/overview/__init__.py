"""The Overview tab."""

from torch_tb_profiler.views.overview.build import TAB

__all__ = ["TAB"]
