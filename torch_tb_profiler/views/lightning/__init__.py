"""The Lightning tab."""

from torch_tb_profiler.views.lightning.build import VIEW

__all__ = ["VIEW"]
