"""Waiting for what is read in the background."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from torch_tb_profiler.session.state import FileState

T = TypeVar("T")

PATIENCE_SECONDS = 0.5
"""How long one question waits before its state is looked at: a terminal wants to see progress, and Ctrl-C."""


def wait_for(
    ask: Callable[[], tuple[FileState, T | None]], show: Callable[[FileState], None] = lambda _: None
) -> T:
    """Ask until a file is ready; `ask` waits at most `PATIENCE_SECONDS`, `show` is called after each time.

    Raises ProfilerError if the file failed.
    """
    while True:
        state, answer = ask()
        if answer is not None:
            return answer
        if state.state not in ("waiting", "loading"):
            assert state.error is not None
            raise state.error.exception()
        show(state)
