"""`processes:N`: worker processes on this machine.

N processes are N pools of one worker each: when a worker is killed, exactly its own job fails and the others
go on. Workers are spawned (safe with threads, the same on every system), start with the first job and leave
when they have been idle for a while.
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
from torch_tb_profiler.executors.job import (
    NATIVE_READER,
    STAGES,
    JobExecutor,
    ProgressTuple,
    report_from_now_on_to,
)
from torch_tb_profiler.executors.memory import limit_memory, recycle_memory

IDLE_SECONDS = 30.0


def _start_worker(shared: Any, memory: int) -> None:
    """In a new worker process: its jobs report their progress to the parent through shared memory.

    It may take `memory` bytes (0: any number), where the system knows such a limit, and ends with its parent.
    """
    limit_memory(memory)
    recycle_memory()
    os.environ.setdefault(*NATIVE_READER)
    threading.Thread(target=_end_with_parent, name="profiler-parent", daemon=True).start()

    def report(progress: ProgressTuple) -> None:
        stage, done, total, events = progress
        shared[:] = (STAGES.index(stage), done, total, events)

    report_from_now_on_to(report)


def _end_with_parent() -> None:
    """A killed parent cannot stop its workers, and they would wait for their next job for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


_BLAS_THREADS = "OPENBLAS_NUM_THREADS"
_starting = threading.Lock()


@contextmanager
def _lean_start() -> Iterator[None]:
    """For a process that starts inside: it loads what its job names, and nothing else.

    numpy would give it a spinning thread per core for algebra no job does. And it would first run the main
    module again, under another name: half a second in TensorBoard, and in a script without the usual
    `if __name__ == "__main__"` all that the script does.
    """
    with _starting:
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


class _Slot:
    """One worker process and what it is doing."""

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
        """Part with the pool without touching it: its own threads clean up after a broken one."""
        if self.idle_timer is not None:
            self.idle_timer.cancel()
        # Still referred to: collecting a pool takes its lock, which it may hold while it calls us.
        self.former, self.pool = self.pool, None
        return self.former

    def stop(self) -> None:
        pool = self.release()
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)


class ProcessExecutor(JobExecutor):
    """At most `count` worker processes of at most `memory` bytes, one job each; further jobs wait in order."""

    def __init__(self, count: int, memory: int = 0) -> None:
        self._slots = [_Slot(memory) for _ in range(count)]
        self._waiting: deque[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]] = deque()
        self._lock = threading.RLock()
        self._closed = False
        _open.add(self)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run `fn(*args)` in a worker; a killed worker gives WorkerDiedError, shutting down ShutdownError."""
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
            for slot in self._slots:
                if slot.job is future:
                    stage, done, total, events = slot.shared[:]
                    return STAGES[stage], done, total, events
        return None

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Stop the workers; running jobs are killed, waiting ones cancelled."""
        with self._lock:
            self._closed = True
            for future, _, _ in self._waiting:
                future.cancel()
            self._waiting.clear()
            pools = [pool for slot in self._slots if (pool := slot.release()) is not None]
        # Without our lock: a pool that breaks right now holds its own and waits for ours in `_finish`.
        # Each is waited for, which with killed workers takes no time: a pool that ends while the interpreter
        # does can keep it from ending (its thread closes the pipe that the interpreter wakes it through).
        for pool in pools:
            for process in list((pool._processes or {}).values()):
                process.kill()
            pool.shutdown(wait=True, cancel_futures=True)

    def _dispatch(self) -> None:
        for slot in self._slots:
            if slot.job is not None or not self._waiting:
                continue
            future, fn, args = self._waiting.popleft()
            if not future.set_running_or_notify_cancel():
                continue
            slot.job = future
            with _lean_start():
                try:
                    inner = slot.start().submit(fn, *args)
                except BrokenProcessPool:
                    slot.release()
                    inner = slot.start().submit(fn, *args)
            inner.add_done_callback(partial(self._finish, slot, future))

    def _finish(self, slot: _Slot, future: Future[Any], done: Future[Any]) -> None:
        with self._lock:
            slot.job = None
            error = None if done.cancelled() else done.exception()
            if done.cancelled() or (self._closed and error is not None):
                error = ShutdownError()
            elif isinstance(error, BrokenProcessPool):
                # Not stopped: the pool calls here while it holds the lock that stopping it needs.
                slot.release()
                error = WorkerDiedError(
                    "the process that read this file was killed",
                    hint="most likely it ran out of memory; try again, or cut the trace into smaller parts",
                )
            if not self._closed:
                self._dispatch()
                if slot.job is None and slot.pool is not None:
                    slot.idle_timer = threading.Timer(IDLE_SECONDS, self._retire, (slot,))
                    slot.idle_timer.daemon = True
                    slot.idle_timer.start()
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(done.result())

    def _retire(self, slot: _Slot) -> None:
        with self._lock:
            if slot.job is None:
                slot.stop()


_open: weakref.WeakSet[ProcessExecutor] = weakref.WeakSet()


def _stop_all() -> None:
    for executor in tuple(_open):
        executor.shutdown()


# Python's own end of its pools waits for what runs, and comes before what `atexit` calls; this comes before both.
threading._register_atexit(_stop_all)  # type: ignore[attr-defined]
