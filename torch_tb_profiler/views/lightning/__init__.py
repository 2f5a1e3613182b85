"""The Lightning tab."""

from torch_tb_profiler.views.lightning.build import TAB

__all__ = ["TAB"]
