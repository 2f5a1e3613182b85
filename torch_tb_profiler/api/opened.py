"""A session that lives as long as something uses it."""

from __future__ import annotations

import weakref

from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.session import Session


class Opened:
    """What a log, its runs and their methods share; the last of them closes the session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.close = weakref.finalize(self, session.close)

    @property
    def session(self) -> Session:
        """Raises UsageError once it is closed."""
        if not self.close.alive:
            raise UsageError("the log is closed", hint="open it again")
        return self._session
