"""Names in sentences."""

from __future__ import annotations

import re

_FRAME = re.compile(r"^(?:.*[/\\])?(?P<file>[^/\\]+)\((?P<line>\d+)\): (?P<function>.+)$", re.DOTALL)

SPOKEN = 48
"""Characters of a name in a sentence."""


def spoken_name(name: str) -> str:
    """A name in a sentence: cut where it is long."""
    return name if len(name) <= SPOKEN else f"{name[: SPOKEN - 1]}…"


def spoken_frame(name: str) -> str:
    """A Python frame in a sentence: `prepare_batch (train.py:42)` for `/home/me/train.py(42): prepare_batch`."""
    match = _FRAME.match(name)
    if match is None:
        return spoken_name(name)
    return f"{spoken_name(match['function'])} ({spoken_name(match['file'])}:{match['line']})"


def worker_name(rank: int | None, worker: str) -> str:
    """How one is called within a sentence: by its rank, else by its name, which may be a process id."""
    if rank is not None:
        return f"rank {rank}"
    return f"worker {worker}" if worker.isdecimal() else worker
