"""Laws of memory against a simple model: a dictionary of open addresses, replayed event by event."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.traces import draw
from torch_tb_profiler.analyses.shared.memory_curve import memory_levels
from torch_tb_profiler.model.memory.blocks import memory_blocks
from torch_tb_profiler.model.memory.events import memory_names, memory_records
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views.memory.build import build
from torch_tb_profiler.views.memory.curve import MemoryCurveParams, build_curve
from torch_tb_profiler.views.memory.tables import (
    EventsParams,
    LiveParams,
    MemoryOperatorsParams,
    build_events,
    build_live,
    build_operators,
)

CALLS = """
host  user_annotation  ProfilerStep#1    0  20
host  user_annotation  ProfilerStep#2   20  20
host  user_annotation  ProfilerStep#3   40  20
host  cpu_op           aten::linear      5  15
host  cpu_op           aten::empty       8   4
host  cpu_op           aten::linear     30  20
host  cpu_op           aten::linear     35  10
host2 cpu_op           aten::relu       10  30
"""

Move = tuple[int, int, int, int, int]
MOVES = st.lists(
    st.tuples(
        st.integers(0, 62),  # time
        st.integers(0, 1),  # device
        st.integers(0, 3),  # address
        st.integers(-40, 40),  # size
        st.integers(1, 2),  # thread
    ),
    min_size=1,
    max_size=40,
)


def draw_moves(moves: list[Move]) -> Trace:
    """Return a trace of these events; the totals are right, the releases may make no sense."""
    totals: defaultdict[int, int] = defaultdict(lambda: 1000)
    events: list[dict[str, object]] = []
    for time, device, address, size, thread in sorted(moves, key=lambda move: move[0]):
        totals[device] += size
        args = {"Device Type": device, "Device Id": device - 1, "Addr": address, "Bytes": size,
                "Total Allocated": totals[device], "Total Reserved": 2000 * device}  # fmt: skip
        events.append(
            {"ph": "i", "s": "t", "name": "[memory]", "pid": 1, "tid": thread, "ts": float(time), "args": args}
        )
    return draw(CALLS, *events)


def replay(trace: Trace, device: int, until: int) -> tuple[dict[int, int], int]:
    """Return (size by open address, recorded total) after the events up to a time."""
    records = memory_records(trace)
    open_: dict[int, int] = {}
    total = 1000
    for i in np.flatnonzero((records.device == device) & (records.time <= until)).tolist():
        size, address = int(records.size[i]), int(records.address[i])
        total = int(records.allocated[i])
        if size > 0:
            open_[address] = size
        elif size < 0:
            open_.pop(address, None)
    return open_, total


@given(MOVES, st.integers(0, 62), st.sampled_from(["operator", "module", "stack", "size"]))
@settings(deadline=None)
def test_the_live_set_is_what_a_replay_leaves_open(moves: list[Move], time: int, group_by: Any) -> None:
    trace = draw_moves(moves)
    for code, device in enumerate(memory_records(trace).devices):
        at = time * 1000 - trace.trace_start_ns
        open_, total = replay(trace, code, at)
        live = build_live(trace, LiveParams(device.name, at=at, group_by=group_by))
        assert live.known_bytes == sum(open_.values()) == sum(row.bytes for row in live.rows)
        assert live.blocks == len(open_) == sum(row.blocks for row in live.rows)
        older = total - live.known_bytes
        assert live.older_bytes == (older if older >= 0 else None)
        listed = build_events(trace, EventsParams(device.name, at=at))
        assert (listed.total, listed.total_bytes) == (live.blocks, live.known_bytes)


@given(MOVES, st.integers(1, 9), st.integers(0, 62), st.integers(0, 62))
@settings(deadline=None)
def test_samples_bound_every_event_and_reach_every_peak(moves: list[Move], points: int, a: int, b: int) -> None:
    trace = draw_moves(moves)
    begin, end = (each * 1000 - trace.trace_start_ns for each in sorted((a, b)))
    for level in memory_levels(trace):
        curve = build_curve(trace, MemoryCurveParams(level.device.name, begin, end, points))
        inside = (level.time >= begin) & (level.time <= end)
        held = level.allocated[level.time < begin][-1:]
        values = np.concatenate([held, level.allocated[inside]])
        assert (curve.peak_allocated is None) == (len(values) == 0)
        if curve.peak_allocated is not None:
            assert curve.peak_allocated.bytes == values.max() == np.nanmax(np.frombuffer(curve.allocated_max))
            assert values.min() == np.nanmin(np.frombuffer(curve.allocated_min))
            assert np.frombuffer(curve.allocated_last)[-1] == values[-1]
        assert curve.events == inside.sum()
        assert len(curve.time) <= 8 * (points + 1)


@given(MOVES)
@settings(deadline=None)
def test_every_event_is_in_one_block_and_every_page_is_part_of_the_table(moves: list[Move]) -> None:
    trace = draw_moves(moves)
    blocks, records = memory_blocks(trace), memory_records(trace)
    used = np.concatenate([blocks.allocation[blocks.allocation >= 0], blocks.release[blocks.release >= 0]])
    assert sorted(used.tolist()) == np.flatnonzero(records.size).tolist()
    for device in records.devices:
        whole = build_events(trace, EventsParams(device.name, sort="size"))
        sizes = [row.size_bytes for row in whole.rows]
        assert sizes == sorted(sizes, reverse=True) and len(sizes) == whole.total
        pages = [build_events(trace, EventsParams(device.name, first=at, limit=3)).rows
                 for at in range(0, whole.total, 3)]  # fmt: skip
        assert [row for page in pages for row in page] == whole.rows


@given(MOVES, st.one_of(st.none(), st.tuples(st.integers(0, 62), st.integers(0, 62))))
@settings(deadline=None)
def test_operators_and_the_rest_add_up_to_all_events(moves: list[Move], part: tuple[int, int] | None) -> None:
    trace = draw_moves(moves)
    begin, end = (each * 1000 - trace.trace_start_ns for each in sorted(part)) if part else (None, None)
    for level in memory_levels(trace):
        sizes = memory_records(trace).size[level.positions]
        if begin is not None and end is not None:
            sizes = sizes[(level.time >= begin) & (level.time <= end)]
        table = build_operators(trace, MemoryOperatorsParams(level.device.name, begin, end))
        rest = table.outside
        assert sum(row.self_size_increase_bytes for row in table.rows) + rest.size_increase_bytes == sizes.sum()
        assert sum(row.self_allocation_count for row in table.rows) + rest.allocation_count == (sizes > 0).sum()
        allocated = sum(row.self_allocation_size_bytes for row in table.rows) + rest.allocation_size_bytes
        assert allocated == sizes[sizes > 0].sum()
        assert all(row.allocation_count >= row.self_allocation_count for row in table.rows)


@given(MOVES)
@settings(deadline=None)
def test_holders_explain_growth(moves: list[Move]) -> None:
    """What lives at each step's end is that of a replay; of it holders have blocks that all outlive the trace."""
    trace = draw_moves(moves)
    payload = build(trace, NoParams())
    codes, texts = memory_names(trace)
    for code, grown in enumerate(payload.growth):
        ends = [step.end_ns for step in payload.steps]
        assert grown.live_bytes == [replay(trace, code, end)[1] for end in ends]
        assert grown.growing == bool(grown.holders)
        for holder in grown.holders:
            live = []
            for end in ends:
                position = int(np.searchsorted(memory_records(trace).time, end, "right")) - 1
                blocks = memory_blocks(trace)
                open_ = blocks.live_after(position) & (memory_records(trace).device[blocks.allocation] == code)
                names = [texts[c] if c >= 0 else None for c in codes[blocks.allocation[open_]].tolist()]
                live.append(sum(size for size, name in zip(blocks.size[open_].tolist(), names, strict=True)
                                if name == holder.name))  # fmt: skip
            steps = holder.step_bytes
            assert steps == sorted(steps) and holder.growth_bytes == steps[-1] > 0
            assert all(held <= there for held, there in zip(steps, live, strict=True))


def test_the_replay_is_no_copy_of_what_it_checks() -> None:
    trace = draw_moves([(1, 1, 0, 10, 1), (2, 1, 0, -10, 1), (3, 1, 1, 5, 1), (4, 1, 1, 6, 1), (5, 1, 2, -7, 1)])
    expected: dict[int, Any] = {1: ({0: 10}, 1010), 2: ({}, 1000), 3: ({1: 5}, 1005), 5: ({1: 6}, 1004)}
    for time, state in expected.items():
        assert replay(trace, 0, time * 1000 - trace.trace_start_ns) == state
