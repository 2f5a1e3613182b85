"""What counts as a leak: blocks drawn per step, and the nearest cases that are none."""

from __future__ import annotations

import pytest

from tests.support.memory_traces import memory
from tests.support.traces import draw
from torch_tb_profiler.analyses.memory.growth import DeviceGrowth, memory_growth
from torch_tb_profiler.analyses.shared.memory_curve import memory_levels

MIB = 2**20


def grown(*blocks: tuple[int, int, int], steps: int = 6, frame: str = "", address: bool = True) -> DeviceGrowth:
    """Draw blocks (step of allocation, step of release or -1, bytes) of `aten::keep`; 100 us a step.

    A release comes before the allocations of its step. A block of 200 MiB lives before the first step.
    """
    picture = "\n".join(f"host user_annotation ProfilerStep#{i} {100 * i + 100} 100" for i in range(steps))
    picture += "\n" + "\n".join(
        f"host cpu_op aten::keep {100 * i + 130} 40\n"
        f"host python_function {frame.split()[i % 2] if frame else 'train.py(7):~step'} {100 * i + 120} 60"
        for i in range(steps)
    )
    changes = [(1, "old", 200 * MIB)]
    for number, (born, gone, size) in enumerate(blocks):
        changes.append((100 * born + 150, f"b{number}", size))
        if gone >= 0:
            changes.append((100 * gone + 110, f"b{number}", -size))
    lines, total = [], 0
    for at, name, size in sorted(changes, key=lambda change: change[0]):
        total += size
        lines.append(f"{at} CPU {name if address else '-'} {size} {total} 0")
    trace = draw(picture, *memory("\n".join(lines)))
    change = memory_growth(trace, memory_levels(trace)[0])
    assert change is not None
    return change


def each(*steps: int, life: int | None = None, size: int = 10 * MIB) -> list[tuple[int, int, int]]:
    return [(step, -1 if life is None or step + life > 5 else step + life, size) for step in steps]


LEAKS = {
    "a block of every step": each(0, 1, 2, 3, 4, 5),
    "of every second step": each(0, 2, 4),
    "of every second step, from the second on": each(1, 3, 5, 4),
    "beside a batch that varies": [*each(0, 1, 2, 3, 4, 5), *((i, i + 1, (40 - 7 * i) * MIB) for i in range(5))],
    "beside what the same step drops": [*each(1, 2, 3, 4, 5), (1, 4, 9 * MIB)],
    "beside what the first step made and drops": [*each(1, 2, 3, 4, 5), (0, 3, 50 * MIB), (2, 5, 9 * MIB)],
}

NONE = {
    "a batch that grows": [(i, i + 1, (i + 1) * 20 * MIB) for i in range(5)],
    "two batches ahead": each(0, 1, 2, 3, 4, 5, life=2),
    "a window over four steps": each(0, 1, 2, 3, 4, 5, life=4),
    "what the first step makes": [(0, -1, 10 * MIB)] * 5,
    "two steps": each(1, 2),
    "a cache that is full": each(0, 1, 2),
    "what the last two steps leave": each(3, 4, 5),
}


@pytest.mark.parametrize("blocks", LEAKS.values(), ids=LEAKS)
def test_blocks_of_three_steps_that_outlive_two_are_a_leak(blocks: list[tuple[int, int, int]]) -> None:
    change = grown(*blocks)
    assert change.growing
    (holder,) = change.holders
    unreleased = [block for block in blocks if block[1] < 0]
    assert (holder.name, holder.growth, holder.blocks) == (
        "aten::keep",
        len(unreleased) * 10 * MIB,
        len(unreleased),
    )
    assert holder.born == len({born for born, _, _ in unreleased})
    assert holder.live.tolist() == [sum(10 * MIB for born, _, _ in unreleased if born <= i) for i in range(6)]


@pytest.mark.parametrize("blocks", NONE.values(), ids=NONE)
def test_what_is_released_or_stops_is_no_leak(blocks: list[tuple[int, int, int]]) -> None:
    change = grown(*blocks)
    assert (change.growing, change.negligible, change.holders, change.per_step) == (False, False, (), None)


def test_the_live_memory_of_a_batch_that_grows_is_larger_at_every_end() -> None:
    """What was called a leak before blocks were followed."""
    live = grown(*NONE["a batch that grows"], steps=5).live
    assert (live[1:] > live[:-1]).all()


def test_bytes_per_step_are_counted_since_the_first_block_that_stays() -> None:
    assert grown(*each(0, 2, 4)).per_step == 5 * MIB
    assert grown(*each(2, 3, 4, 5)).per_step == 10 * MIB


def test_blocks_of_one_operator_from_two_places_count_apart() -> None:
    """Each place has three steps; of one with two steps nothing would be said."""
    holders = grown(*each(0, 1, 2, 3, 4, 5), steps=7, frame="a.py(1):~f b.py(1):~g").holders
    assert [(holder.blocks, holder.born) for holder in holders] == [(3, 3), (3, 3)]
    assert not grown(*each(0, 1, 2, 3), frame="a.py(1):~f b.py(1):~g").growing


@pytest.mark.parametrize(("size", "growing"), [(35_000, True), (34_000, False)])
def test_a_thousandth_of_the_peak_is_negligible(size: int, growing: bool) -> None:
    change = grown(*each(0, 1, 2, 3, 4, 5, size=size))
    assert (change.growing, change.negligible) == (growing, not growing)


def test_four_steps_are_enough_and_three_are_not() -> None:
    assert grown(*each(0, 1, 2, 3), steps=4).growing
    assert not grown(*each(0, 1, 2), steps=3).growing


def test_blocks_from_before_the_first_step_do_not_count() -> None:
    steps = "\n".join(f"host user_annotation ProfilerStep#{i} {100 * i + 100} 100" for i in range(4))
    events = memory("50 CPU a 10 10 0\n250 CPU b 10 20 0\n350 CPU c 10 30 0\n450 CPU d 10 40 0")
    trace = draw(f"host cpu_op start 0 1\n{steps}", *events)
    change = memory_growth(trace, memory_levels(trace)[0])
    assert change is not None and not change.growing


def test_without_addresses_nobody_knows_what_stays() -> None:
    change = grown(*each(0, 1, 2, 3, 4, 5), address=False)
    assert (change.traced, change.growing) == (False, False)


def test_a_record_at_the_very_end_of_a_step_counts_for_it() -> None:
    trace = draw(
        "host user_annotation ProfilerStep#0 0 100\nhost user_annotation ProfilerStep#1 100 100",
        *memory("100 CPU a 8 8 0\n201 CPU b 8 16 0"),
    )
    change = memory_growth(trace, memory_levels(trace)[0])
    assert change is not None and change.live.tolist() == [8, 8]


def test_growth_is_unknown_where_the_first_events_have_no_totals() -> None:
    steps = "\n".join(f"host user_annotation ProfilerStep#{i} {100 * i} 100" for i in range(3))
    events = memory("20 CPU a 10 - -\n120 CPU b 10 20 0\n220 CPU c 10 30 0")
    trace = draw(steps, *events)
    assert memory_growth(trace, memory_levels(trace)[0]) is None
