"""The Memory tab."""

from torch_tb_profiler.views.memory.build import VIEW

__all__ = ["VIEW"]
