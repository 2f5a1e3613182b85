"""What is stored is derived once, whatever it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from torch_tb_profiler.base.memo import MemoizedStruct, stored


class StoredTables:
    """A store of tables in memory."""

    prepares = False

    def __init__(self) -> None:
        self.tables: dict[str, object] = {}

    def load(self, name: str, type_of: Callable[[], Any]) -> tuple[Any] | None:
        return (self.tables[name],) if name in self.tables else None

    def save(self, name: str, table: object) -> None:
        self.tables[name] = table


@pytest.mark.parametrize("found", [3, 0, None])
def test_a_table_is_derived_once_for_all_processes_even_if_it_is_none(found: int | None) -> None:
    derived = []

    @stored
    def first_step(trace: MemoizedStruct) -> int | None:
        derived.append(trace)
        return found

    store = StoredTables()
    for trace in (MemoizedStruct(), MemoizedStruct()):  # as two processes open it
        trace._memo.store = store
        assert first_step(trace) == first_step(trace) == found
    assert len(derived) == 1
