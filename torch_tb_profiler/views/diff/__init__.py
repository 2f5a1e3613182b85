"""The Diff tab."""

from torch_tb_profiler.views.diff.build import VIEW

__all__ = ["VIEW"]
