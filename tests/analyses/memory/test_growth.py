"""When memory that lives at the ends of steps counts as growth."""

from __future__ import annotations

import pytest

from tests.support.memory_events import memory
from tests.support.traces import draw
from torch_tb_profiler.analyses.memory.growth import Growth, growth
from torch_tb_profiler.analyses.shared.memory_curve import levels


def grown(*ends: int, peak: int = 0) -> Growth:
    """A step of 100 us per number; so many bytes live at its end. A block of `peak` bytes lives before them."""
    picture = "\n".join(f"host user_annotation ProfilerStep#{i} {100 * i + 100} 100" for i in range(len(ends)))
    events = [f"1 CPU p {peak} {peak} 0", f"2 CPU p -{peak} 0 0"] if peak else []
    before = 0
    for i, end in enumerate(ends):
        if end != before:
            events.append(f"{100 * i + 150} CPU b{i} {end - before} {end} 0")
        before = end
    trace = draw("host cpu_op start 0 1\n" + picture, *memory("\n".join(events)))
    change = growth(trace, levels(trace)[0])
    assert change is not None
    return change


@pytest.mark.parametrize(
    ("ends", "growing", "since"),
    [
        ((10, 20, 30), True, 0),
        ((10, 20), False, 0),  # two ends may be caches that fill
        ((50, 20, 30, 40), True, 1),  # what the first step leaves may go
        ((50, 20, 30), False, 1),
        ((10, 50, 20, 30, 40), False, 2),  # not what the second leaves
        ((10, 20, 20, 30, 40), False, 2),  # every end must have more
        ((10, 20, 30, 25), False, 3),
    ],
)
def test_memory_grows_if_every_end_has_more_since_the_first_or_second(
    ends: tuple[int, ...], growing: bool, since: int
) -> None:
    change = grown(*ends)
    assert (change.live.tolist(), change.growing, change.since) == (list(ends), growing, since)


@pytest.mark.parametrize(("peak", "growing"), [(19_999, True), (20_000, False)])
def test_growth_of_a_thousandth_of_the_peak_is_none(peak: int, growing: bool) -> None:
    assert grown(10, 20, 30, peak=peak).growing == growing


def test_a_record_at_the_very_end_of_a_step_counts_for_it() -> None:
    trace = draw(
        "host user_annotation ProfilerStep#0 0 100\nhost user_annotation ProfilerStep#1 100 100",
        *memory("100 CPU a 8 8 0\n201 CPU b 8 16 0"),
    )
    change = growth(trace, levels(trace)[0])
    assert change is not None and change.live.tolist() == [8, 8]


def test_holders_are_the_blocks_that_stay() -> None:
    """b is gone by the end, c was there when the growth began."""
    picture = "\n".join(f"host user_annotation ProfilerStep#{i} {100 * i} 100" for i in range(3))
    calls = "host cpu_op aten::keep 10 15\nhost cpu_op aten::keep 110 15\nhost cpu_op aten::keep 210 15"
    trace = draw(
        f"{picture}\n{calls}",
        *memory("""
        20   CPU  c  100  100  0
        120  CPU  d  100  200  0
        130  CPU  b   50  250  0
        220  CPU  e  100  350  0
        230  CPU  b  -50  300  0
        """),
    )
    change = growth(trace, levels(trace)[0])
    assert change is not None and change.growing
    (keep,) = change.holders
    assert keep.live.tolist() == [100, 200, 300]
    assert keep.blocks == 2  # d and e


def test_growth_is_unknown_where_the_first_events_have_no_totals() -> None:
    steps = "\n".join(f"host user_annotation ProfilerStep#{i} {100 * i} 100" for i in range(3))
    events = memory("20 CPU a 10 - -\n120 CPU b 10 20 0\n220 CPU c 10 30 0")
    trace = draw(steps, *events)
    assert growth(trace, levels(trace)[0]) is None
