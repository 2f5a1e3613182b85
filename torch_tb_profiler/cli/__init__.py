"""The command line."""

from torch_tb_profiler.cli.commands import main

__all__ = ["main"]
