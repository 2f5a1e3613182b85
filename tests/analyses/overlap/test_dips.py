"""Dips of overlap, and whether unusual readings of the GPU coincide with them."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import pytest

from tests.support.producers.aorta import Busy, line, smi_output
from torch_tb_profiler.analyses.overlap.dips import (
    MIN_ITERATIONS,
    OverlapDips,
    chance_of_table,
    find_dips,
)
from torch_tb_profiler.analyses.overlap.summary import summarize_overlap
from torch_tb_profiler.ingest import read_trace
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.overlap.words import dips_headline

COUNT = 40
DIPS = (5, 12, 19, 26, 33)
TYPICAL, LOW = 2100, 1300


def dips(
    overlap: Sequence[int], clocks: Sequence[int | None] = (), *, gpus: int = 1, name: str = "sclk clock level: 1"
) -> OverlapDips:
    """Return the dips of a rank whose iterations overlap so many of 100 µs, and whose GPU reads so."""
    lines = []
    for step, length in enumerate(overlap):
        ranges = [Busy("compute", 0, 100), Busy("allreduce", 100 - length, 150)]
        clock = clocks[step] if clocks else None
        value = f"({clock}Mhz)" if "clock" in name else clock
        more: dict[str, Any] = {} if clock is None else {"rocm_smi_output": smi_output(*[{name: value}] * gpus)}
        lines.append(line(step, ranges, 200, **more))
    trace = read_trace(io.BytesIO("\n".join(map(json.dumps, lines)).encode()))
    return find_dips([summarize_overlap(trace).table()])


def spread(at: Sequence[int], low: int, high: int) -> list[int]:
    return [low if step in at else high for step in range(COUNT)]


def headline(found: OverlapDips) -> str:
    return plain(dips_headline(found))


OVERLAP = spread(DIPS, 30, 60)


def test_dips_with_a_low_clock_are_strong_evidence_of_throttling() -> None:
    found = dips(OVERLAP, spread((*DIPS, 20), LOW, TYPICAL))
    (clock,) = found.signals
    assert (clock.dips_with, clock.dips, clock.others_with, clock.others) == (5, 5, 1, 35)
    assert (clock.dip_value, clock.other_value, clock.stretches) == (LOW, TYPICAL, 5)
    assert clock.strength == "strong"
    assert headline(found) == (
        "Strong evidence that dips in overlap coincide with throttling: the clock is low in 5 of 5 dips, "
        "and in 1 of 35 other iterations."
    )


def test_a_clock_that_is_as_often_low_elsewhere_is_no_evidence() -> None:
    """Falsifies the rule that any low clock in a dip is throttling."""
    found = dips(OVERLAP, [LOW if step % 2 else TYPICAL for step in range(COUNT)])
    assert found.signals[0].dips_with == 3 and found.signals[0].strength == "none"
    assert headline(found) == (
        "Overlap dips in 5 of 40 iterations, but not together with unusual readings: clock."
    )


def test_one_long_stretch_is_a_single_event_and_weak_evidence() -> None:
    at = range(20, 28)
    found = dips(spread(at, 30, 60), spread(at, LOW, TYPICAL))
    assert found.signals[0].chance < 1e-6 and found.signals[0].stretches == 1
    assert found.signals[0].strength == "weak"
    assert headline(found).startswith("Weak evidence that")


def test_a_higher_clock_in_dips_is_no_throttling() -> None:
    assert dips(OVERLAP, spread(DIPS, TYPICAL + 900, TYPICAL)).signals[0].strength == "none"


def test_a_low_clock_in_few_of_the_dips_does_not_explain_them() -> None:
    many = tuple(range(1, 40, 2))
    found = dips(spread(many, 30, 60), spread(many[:8], LOW, TYPICAL))
    assert found.signals[0].chance < 0.01 and found.signals[0].strength == "none"


@pytest.mark.parametrize(
    ("name", "unusual", "typical", "wanted"),
    [
        ("Temperature (Sensor junction) (C)", 98, 90, "heat: the GPU is hotter in 5 of 5 dips"),
        ("GPU Memory Allocated (VRAM%)", 96, 80, "memory pressure: memory is nearly full in 5 of 5 dips"),
    ],
)
def test_heat_and_full_memory_are_named_as_such(name: str, unusual: int, typical: int, wanted: str) -> None:
    assert wanted in headline(dips(OVERLAP, spread(DIPS, unusual, typical), name=name))
    below = {"Temperature (Sensor junction) (C)": 94, "GPU Memory Allocated (VRAM%)": 94}[name]
    assert dips(OVERLAP, spread(DIPS, below, typical), name=name).signals[0].dips_with == 0


def test_unknown_reasons_are_named() -> None:
    assert headline(dips(OVERLAP)) == (
        "Overlap dips in 5 of 40 iterations. The cause is unknown: no output of `rocm-smi` was recorded "
        "(`--enable-rocm-metrics`)."
    )
    # Two ranks, eight GPUs: rank 0 may be on any of them.
    assert "lists 8 GPUs, and which one a rank used isn't recorded" in headline(
        dips(OVERLAP, spread(DIPS, LOW, TYPICAL), gpus=8)
    )
    assert "no clock, temperature or memory" in headline(
        dips(OVERLAP, spread(DIPS, 100, 300), name="Average Graphics Package Power (W)")
    )


def test_steady_overlap_and_short_recordings_have_no_dips() -> None:
    assert headline(dips([60] * COUNT)) == "No iteration's overlap is below 80% of its rank's median."
    assert dips([60] * 9 + [49]).dips == 0 and dips([60] * 9 + [47]).dips == 1
    assert dips([60] * (MIN_ITERATIONS - 2) + [10]).iterations == 0
    assert dips([0] * COUNT).iterations == 0


def test_the_chance_is_the_count_of_all_ways_to_choose_the_dips() -> None:
    unusual = {0, 1, 2}
    ways = [len(unusual & set(chosen)) for chosen in combinations(range(9), 4)]
    for dips_with in range(4):
        expected = sum(each >= dips_with for each in ways) / len(ways)
        assert chance_of_table(dips_with, 4, 3 - dips_with, 5) == pytest.approx(expected)
