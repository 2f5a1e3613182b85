"""The Origins tab."""

from torch_tb_profiler.views.origins.build import TAB

__all__ = ["TAB"]
