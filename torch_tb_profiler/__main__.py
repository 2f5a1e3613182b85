"""`python -m torch_tb_profiler`: the command line."""

from torch_tb_profiler.cli import run

run()
