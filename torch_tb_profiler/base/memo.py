"""What was derived from an immutable value, kept beside it."""

from __future__ import annotations

from collections.abc import Hashable
from threading import RLock
from typing import Any


class Memo(dict[Hashable, Any]):
    """Tables derived from one trace, by name and arguments. They stay in their process: a copy has none."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = RLock()

    def __reduce__(self) -> tuple[type[Memo], tuple[()]]:
        return Memo, ()
