"""The command line."""

from torch_tb_profiler.cli.main import main, run

__all__ = ["main", "run"]
