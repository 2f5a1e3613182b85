"""Memory that rises although no block stays, and peaks outside of the steps, with the nearest that is none."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.support.memory_traces import memory
from tests.support.traces import draw
from torch_tb_profiler.analyses.memory.growth import memory_growth
from torch_tb_profiler.analyses.shared.memory_curve import memory_levels
from torch_tb_profiler.analyses.shared.memory_trends import MemoryTrends, ReservedRise, RisingLive, memory_trends
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.memory.build import build
from torch_tb_profiler.views.overview.build import build as overview

MIB = 2**20


def concatenating(
    sizes: Sequence[int], reserved: Sequence[int], before: int = 100, extra: int = 0, device: str = "GPU0"
) -> Trace:
    """Draw steps of 100 us from 100 us on; each replaces the previous one's block by one of its size, in MiB.

    before  MiB that live all the time; extra: MiB that live before the first step only
    """
    lines, total = [f"1 GPU0 old {before * MIB} {before * MIB} {reserved[0] * MIB}"], before
    if extra:
        lines.append(f"2 GPU0 init {extra * MIB} {(before + extra) * MIB} {reserved[0] * MIB}")
        lines.append(f"3 GPU0 init {-extra * MIB} {before * MIB} {reserved[0] * MIB}")
    picture = []
    for i, size in enumerate(sizes):
        at = 100 * (i + 1)
        picture.append(f"host user_annotation ProfilerStep#{i} {at} 100\nhost cpu_op aten::cat {at + 10} 50")
        total += size
        lines.append(f"{at + 20} GPU0 b{i} {size * MIB} {total * MIB} {reserved[i] * MIB}")
        if i:
            total -= sizes[i - 1]
            lines.append(f"{at + 70} GPU0 b{i - 1} {-sizes[i - 1] * MIB} {total * MIB} {reserved[i] * MIB}")
    return draw("\n".join(picture), *memory("\n".join(lines).replace("GPU0", device)))


def trends(trace: Trace) -> MemoryTrends:
    return memory_trends(trace, memory_levels(trace)[0])


def verdict(trace: Trace) -> str:
    (growth,) = build(trace, NoParams()).growth
    return plain(growth.verdict)


FLAT = [300] * 6


def test_a_running_concatenation_rises_although_no_block_stays() -> None:
    trace = concatenating([10, 20, 30, 40, 50, 60], FLAT)
    growth = memory_growth(trace, memory_levels(trace)[0])
    assert growth is not None and not growth.growing
    assert trends(trace).live == RisingLive(10 * MIB, "aten::cat")
    assert "Live memory rises by 10.0 MiB per step: aten::cat allocates more in each step" in verdict(trace)
    assert "Live memory rises by 10.0 MiB per step." in plain(build(trace, NoParams()).headline)


def test_a_batch_whose_size_varies_does_not_rise() -> None:
    for sizes in ([10] * 6, [10, 60, 20, 50, 30, 40], [60, 50, 40, 30, 20, 10], [10, 20, 30, 30, 30, 30]):
        assert trends(concatenating(sizes, FLAT)).live is None


def test_reserved_memory_that_rises_alone_is_fragmentation() -> None:
    trace = concatenating([10] * 6, [200, 220, 240, 260, 280, 300])
    assert trends(trace) == MemoryTrends(None, ReservedRise(20 * MIB, 0), None)
    assert verdict(trace).endswith(
        "Reserved memory rises by 20.0 MiB per step while tensors use no more: memory is fragmented. "
        "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."
    )


def test_reserved_memory_that_tensors_use_is_no_fragmentation() -> None:
    rising = concatenating([10, 20, 30, 40, 50, 60], [200, 220, 240, 260, 280, 300])
    assert trends(rising).reserved is None
    assert trends(concatenating([10] * 6, [200, 300, 300, 300, 300, 300])).reserved is None


def test_reserved_memory_that_a_cleared_list_used_is_no_fragmentation() -> None:
    """Outputs collect in a list until the epoch ends; the allocator keeps what they used."""
    picture, lines, total = [], [], 0
    for i in range(8):
        at = 100 * (i + 1)
        picture.append(f"host user_annotation ProfilerStep#{i} {at} 100\nhost cpu_op aten::mm {at + 10} 50")
        total += 20
        lines.append(f"{at + 20} GPU0 b{i} {20 * MIB} {total * MIB} {20 * min(i + 1, 7) * MIB}")
        if i == 6:
            for number in range(7):
                total -= 20
                lines.append(f"{at + 70 + number} GPU0 b{number} {-20 * MIB} {total * MIB} {140 * MIB}")
    assert trends(draw("\n".join(picture), *memory("\n".join(lines)))).reserved is None


def test_reserved_memory_that_is_used_between_the_steps_is_no_fragmentation() -> None:
    """A validation between the steps takes more each time; the steps themselves take the same."""
    picture, lines = [], []
    for i in range(6):
        at, size = 200 * (i + 1), 100 + 20 * i
        picture.append(f"host user_annotation ProfilerStep#{i} {at} 100\nhost cpu_op aten::mm {at + 10} 50")
        lines += [f"{at + 20} GPU0 b{i} {10 * MIB} {10 * MIB} {(size - 20) * MIB}"]
        lines += [f"{at + 70} GPU0 b{i} {-10 * MIB} 0 {(size - 20) * MIB}"]
        lines += [f"{at + 120} GPU0 v{i} {size * MIB} {size * MIB} {size * MIB}"]
        lines += [f"{at + 170} GPU0 v{i} {-size * MIB} 0 {size * MIB}"]
    assert trends(draw("\n".join(picture), *memory("\n".join(lines)))).reserved is None


def test_a_peak_outside_of_the_steps_is_no_peak_of_the_steps() -> None:
    trace = concatenating([10] * 6, [900] * 6, extra=500)
    assert trends(trace).peak_in_steps == 120 * MIB
    assert "peaks at 600 MiB outside of the steps, which reach 120 MiB" in plain(build(trace, NoParams()).headline)
    assert trends(concatenating([10] * 6, FLAT)).peak_in_steps is None


def growing_by(*operators: str) -> Trace:
    """Draw steps in which each operator replaces its block by one that is 10 MiB larger; "" is outside of any."""
    picture, lines, total, last = [], [], 100, dict.fromkeys(range(len(operators)), "")
    for step in range(6):
        at = 1000 * step
        picture.append(f"host user_annotation ProfilerStep#{step} {at} 1000")
        for number, operator in enumerate(operators):
            begin, size = at + 100 * number + 50, 10 * (step + 1)
            picture += [f"host cpu_op {operator} {begin} 50"] if operator else []
            total += size
            lines.append(f"{begin + 10} GPU0 b{step}{number} {size * MIB} {total * MIB} {900 * MIB}")
            if step:
                total -= size - 10
                lines.append(f"{begin + 20} GPU0 {last[number]} {(10 - size) * MIB} {total * MIB} {900 * MIB}")
            last[number] = f"b{step}{number}"
    return draw("\n".join(picture), *memory("\n".join(lines)))


@pytest.mark.parametrize(
    ("operators", "named"),
    [
        (("aten::cat",), "aten::cat"),
        (("aten::cat", "aten::cat", "aten::stack"), "aten::cat"),
        (("aten::cat", "aten::stack", "aten::mul"), None),
        (("",), ""),
        (("", "aten::cat", "aten::mul"), None),
    ],
)
def test_what_allocates_less_than_half_of_a_rise_is_not_named(
    operators: tuple[str, ...], named: str | None
) -> None:
    trace = growing_by(*operators)
    rising = trends(trace).live
    assert rising is not None and rising.name == named
    advice = next(each for each in overview(trace, NoParams()).recommendations if each.id == "memory_growth")
    sentences = f"{plain(advice.text)} {verdict(trace)}"
    for name in {*operators} - {""}:
        assert (
            (f"most of it allocated by {name}" in sentences)
            == (f"{name} allocates more" in sentences)
            == (name == named)
        )
    assert ("most of it allocated by code outside operators" in sentences) == (named == "")
    assert ("most of it by no single operator" in sentences) == (named is None)
