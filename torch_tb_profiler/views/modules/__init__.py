"""The Modules tab."""

from torch_tb_profiler.views.modules.build import VIEW

__all__ = ["VIEW"]
