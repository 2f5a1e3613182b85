"""The Roofline tab."""

from torch_tb_profiler.views.roofline.build import TAB

__all__ = ["TAB"]
