"""Waiting for a condition, with a bound that only a failing test reaches."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 300.0
"""Seconds. The machine may be busy with anything else, so no test relies on being quick."""

_PAUSE = 0.05


def until(ask: Callable[[], T], wanted: Callable[[T], object] = bool) -> T:
    """Ask again until the answer is what is wanted; AssertionError with the last one if it never is."""
    deadline, pause = time.monotonic() + PATIENCE, threading.Event()
    while not wanted(answer := ask()):
        assert time.monotonic() < deadline, f"not within {PATIENCE:.0f} s; the last answer was {answer!r}"
        pause.wait(_PAUSE)
    return answer
