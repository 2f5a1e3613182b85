"""The Idle time tab."""

from torch_tb_profiler.views.idle.build import TAB

__all__ = ["TAB"]
