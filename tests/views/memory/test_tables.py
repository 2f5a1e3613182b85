from __future__ import annotations

import pytest

from tests.support.memory_traces import three_steps
from torch_tb_profiler.views.memory.tables import (
    EventsParams,
    LiveParams,
    MemoryOperatorsParams,
    build_events,
    build_live,
    build_operators,
)


def test_live_at_the_peak_with_what_is_older() -> None:
    live = build_live(three_steps(), LiveParams())
    assert (live.time_ns, live.allocated_bytes, live.reserved_bytes) == (120_000, 2612, 8192)
    assert live.known_bytes == 1812 and live.older_bytes == 800 and live.older_released_bytes == 0
    assert [(row.name, row.blocks, row.bytes) for row in live.rows] == [
        ("aten::relu", 2, 1300),
        ("aten::linear (aten::empty)", 1, 512),
    ]
    assert sum(row.share or 0 for row in live.rows) == pytest.approx(1812 / 2612)
    early = build_live(three_steps(), LiveParams(at=60_500))
    assert (early.known_bytes, early.older_bytes, early.older_released_bytes) == (512, 1000, 200)
    before = build_live(three_steps(), LiveParams(at=0))
    assert (before.known_bytes, before.older_bytes, before.allocated_bytes) == (0, 1000, None)


def test_live_in_a_window_is_live_at_its_peak() -> None:
    live = build_live(three_steps(), LiveParams(begin=0, end=100_000))
    assert (live.time_ns, live.allocated_bytes) == (30_000, 1612)


def test_live_by_module_stack_and_size() -> None:
    by = {
        group: build_live(three_steps(), LiveParams(group_by=group)).rows for group in ("module", "stack", "size")
    }
    assert [(row.name, row.bytes) for row in by["module"]] == [(None, 1300), ("Linear_0", 512)]
    assert [(row.name, len(row.frames), row.bytes) for row in by["stack"]] == [
        ("train.py(7): step", 1, 1300),
        ("nn.Module: Linear_0", 2, 512),
    ]
    assert [(row.size_bytes, row.blocks) for row in by["size"]] == [(1000, 1), (512, 1), (300, 1)]
    assert [row.name for row in build_live(three_steps(), LiveParams(group_by="size", first=1, limit=1)).rows] == [
        None
    ]


def test_events_say_who_allocated_and_how_long_it_lived() -> None:
    table = build_events(three_steps(), EventsParams(sort="allocated", descending=False))
    rows = [(r.operator, r.size_bytes, r.allocated_ns, r.released_ns, r.duration_ns, r.state) for r in table.rows]
    assert rows == [
        ("aten::linear (aten::empty)", 512, 20_000, None, None, "unreleased"),
        ("aten::linear", 100, 30_000, 60_000, 30_000, "released"),
        ("aten::relu", 300, 115_000, None, None, "unreleased"),
        ("aten::relu", 1000, 120_000, 150_000, 30_000, "released"),
        ("aten::relu", 300, 215_000, None, None, "unreleased"),
        (None, 200, None, 61_000, None, "older"),
    ]
    assert (table.total, table.total_bytes) == (6, 2412)


@pytest.mark.parametrize(
    ("params", "sizes"),
    [
        (EventsParams(), [1000, 512, 300, 300, 200, 100]),
        (EventsParams(first=1, limit=2), [512, 300]),
        (EventsParams(search="LINEAR"), [512, 100]),
        (EventsParams(operator="aten::linear"), [100]),
        (EventsParams(operator="aten::empty"), [512]),
        (EventsParams(operator="aten::linear (aten::empty)"), [512]),
        (EventsParams(state="older"), [200]),
        (EventsParams(begin=100_000, end=115_000), [300]),
        (EventsParams(begin=60_000, end=61_000), [200, 100]),
        (EventsParams(at=120_000), [1000, 512, 300]),
        (EventsParams(sort="duration"), [100, 1000, 512, 200, 300, 300]),
        (EventsParams(sort="operator", descending=False, limit=2), [100, 512]),
        (EventsParams(sort="released", limit=3), [1000, 200, 100]),
    ],
)
def test_events_are_filtered_sorted_and_paged(params: EventsParams, sizes: list[int]) -> None:
    assert [row.size_bytes for row in build_events(three_steps(), params).rows] == sizes


def test_statistics_of_operators() -> None:
    table = build_operators(three_steps(), MemoryOperatorsParams())
    rows = {
        row.name: (
            row.calls, row.size_increase_bytes, row.self_size_increase_bytes, row.allocation_count,
            row.self_allocation_count, row.allocation_size_bytes, row.self_allocation_size_bytes,
        )
        for row in table.rows
    }  # fmt: skip
    assert rows == {
        "aten::relu": (2, 1600, 1600, 3, 3, 1600, 1600),
        "aten::empty": (1, 512, 512, 1, 1, 512, 512),
        "aten::linear": (1, 612, 100, 2, 1, 612, 100),
    }
    assert (table.outside.size_increase_bytes, table.outside.allocation_count) == (-1300, 0)


def test_statistics_of_a_range() -> None:
    table = build_operators(three_steps(), MemoryOperatorsParams(begin=25_000, end=116_000))
    assert [(row.name, row.calls, row.allocation_size_bytes) for row in table.rows] == [
        ("aten::relu", 1, 300),
        ("aten::linear", 1, 100),
    ]
