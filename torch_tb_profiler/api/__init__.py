"""The Python API: runs (`log`), results of their views (`result`), and the columns of traces (`columns`).

`torch_tb_profiler` itself exports everything public. Nothing is imported here: commands need `tables` alone.
"""
