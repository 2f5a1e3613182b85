"""Process groups: which ranks communicate. Several groups may have the same name."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.model.ranks import trace_rank
from torch_tb_profiler.model.trace import Trace

_ELIDED = lazy_regex(r"^\[\s*(\d+(?:\s*,\s*\d+)*)\s*,\s*\.\.\.\s*,\s*(\d+)\s*\]$")

MAX_RANKS = 2**20
"""Most ranks that a job can have; a larger number is damage."""


class ProcessGroup(msgspec.Struct, frozen=True):
    """A group as a trace describes it.

    name, description  None if not recorded
    ranks    as `format_ranks` writes them, None if unknown
    size     None if unknown
    assumed  not recorded with the operation, but the only group that it can belong to
    """

    name: str | None
    description: str | None
    ranks: str | None
    size: int | None
    assumed: bool = False


UNKNOWN_GROUP = ProcessGroup(None, None, None, None)


def format_ranks(ranks: Sequence[int]) -> str:
    """Return ranks in short, in ascending order: "0-7", every second one "0-6/2", "0,1,5"."""
    ordered = sorted(set(ranks))
    if len(ordered) > 2:
        stride = ordered[1] - ordered[0]
        if ordered == list(range(ordered[0], ordered[-1] + 1, stride)):
            return f"{ordered[0]}-{ordered[-1]}" + (f"/{stride}" if stride > 1 else "")
    return ",".join(map(str, ordered))


def parse_ranks(text: str) -> list[int]:
    """Parse the ranks that `format_ranks` wrote."""
    if "-" in text and (match := re.fullmatch(r"(\d+)-(\d+)(?:/(\d+))?", text)):
        return list(range(int(match[1]), int(match[2]) + 1, int(match[3] or 1)))
    return [int(part) for part in text.split(",")] if text else []


def parse_recorded_ranks(value: object, size: int | None = None) -> str | None:
    """Parse ranks as a trace writes them and return them as `format_ranks` does, or None if they are unknown.

    A trace has a list, its text, or a text without the middle (`[0, 1, ..., 7]`), which is filled in if one even
    stride gives `size` ranks.
    """
    if isinstance(value, str):
        elided = _ELIDED.match(value.strip()) if "..." in value else None
        if elided:
            return _fill_elided([int(part) for part in elided[1].split(",")], int(elided[2]), size)
        try:
            value = json.loads(value)
        except ValueError:
            return None
    if isinstance(value, list) and value and all(type(each) is int and 0 <= each < 2**31 for each in value):
        return format_ranks(value)
    return None


def _fill_elided(begin: list[int], last: int, size: int | None) -> str | None:
    stride = begin[1] - begin[0] if len(begin) > 1 else 1
    if stride < 1 or (last - begin[0]) // stride >= MAX_RANKS:
        return None
    filled = list(range(begin[0], last + 1, stride))
    is_consistent = filled[: len(begin)] == begin and filled[-1] == last and len(filled) == size
    return format_ranks(filled) if is_consistent else None


@derived
def configured_groups(trace: Trace) -> tuple[tuple[ProcessGroup, str], ...]:
    """Return (group, back ends) of each group of this rank that `distributedInfo.pg_config` lists."""
    info = trace.metadata.get("distributedInfo")
    listed = info.get("pg_config") if isinstance(info, Mapping) else None
    own = trace_rank(trace)
    groups = []
    for entry in listed if isinstance(listed, list) else []:
        if isinstance(entry, Mapping):
            size = _valid_size(entry.get("pg_size"))
            ranks = parse_recorded_ranks(entry.get("ranks"), size)
            if own is None or ranks is None or own in parse_ranks(ranks):
                group = ProcessGroup(
                    _text_or_none(entry.get("pg_name")), _text_or_none(entry.get("pg_desc")), ranks, size
                )
                groups.append((group, str(entry.get("backend_config", entry.get("backend", ""))).lower()))
    return tuple(groups)


def sole_group(trace: Trace, backend: str | None) -> ProcessGroup:
    """Return the only group that an operation of a back end can belong to, or UNKNOWN_GROUP if there are several.

    A job that lists no groups has one of all its ranks.
    """
    groups = [group for group, config in configured_groups(trace) if backend is None or backend in config]
    groups = groups or [group for group, _ in configured_groups(trace)]
    if len(groups) == 1:
        group = groups[0]
        return ProcessGroup(group.name, group.description, group.ranks, group.size, assumed=True)
    info = trace.metadata.get("distributedInfo")
    world = _valid_size(info.get("world_size")) if isinstance(info, Mapping) else None
    if groups or world is None:
        return UNKNOWN_GROUP
    return ProcessGroup(None, None, format_ranks(range(world)), world, assumed=True)


def _valid_size(value: Any) -> int | None:
    return value if type(value) is int and 0 < value <= MAX_RANKS else None


def _text_or_none(value: Any) -> str | None:
    return str(value) if isinstance(value, (str, int)) and str(value) else None
