"""The Operators tab."""

from torch_tb_profiler.views.operators.build import VIEW

__all__ = ["VIEW"]
