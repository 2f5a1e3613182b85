"""Turns: requests for one view of one trace are answered one at a time, and only while somebody waits.

Whoever types into a filter sends a request at every pause, and the page gives up the ones before. Without turns,
each of them would be computed to its end beside the last one, which is the only one that is read.
"""

from __future__ import annotations

import selectors
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

Key = tuple[str | None, ...]
"""What requests have in common that take turns: the path, and the names of the trace."""


@dataclass
class _Turn:
    """Who holds the lock is answered; `count` requests hold it or wait for it."""

    lock: Lock = field(default_factory=Lock)
    count: int = 0


class Turns:
    """Lets one request of each key work at a time."""

    def __init__(self) -> None:
        self._turns: dict[Key, _Turn] = {}
        self._guard = Lock()

    @contextmanager
    def take(self, key: Key) -> Iterator[None]:
        """Wait until the requests of this key that came before are answered."""
        with self._guard:
            turn = self._turns.setdefault(key, _Turn())
            turn.count += 1
        try:
            with turn.lock:
                yield
        finally:
            with self._guard:
                turn.count -= 1
                if turn.count == 0:
                    del self._turns[key]

    def count(self, key: Key) -> int:
        """Return how many requests of a key are answered or wait."""
        with self._guard:
            turn = self._turns.get(key)
            return 0 if turn is None else turn.count


def is_abandoned(environ: Mapping[str, Any]) -> bool:
    """Return whether the client of a request has closed its connection, as far as the server shows it.

    Servers of werkzeug, such as TensorBoard's, put it into the environment. A client that waits sends nothing, so
    what can be read is the end.
    """
    connection = environ.get("werkzeug.socket")
    if type(connection) is not socket.socket:  # an encrypted one can't be looked into
        return False
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(connection, selectors.EVENT_READ)
            return bool(selector.select(0)) and connection.recv(1, socket.MSG_PEEK) == b""
    except (OSError, ValueError):  # closed on this side, too
        return True
