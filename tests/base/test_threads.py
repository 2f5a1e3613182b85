"""What is started in a thread runs on lent ones, and in turn without any."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.waiting import PATIENCE
from torch_tb_profiler.base.threads import lend_threads, start_in_thread


def fail() -> int:
    raise ValueError("a column is missing")


def test_work_runs_while_what_started_it_goes_on_and_starts_more() -> None:
    begun, threads = threading.Event(), []

    def inner() -> str:
        threads.append(threading.current_thread())
        return "counted"

    def outer() -> str:
        begun.set()
        threads.append(threading.current_thread())
        return start_in_thread(inner)()

    with ThreadPoolExecutor(2) as pool, lend_threads(pool):
        result = start_in_thread(outer)
        assert begun.wait(PATIENCE)  # before anybody asks
        assert result() == "counted"
    assert len({*threads, threading.current_thread()}) == 3


def test_without_threads_work_is_done_once_it_is_asked_for() -> None:
    threads: list[threading.Thread] = []
    with ThreadPoolExecutor(1) as pool:
        with lend_threads(pool):
            pass
        result = start_in_thread(lambda: threads.append(threading.current_thread()))
        assert not threads
        result()
    assert threads == [threading.current_thread()]


@pytest.mark.parametrize("lent", [True, False])
def test_an_exception_reaches_who_asks(lent: bool) -> None:
    with ThreadPoolExecutor(1) as pool, lend_threads(pool if lent else None):
        result = start_in_thread(fail)
        with pytest.raises(ValueError, match="a column is missing"):
            result()
