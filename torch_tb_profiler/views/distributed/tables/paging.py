"""A page of rows: which a search keeps, in which order."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import msgspec

from torch_tb_profiler.base.format import natural_sort_key

R = TypeVar("R", bound=msgspec.Struct)

_RANK = re.compile(r"(?:rank\s*)?([0-9]{1,9})", re.IGNORECASE)


class Asked(Protocol):
    """What the parameters of these tables share."""

    @property
    def sort(self) -> str: ...
    @property
    def descending(self) -> bool: ...
    @property
    def search(self) -> str: ...
    @property
    def rows(self) -> slice: ...


def page(rows: Sequence[R], asked: Asked, names: Callable[[R], Sequence[str | None]]) -> tuple[list[R], int]:
    """(the rows of the page, how many the search keeps); `names`: what a search looks through."""
    kept = _ordered(_found(rows, asked.search.strip(), names), asked.sort, asked.descending)
    return kept[asked.rows], len(kept)


def _found(rows: Sequence[R], search: str, names: Callable[[R], Sequence[str | None]]) -> Sequence[R]:
    number = _RANK.fullmatch(search)
    if number:
        of_rank = [row for row in rows if getattr(row, "rank", None) == int(number[1])]
        if of_rank:
            return of_rank
    wanted = search.lower()
    return [row for row in rows if any(wanted in name.lower() for name in names(row) if name)] if wanted else rows


def _ordered(rows: Sequence[R], sort: str, descending: bool) -> list[R]:
    """Rows that lack the value last, as they were."""
    known = [row for row in rows if getattr(row, sort) is not None]
    texts = any(isinstance(getattr(row, sort), str) for row in known[:1])
    known.sort(
        key=lambda row: natural_sort_key(getattr(row, sort)) if texts else getattr(row, sort), reverse=descending
    )
    return [*known, *(row for row in rows if getattr(row, sort) is None)]
