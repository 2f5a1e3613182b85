"""How far the files of a job are read."""

from __future__ import annotations

from typing import TypeVar

from torch_tb_profiler.base.grammar import plural
from torch_tb_profiler.view import Members
from torch_tb_profiler.views._shared.text import Text, text

T = TypeVar("T")


def coming(members: Members[T]) -> int:
    """How many traces are still to be read."""
    return sum(member.state in ("waiting", "loading") for member in members)


def still_read(members: Members[T]) -> Text:
    """So many of all; nothing once all are read."""
    count = coming(members)
    if not count:
        return ()
    return text(
        "{count} of {all} {are} still being read",
        are="is" if count == 1 else "are",
        count=f"{count:,}",
        all=plural(len(members), "trace"),
    )
