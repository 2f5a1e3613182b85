"""Jobs on a Dask cluster: `dask://scheduler:port`, for logs that outgrow one machine.

Dask queues the jobs, distributes them, and reruns the job of a lost worker on another one. Jobs carry strings and
small results; traces go through the shared cache.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

from torch_tb_profiler.base.errors import (
    ClusterError,
    MissingExtraError,
    ProfilerError,
    ShutdownError,
    WorkerDiedError,
)
from torch_tb_profiler.executors.job import NATIVE_READER, JobExecutor, ProgressTuple, report_progress_to

logger = logging.getLogger(__name__)

CONNECT_SECONDS = 10
"""Timeout for connecting to the scheduler."""

REPORT_INTERVAL_SECONDS = 0.3
"""Shortest time between two progress reports of a job."""

TOPIC = "torch-tb-profiler"
"""Dask topic of the progress reports."""

_Job = tuple["Future[Any]", Callable[..., Any], tuple[Any, ...]]


def _import_distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise MissingExtraError(
            "Dask is not installed",
            hint='pip install "torch-tb-profiler[dask]"',
        ) from error
    return distributed


class ClusterExecutor(JobExecutor):
    """An executor for the Dask scheduler at `address` (host:port).

    It connects with the first job, and again after the connection was lost.
    """

    remote = True

    def __init__(self, address: str) -> None:
        self._distributed = _import_distributed()
        self._address = address
        self._lock = threading.Lock()
        # Only this thread talks to the cluster, so neither a request nor the client's event loop ever waits.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="profiler-cluster")
        self._client: Any = None
        self._waiting: list[_Job] = []
        self._names: dict[Future[Any], str] = {}
        self._progress: dict[str, ProgressTuple | None] = {}

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run `fn(*args)` on the cluster.

        The future raises ClusterError if the cluster can't be reached, and WorkerDiedError if the job kills
        every worker that runs it.
        """
        future: Future[Any] = Future()
        with self._lock:
            self._waiting.append((future, fn, args))
        self._thread.submit(self._send)
        return future

    def progress(self, future: Future[Any]) -> ProgressTuple | None:
        with self._lock:
            return self._progress.get(self._names.get(future, ""))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Drop all jobs and disconnect; workers finish the jobs that they have started and cache the results."""
        self._thread.submit(self._disconnect)
        self._thread.shutdown(wait=wait)

    def _disconnect(self) -> None:
        with self._lock:
            client, self._client = self._client, None
            dropped = [*self._names, *(future for future, _, _ in self._waiting)]
            self._waiting.clear()
        if client is not None:
            client.close(timeout=2)
        for future in dropped:
            self._end(future, None, ShutdownError())

    def _send(self) -> None:
        """Submit all waiting jobs; if the connection fails, all of them fail."""
        with self._lock:
            jobs, self._waiting = self._waiting, []
        if not jobs:
            return
        try:
            client = self._connect()
        except ProfilerError as error:
            for future, _, _ in jobs:
                self._end(future, None, error)
            return
        cluster = client.get_executor(pure=False)
        for future, fn, args in jobs:
            if not future.set_running_or_notify_cancel():
                continue
            name = uuid.uuid4().hex
            with self._lock:
                self._names[future], self._progress[name] = name, None
            inner = cluster.submit(_run, name, fn, args)
            inner.add_done_callback(partial(self._hand_over, future))

    def _connect(self) -> Any:
        if self._client is None or self._client.status not in ("running", "connecting"):
            try:
                client = self._distributed.Client(
                    f"tcp://{self._address}", timeout=CONNECT_SECONDS, set_as_default=False, name=TOPIC
                )
                client.subscribe_topic(TOPIC, self._on_event)
            except (OSError, TimeoutError) as error:
                raise ClusterError(
                    "can't reach the Dask scheduler",
                    where=self._address,
                    hint="start it with `dask scheduler`, then try again",
                ) from error
            self._client = client
        return self._client

    def _on_event(self, event: Any) -> None:
        """Store the progress that a worker reports; an event is (time, message)."""
        _, (name, *progress) = event
        with self._lock:
            if name in self._progress:  # jobs of other servers report to the same topic
                self._progress[name] = tuple(progress)

    def _hand_over(self, future: Future[Any], inner: Future[Any]) -> None:
        try:
            self._thread.submit(self._finish, future, inner)
        except RuntimeError:
            logger.debug("a job ended after the executor was shut down")

    def _finish(self, future: Future[Any], inner: Future[Any]) -> None:
        if inner.cancelled():
            error: BaseException | None = ClusterError(
                "the connection to the Dask scheduler was lost",
                where=self._address,
                hint="try again once it is back; files that its workers had finished are in the cache",
            )
        else:
            error = self._translate(inner.exception())
        self._end(future, None if error else inner.result(), error)

    def _translate(self, error: BaseException | None) -> BaseException | None:
        """Return the error to show for a job's error."""
        if isinstance(error, self._distributed.scheduler.KilledWorker):
            return WorkerDiedError(
                "every worker that read this file was killed",
                hint="it likely ran out of memory; give the workers more, or cut the trace into smaller parts",
            )
        if isinstance(error, ImportError) or isinstance(error and error.__cause__, ImportError):
            return ClusterError(
                "a Python package is missing on the workers of the cluster",
                where=self._address,
                hint="install the same torch-tb-profiler, with the storage driver, on every worker",
            )
        return error

    def _end(self, future: Future[Any], result: Any, error: BaseException | None) -> None:
        with self._lock:
            self._progress.pop(self._names.pop(future, ""), None)
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)


def _run(name: str, fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Run a job on a worker and publish its progress."""
    from distributed import get_worker

    worker, last = get_worker(), 0.0

    def report(progress: ProgressTuple) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= REPORT_INTERVAL_SECONDS:
            last = now
            worker.log_event(TOPIC, [name, *progress])

    os.environ.setdefault(*NATIVE_READER)
    with report_progress_to(report):
        return fn(*args)
