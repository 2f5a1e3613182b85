"""What all executors share: how a job reports its progress, and the plainest of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

NATIVE_READER = ("TORCH_PROFILER_NATIVE", "1")
"""What a worker adds to its environment, unless it is set there: a crash of compiled code costs its one job."""

STAGES = ("reading", "arranging", "analyzing", "saving")

ProgressTuple = tuple[str, int, int, int]
"""(stage, bytes done, bytes total, events)"""

_report: ContextVar[Callable[[ProgressTuple], None] | None] = ContextVar("report", default=None)


def report_progress(progress: ProgressTuple) -> None:
    """Called by a job, wherever it runs: its progress goes to whoever submitted it."""
    report = _report.get()
    if report is not None:
        report(progress)


@contextmanager
def reporting_to(report: Callable[[ProgressTuple], None]) -> Iterator[None]:
    """Jobs that run inside report to `report`."""
    token = _report.set(report)
    try:
        yield
    finally:
        _report.reset(token)


def report_from_now_on_to(report: Callable[[ProgressTuple], None]) -> None:
    """All further jobs of this thread report to `report`."""
    _report.set(report)


class JobExecutor(Executor):
    """An executor that knows how far its jobs are, and whether they may run on other machines.

    aside  a job does not keep whoever submits it
    """

    elsewhere = False
    aside = True

    def progress(self, future: Future[Any]) -> ProgressTuple | None:
        """How far the job of a future is, None while it waits for a worker."""
        return None


class SerialExecutor(JobExecutor):
    """Runs a job where it is submitted."""

    aside = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # handed to whoever asks the future
            future.set_exception(error)
        return future
