"""A session that is closed once nothing uses it any more."""

from __future__ import annotations

import atexit
import threading
import weakref
from functools import cache
from queue import SimpleQueue

from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.session import Session

_unused_sessions: SimpleQueue[Session] = SimpleQueue()
_open_sessions: weakref.WeakSet[Session] = weakref.WeakSet()


class SharedSession:
    """The session that a log, its runs and their methods share; it closes soon after the last of them is gone.

    Python may collect the last of them anywhere, also in a thread that is just starting and holds locks that
    closing waits for. So collecting it only queues the session, and another thread closes it.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._finalizer = weakref.finalize(self, _unused_sessions.put, session)
        self._finalizer.atexit = False
        _open_sessions.add(session)
        _start_closing_thread()

    @property
    def session(self) -> Session:
        """Return the open session. Raises UsageError once it is closed."""
        if not self._finalizer.alive:
            raise UsageError("the log is closed", hint="open it again")
        return self._session

    def close(self) -> None:
        """Close the session now, in this thread; further calls do nothing."""
        if self._finalizer.detach() is not None:
            self._session.close()


@cache
def _start_closing_thread() -> threading.Thread:
    """Start, once, the thread that closes unused sessions."""

    def close_unused() -> None:
        while True:
            _unused_sessions.get().close()

    thread = threading.Thread(target=close_unused, name="profiler-close", daemon=True)
    thread.start()
    return thread


@atexit.register
def _close_all() -> None:
    for session in tuple(_open_sessions):
        session.close()
