"""A session that lives as long as something uses it."""

from __future__ import annotations

import atexit
import threading
import weakref
from functools import cache
from queue import SimpleQueue

from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.session import Session

_dropped: SimpleQueue[Session] = SimpleQueue()
_open: weakref.WeakSet[Session] = weakref.WeakSet()


class Opened:
    """What a log, its runs and their methods share; once the last of them is gone, the session closes soon.

    Python may collect the last of them at any place, also in a thread that is just starting and holds locks that
    closing waits for. So what is collected is only handed over: a thread of its own closes it.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._collected = weakref.finalize(self, _dropped.put, session)
        self._collected.atexit = False
        _open.add(session)
        _closer()

    @property
    def session(self) -> Session:
        """Raises UsageError once it is closed."""
        if not self._collected.alive:
            raise UsageError("the log is closed", hint="open it again")
        return self._session

    def close(self) -> None:
        """Close the session here and now; once is enough."""
        if self._collected.detach() is not None:
            self._session.close()


@cache
def _closer() -> threading.Thread:
    """Closes sessions that were collected."""

    def close() -> None:
        while True:
            _dropped.get().close()

    thread = threading.Thread(target=close, name="profiler-close", daemon=True)
    thread.start()
    return thread


@atexit.register
def _close_all() -> None:
    for session in tuple(_open):
        session.close()
