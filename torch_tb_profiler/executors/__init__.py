"""Where jobs run: `serial`, `processes:N` or `dask://scheduler:port`, as `concurrent.futures.Executor`s."""

from __future__ import annotations

from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.executors.job import JobExecutor, ProgressTuple, SerialExecutor, report_progress
from torch_tb_profiler.executors.memory import give_back_memory, limited_memory

__all__ = [
    "JobExecutor",
    "ProgressTuple",
    "SerialExecutor",
    "give_back_memory",
    "limited_memory",
    "make_executor",
    "report_progress",
]


def make_executor(spec: str, memory: int = 0) -> JobExecutor:
    """The executor that a setting names; nothing is started or connected before its first job.

    memory  bytes that a worker process of this machine may take, 0 for any number

    UsageError says what is possible, MissingExtraError what to install.
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
    raise UsageError(
        f"there is no executor {spec!r}", hint="give `serial`, `processes:N` or `dask://scheduler:port`"
    )
