"""Jobs on a Dask cluster: `dask://scheduler:port`, for logs that outgrow one machine.

The cluster keeps what it is good at: it queues, spreads, and gives the job of a lost worker to another one.
Jobs carry strings and small results; traces go through the shared cache.
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
from torch_tb_profiler.executors.job import NATIVE_READER, JobExecutor, ProgressTuple, reporting_to

logger = logging.getLogger(__name__)

CONNECT_SECONDS = 10
REPORT_SECONDS = 0.3
TOPIC = "torch-tb-profiler"

_Job = tuple["Future[Any]", Callable[..., Any], tuple[Any, ...]]


def _import_distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise MissingExtraError(
            "a Dask cluster needs a package that is not installed",
            hint='pip install "torch-tb-profiler[dask]"',
        ) from error
    return distributed


class ClusterExecutor(JobExecutor):
    """Submits to the scheduler at `address` (host:port); connects with the first job, and again after a loss."""

    elsewhere = True

    def __init__(self, address: str) -> None:
        self._distributed = _import_distributed()
        self._address = address
        self._lock = threading.Lock()
        # The one thread that talks to the cluster: neither a request nor the client's own loop ever waits.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="profiler-cluster")
        self._client: Any = None
        self._waiting: list[_Job] = []
        self._names: dict[Future[Any], str] = {}
        self._progress: dict[str, ProgressTuple | None] = {}

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run `fn(*args)` on the cluster; ClusterError if it cannot be reached, WorkerDiedError if the job
        kills every worker that takes it."""
        future: Future[Any] = Future()
        with self._lock:
            self._waiting.append((future, fn, args))
        self._thread.submit(self._send)
        return future

    def progress(self, future: Future[Any]) -> ProgressTuple | None:
        with self._lock:
            return self._progress.get(self._names.get(future, ""))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Forget all jobs and leave; what a worker has begun it ends for the cache."""
        self._thread.submit(self._leave)
        self._thread.shutdown(wait=wait)

    def _leave(self) -> None:
        with self._lock:
            client, self._client = self._client, None
            dropped = [*self._names, *(future for future, _, _ in self._waiting)]
            self._waiting.clear()
        if client is not None:
            client.close(timeout=2)
        for future in dropped:
            self._end(future, None, ShutdownError())

    def _send(self) -> None:
        """Submit all jobs that wait; one attempt to connect serves (or fails) them together."""
        with self._lock:
            jobs, self._waiting = self._waiting, []
        if not jobs:
            return
        try:
            client = self._connected()
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

    def _connected(self) -> Any:
        if self._client is None or self._client.status not in ("running", "connecting"):
            try:
                client = self._distributed.Client(
                    f"tcp://{self._address}", timeout=CONNECT_SECONDS, set_as_default=False, name=TOPIC
                )
                client.subscribe_topic(TOPIC, self._on_event)
            except (OSError, TimeoutError) as error:
                raise ClusterError(
                    "the Dask scheduler cannot be reached",
                    where=self._address,
                    hint="start it with `dask scheduler`, then try again",
                ) from error
            self._client = client
        return self._client

    def _on_event(self, event: Any) -> None:
        """A report of a worker, with its time."""
        _, (name, *progress) = event
        with self._lock:
            if name in self._progress:  # the jobs of other servers report here too
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
                hint="try again once it is back; what its workers had finished is in the cache",
            )
        else:
            error = self._translated(inner.exception())
        self._end(future, None if error else inner.result(), error)

    def _translated(self, error: BaseException | None) -> BaseException | None:
        if isinstance(error, self._distributed.scheduler.KilledWorker):
            return WorkerDiedError(
                "every worker that read this file was killed",
                hint="most likely it ran out of memory; give the workers more, or cut the trace",
            )
        if isinstance(error, ImportError) or isinstance(error and error.__cause__, ImportError):
            return ClusterError(
                "the workers of the cluster lack a package",
                where=self._address,
                hint="install the same torch-tb-profiler, with the driver of the storage, on every worker",
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
    """On a worker: the job, with its progress sent to whoever listens."""
    from distributed import get_worker

    worker, last = get_worker(), 0.0

    def report(progress: ProgressTuple) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= REPORT_SECONDS:
            last = now
            worker.log_event(TOPIC, [name, *progress])

    os.environ.setdefault(*NATIVE_READER)
    with reporting_to(report):
        return fn(*args)
