"""The Distributed tab."""

from torch_tb_profiler.views.distributed.build import TAB

__all__ = ["TAB"]
