"""What process groups are called."""

from __future__ import annotations

from torch_tb_profiler.model.communication.groups import ProcessGroup

MOST_TEXT = 60


def group_label(group: ProcessGroup, code: int) -> str:
    """By description or name; `code`: its id."""
    known = group.description or group.name
    return known or ("the whole job" if group.assumed else f"group {code}")


def spelled_ranks(group: ProcessGroup) -> str | None:
    """In short: of a long uneven list the first and the last; None if unknown."""
    if group.ranks is None or len(group.ranks) <= MOST_TEXT:
        return group.ranks
    first, last = group.ranks.partition(",")[0], group.ranks.rpartition(",")[2]
    return f"{first}, ..., {last}"
