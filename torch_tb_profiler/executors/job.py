"""The base class of executors, how a job reports its progress, and the serial executor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

NATIVE_READER = ("TORCH_PROFILER_NATIVE", "1")
"""Environment variable that workers set by default: there, a crash of compiled code costs only one job."""

STAGES = ("reading", "arranging", "analyzing", "saving")
"""Stages of a job, in order."""

ProgressTuple = tuple[str, int, int, int]
"""(stage, bytes done, bytes total, events)"""

_report: ContextVar[Callable[[ProgressTuple], None] | None] = ContextVar("report", default=None)


def report_progress(progress: ProgressTuple) -> None:
    """Report the progress of the running job to whoever submitted it; called by the job."""
    report = _report.get()
    if report is not None:
        report(progress)


@contextmanager
def report_progress_to(report: Callable[[ProgressTuple], None]) -> Iterator[None]:
    """Send the progress of jobs that run inside the `with` block to `report`."""
    token = _report.set(report)
    try:
        yield
    finally:
        _report.reset(token)


def set_progress_report(report: Callable[[ProgressTuple], None]) -> None:
    """Send the progress of all further jobs of this thread to `report`."""
    _report.set(report)


class JobExecutor(Executor):
    """An executor that knows the progress of its jobs.

    remote      its jobs may run on other machines
    background  `submit` returns before the job has run
    """

    remote = False
    background = True

    def progress(self, future: Future[Any]) -> ProgressTuple | None:
        """Return the progress of a future's job, or None while it waits for a worker."""
        return None


class SerialExecutor(JobExecutor):
    """An executor that runs each job in `submit`."""

    background = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # raised by `future.result()`
            future.set_exception(error)
        return future
