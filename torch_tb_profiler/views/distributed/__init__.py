"""The Distributed tab."""

from torch_tb_profiler.views.distributed.build import VIEW

__all__ = ["VIEW"]
