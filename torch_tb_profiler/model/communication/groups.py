"""Process groups: which ranks communicate. A name alone does not tell a group: several may share one."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.ranks import trace_rank
from torch_tb_profiler.model.trace import Trace

_ELIDED = re.compile(r"^\[\s*(\d+(?:\s*,\s*\d+)*)\s*,\s*\.\.\.\s*,\s*(\d+)\s*\]$")


MOST_RANKS = 2**20
"""No job has more: a larger number is damage."""


class ProcessGroup(msgspec.Struct, frozen=True):
    """A group as a trace describes it.

    name, description  None if not recorded
    ranks    as `spell_ranks` writes them, None if unknown
    size     None if unknown
    assumed  nothing recorded with the operation says so: it is the only group that it can be
    """

    name: str | None
    description: str | None
    ranks: str | None
    size: int | None
    assumed: bool = False


UNKNOWN = ProcessGroup(None, None, None, None)


def spell_ranks(ranks: Sequence[int]) -> str:
    """Ranks in short, in ascending order: "0-7", every second one "0-6/2", "0,1,5"."""
    ordered = sorted(set(ranks))
    if len(ordered) > 2:
        stride = ordered[1] - ordered[0]
        if ordered == list(range(ordered[0], ordered[-1] + 1, stride)):
            return f"{ordered[0]}-{ordered[-1]}" + (f"/{stride}" if stride > 1 else "")
    return ",".join(map(str, ordered))


def unspell_ranks(text: str) -> list[int]:
    """The ranks that `spell_ranks` wrote."""
    match = re.fullmatch(r"(\d+)-(\d+)(?:/(\d+))?", text)
    if match:
        return list(range(int(match[1]), int(match[2]) + 1, int(match[3] or 1)))
    return [int(part) for part in text.split(",")] if text else []


def read_ranks(value: object, size: int | None = None) -> str | None:
    """Ranks as a trace writes them: `[0, 1]`, as a text, or with the middle left out (`[0, 1, ..., 7]`).

    What is left out is filled in where one even stride gives `size` ranks; None if it cannot be told.
    """
    if isinstance(value, str):
        elided = _ELIDED.match(value.strip())
        if elided:
            return _fill([int(part) for part in elided[1].split(",")], int(elided[2]), size)
        try:
            value = json.loads(value)
        except ValueError:
            return None
    if isinstance(value, list) and value and all(type(each) is int and 0 <= each < 2**31 for each in value):
        return spell_ranks(value)
    return None


def _fill(begin: list[int], last: int, size: int | None) -> str | None:
    stride = begin[1] - begin[0] if len(begin) > 1 else 1
    if stride < 1 or (last - begin[0]) // stride >= MOST_RANKS:
        return None
    filled = list(range(begin[0], last + 1, stride))
    fits = filled[: len(begin)] == begin and filled[-1] == last and len(filled) == size
    return spell_ranks(filled) if fits else None


@derived
def configured_groups(trace: Trace) -> tuple[tuple[ProcessGroup, str], ...]:
    """(group, back ends) of each group of this rank that `distributedInfo.pg_config` lists."""
    info = trace.metadata.get("distributedInfo")
    listed = info.get("pg_config") if isinstance(info, Mapping) else None
    own = trace_rank(trace)
    groups = []
    for entry in listed if isinstance(listed, list) else []:
        if isinstance(entry, Mapping):
            size = _size(entry.get("pg_size"))
            ranks = read_ranks(entry.get("ranks"), size)
            if own is None or ranks is None or own in unspell_ranks(ranks):
                group = ProcessGroup(_text(entry.get("pg_name")), _text(entry.get("pg_desc")), ranks, size)
                groups.append((group, str(entry.get("backend_config", entry.get("backend", ""))).lower()))
    return tuple(groups)


def sole_group(trace: Trace, backend: str | None) -> ProcessGroup:
    """The only group that an operation of a back end can belong to; UNKNOWN if there are several.

    A job that lists no groups has the one of all its ranks.
    """
    groups = [group for group, config in configured_groups(trace) if backend is None or backend in config]
    groups = groups or [group for group, _ in configured_groups(trace)]
    if len(groups) == 1:
        one = groups[0]
        return ProcessGroup(one.name, one.description, one.ranks, one.size, assumed=True)
    info = trace.metadata.get("distributedInfo")
    world = _size(info.get("world_size")) if isinstance(info, Mapping) else None
    if groups or world is None:
        return UNKNOWN
    return ProcessGroup(None, None, spell_ranks(range(world)), world, assumed=True)


def _size(value: Any) -> int | None:
    return value if type(value) is int and 0 < value <= MOST_RANKS else None


def _text(value: Any) -> str | None:
    return str(value) if isinstance(value, (str, int)) and str(value) else None
