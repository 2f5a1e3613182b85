"""Executors of jobs, each a `concurrent.futures.Executor`: `serial`, `processes:N`, `dask://scheduler:port`."""

from __future__ import annotations

from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.base.memory import limited_memory, release_memory
from torch_tb_profiler.executors.job import JobExecutor, ProgressTuple, SerialExecutor, report_progress

__all__ = [
    "JobExecutor",
    "ProgressTuple",
    "SerialExecutor",
    "limited_memory",
    "make_executor",
    "release_memory",
    "report_progress",
]


def make_executor(spec: str, memory: int = 0) -> JobExecutor:
    """Create the executor of a setting; nothing is started or connected before its first job.

    memory  limit in bytes of each worker process on this machine, 0 for none

    Raises UsageError, which lists the valid settings, or MissingExtraError, which says what to install.
    """
    name, _, rest = spec.partition(":")
    if name == "serial" and not rest:
        return SerialExecutor()
    if name == "processes" and rest.isdigit() and int(rest) > 0:
        from torch_tb_profiler.executors.processes import ProcessExecutor

        return ProcessExecutor(int(rest), memory)
    address = rest.removeprefix("//").rstrip("/")
    if name == "dask" and rest.startswith("//") and address.rpartition(":")[2].isdigit():
        from torch_tb_profiler.executors.cluster import ClusterExecutor

        return ClusterExecutor(address)
    raise UsageError(f"unknown executor {spec!r}", hint="use `serial`, `processes:N` or `dask://scheduler:port`")
