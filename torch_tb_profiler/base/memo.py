"""What was derived from an immutable value, kept beside it."""

from __future__ import annotations

from collections.abc import Hashable
from threading import Lock, RLock
from typing import Any


class Memo(dict[Hashable, Any]):
    """Tables derived from one trace, by name and arguments. They stay in their process: a copy has none."""

    def __init__(self) -> None:
        super().__init__()
        self._guard = Lock()
        self._locks: dict[Hashable, Any] = {}

    def lock_of(self, key: Hashable) -> Any:
        """Whoever derives a table holds its lock, and those of the tables that it rests on while they are derived.

        Each has its own, so that what is asked now does not wait for what is derived behind a tab. Nobody waits
        for ever: tables do not rest on each other in a circle.
        """
        with self._guard:
            return self._locks.setdefault(key, RLock())

    def __reduce__(self) -> tuple[type[Memo], tuple[()]]:
        return Memo, ()
