"""The command line."""

from torch_tb_profiler.cli.main import main

__all__ = ["main"]
