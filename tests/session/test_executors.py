"""The executors that a setting names, and worker processes that die or are shut down."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

from tests.support.waiting import PATIENCE
from torch_tb_profiler.base.errors import UsageError, WorkerDiedError
from torch_tb_profiler.executors import make_executor
from torch_tb_profiler.executors.processes import ProcessExecutor


def _pid() -> int:
    return os.getpid()


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_worker_fails_its_own_job_and_the_next_one_works() -> None:
    executor = ProcessExecutor(1)
    try:
        pid = executor.submit(_pid).result(PATIENCE)
        assert pid != os.getpid()
        killed, after = executor.submit(_die), executor.submit(_pid)
        with pytest.raises(WorkerDiedError) as caught:
            killed.result(PATIENCE)
        assert caught.value.hint
        assert after.result(PATIENCE) not in (pid, os.getpid())
    finally:
        executor.shutdown()


@pytest.mark.parametrize("job", [_pid, signal.pause])
def test_a_closed_executor_leaves_no_thread_that_ends_with_the_interpreter(job: Callable[[], object]) -> None:
    executor, before = ProcessExecutor(1), set(threading.enumerate())
    future = executor.submit(job)
    if job is _pid:
        future.result(PATIENCE)
    executor.shutdown(wait=False)
    left = set(threading.enumerate()) - before
    assert all(isinstance(thread, threading.Timer) for thread in left), left  # canceled, and a daemon
    assert future.done()


def test_executors_are_named_by_a_setting() -> None:
    assert make_executor("serial").submit(_pid).result() == os.getpid()
    for wrong in ("threads:2", "processes", "processes:0", "serial:2", ""):
        with pytest.raises(UsageError):
            make_executor(wrong)


WHILE_PYTHON_ENDS = """
import os, signal
from torch_tb_profiler.executors.processes import ProcessExecutor

def print_error(future):
    print(type(future.exception()).__name__)

executor = ProcessExecutor(1)
running = executor.submit(signal.pause)
running.add_done_callback(print_error)
running.add_done_callback(lambda _: executor.submit(os.getpid).add_done_callback(print_error))
"""


def test_python_exits_without_waiting_for_workers_and_their_futures_raise() -> None:
    command = [sys.executable, "-c", WHILE_PYTHON_ENDS]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert (ended.returncode, ended.stdout.split(), ended.stderr) == (0, ["ShutdownError"] * 2, "")
