"""The Critical path tab."""

from torch_tb_profiler.views.critical_path.build import TAB

__all__ = ["TAB"]
