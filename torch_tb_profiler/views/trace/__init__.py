"""The Trace tab."""

from torch_tb_profiler.views.trace.build import VIEW

__all__ = ["VIEW"]
