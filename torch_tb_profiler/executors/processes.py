"""`processes:N`: worker processes on this machine.

N processes are N pools of one worker each: when a worker is killed, only its own job fails and the others go on.
Workers are spawned (safe with threads, the same on every system), start with the first job, and exit when they
have been idle for a while.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from multiprocessing import connection
from typing import Any

from torch_tb_profiler.base.errors import ShutdownError, WorkerDiedError
from torch_tb_profiler.base.memory import limit_memory, recycle_memory
from torch_tb_profiler.executors.job import (
    NATIVE_READER,
    STAGES,
    JobExecutor,
    ProgressTuple,
    set_progress_report,
)

IDLE_SECONDS = 30.0
"""A worker that has had no job for this long exits."""


def _start_worker(shared: Any, memory: int) -> None:
    """Set up a new worker process: limit it to `memory` bytes (0: no limit) and report progress to its parent.

    Progress goes through the array `shared`, in shared memory. The worker exits with its parent.
    """
    limit_memory(memory)
    recycle_memory()
    os.environ.setdefault(*NATIVE_READER)
    threading.Thread(target=_exit_with_parent, name="profiler-parent", daemon=True).start()

    def report(progress: ProgressTuple) -> None:
        stage, done, total, events = progress
        shared[:] = (STAGES.index(stage), done, total, events)

    set_progress_report(report)


def _exit_with_parent() -> None:
    """Exit once the parent is gone: a killed parent can't stop its workers, which would wait for jobs forever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


_BLAS_THREADS = "OPENBLAS_NUM_THREADS"
_start_lock = threading.Lock()


@contextmanager
def _start_without_main() -> Iterator[None]:
    """Let a process that starts inside the `with` block import only what its job needs.

    Otherwise OpenBLAS would start a spinning thread per core for linear algebra that no job does. And the process
    would first run the main module again, under another name: that takes half a second in TensorBoard, and repeats
    everything that a script does which lacks `if __name__ == "__main__"`.
    """
    with _start_lock:
        main = vars(sys.modules["__main__"])
        hidden: dict[str, Any] = {name: main[name] for name in ("__spec__", "__file__") if name in main}
        threads = os.environ.get(_BLAS_THREADS)
        os.environ[_BLAS_THREADS] = threads or "1"
        main.update(dict.fromkeys(hidden))
        try:
            yield
        finally:
            main.update(hidden)
            if threads is None:
                os.environ.pop(_BLAS_THREADS, None)


class _Worker:
    """One worker process and its job."""

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self._context = multiprocessing.get_context("spawn")
        self.shared = self._context.Array("q", 4, lock=False)
        self.pool: ProcessPoolExecutor | None = None
        self.former: ProcessPoolExecutor | None = None
        self.job: Future[Any] | None = None
        self.idle_timer: threading.Timer | None = None

    def start(self) -> ProcessPoolExecutor:
        if self.idle_timer is not None:
            self.idle_timer.cancel()
            self.idle_timer = None
        if self.pool is None:
            self.pool = ProcessPoolExecutor(
                1, mp_context=self._context, initializer=_start_worker, initargs=(self.shared, self._memory)
            )
        self.shared[:] = (0, 0, 0, 0)
        return self.pool

    def release(self) -> ProcessPoolExecutor | None:
        """Detach the pool without stopping it: the pool's own threads clean up after a broken one."""
        if self.idle_timer is not None:
            self.idle_timer.cancel()
        # Keep a reference: garbage collecting a pool takes its lock, which it may hold while it calls us.
        self.former, self.pool = self.pool, None
        return self.former

    def stop(self) -> None:
        pool = self.release()
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)


class ProcessExecutor(JobExecutor):
    """An executor with up to `count` worker processes of up to `memory` bytes each; further jobs wait in order."""

    def __init__(self, count: int, memory: int = 0) -> None:
        self._workers = [_Worker(memory) for _ in range(count)]
        self._waiting: deque[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]] = deque()
        self._lock = threading.RLock()
        self._closed = False
        _open_executors.add(self)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run `fn(*args)` in a worker.

        The future raises WorkerDiedError if the worker is killed, and ShutdownError if the executor is shut down.
        """
        future: Future[Any] = Future()
        with self._lock:
            if not self._closed:
                self._waiting.append((future, fn, args))
                self._dispatch()
                return future
        future.set_exception(ShutdownError())
        return future

    def progress(self, future: Future[Any]) -> ProgressTuple | None:
        with self._lock:
            for worker in self._workers:
                if worker.job is future:
                    stage, done, total, events = worker.shared[:]
                    return STAGES[stage], done, total, events
        return None

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Kill the workers with their running jobs, and cancel the waiting jobs."""
        with self._lock:
            self._closed = True
            for future, _, _ in self._waiting:
                future.cancel()
            self._waiting.clear()
            pools = [pool for worker in self._workers if (pool := worker.release()) is not None]
        # Don't hold our lock here: a pool that breaks right now holds its own and waits for ours in `_finish`.
        # Wait for each pool, which takes no time as its worker is killed: a pool that shuts down together with the
        # interpreter can block its exit (the pool's thread closes the pipe that the interpreter wakes it through).
        for pool in pools:
            for process in list((pool._processes or {}).values()):
                process.kill()
            pool.shutdown(wait=True, cancel_futures=True)

    def _dispatch(self) -> None:
        for worker in self._workers:
            if worker.job is not None or not self._waiting:
                continue
            future, fn, args = self._waiting.popleft()
            if not future.set_running_or_notify_cancel():
                continue
            worker.job = future
            with _start_without_main():
                try:
                    inner = worker.start().submit(fn, *args)
                except BrokenProcessPool:
                    worker.release()
                    inner = worker.start().submit(fn, *args)
            inner.add_done_callback(partial(self._finish, worker, future))

    def _finish(self, worker: _Worker, future: Future[Any], done: Future[Any]) -> None:
        with self._lock:
            worker.job = None
            error = None if done.cancelled() else done.exception()
            if done.cancelled() or (self._closed and error is not None):
                error = ShutdownError()
            elif isinstance(error, BrokenProcessPool):
                # Don't stop it: the pool calls us while it holds the lock that stopping it needs.
                worker.release()
                error = WorkerDiedError(
                    "the process reading this file was killed",
                    hint="it likely ran out of memory; try again, or cut the trace into smaller parts",
                )
            if not self._closed:
                self._dispatch()
                if worker.job is None and worker.pool is not None:
                    worker.idle_timer = threading.Timer(IDLE_SECONDS, self._stop_idle, (worker,))
                    worker.idle_timer.daemon = True
                    worker.idle_timer.start()
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(done.result())

    def _stop_idle(self, worker: _Worker) -> None:
        with self._lock:
            if worker.job is None:
                worker.stop()


_open_executors: weakref.WeakSet[ProcessExecutor] = weakref.WeakSet()


def _stop_all() -> None:
    for executor in tuple(_open_executors):
        executor.shutdown()


# At exit, Python waits for the jobs of its pools before it calls `atexit` functions; this runs before both.
threading._register_atexit(_stop_all)  # type: ignore[attr-defined]
