"""The Overview tab."""

from torch_tb_profiler.views.overview.build import VIEW

__all__ = ["VIEW"]
