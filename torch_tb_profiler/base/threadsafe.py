"""Types that several threads may decode at once.

msgspec examines a Struct or a dataclass when a value of it is first decoded, and shares what it has found before
that is complete, because types may contain themselves. A thread that decodes the same type meanwhile ends the
process with a segmentation fault (msgspec 0.22). Here a type is examined before anybody can decode it, by one
thread at a time.
"""

from __future__ import annotations

from threading import Lock
from typing import TypeVar

import msgspec

T = TypeVar("T")

_LOCK = Lock()
_EXAMINED: set[object] = set()


def threadsafe(type_: T) -> T:
    """Return this type, examined with all types that its fields have."""
    if type_ not in _EXAMINED:
        with _LOCK:
            msgspec.msgpack.Decoder(type_)
            _EXAMINED.add(type_)
    return type_
