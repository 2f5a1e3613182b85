"""The Serving tab."""

from torch_tb_profiler.views.serving.build import TAB

__all__ = ["TAB"]
