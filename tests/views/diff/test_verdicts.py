"""Verdicts on simulated differences whose significance is known."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from tests.support.diffs import WORK, compare, noise, verdicts
from tests.support.recordings import Op, record
from torch_tb_profiler.model.trace import TracePair
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.diff.build import build
from torch_tb_profiler.views.diff.payload import DiffParams


def test_two_halves_of_equal_work_flag_nothing_in_19_of_20_draws() -> None:
    flagged = 0
    for seed in range(20):
        halves = [record(WORK, 10, noise(100 + 2 * seed + half, step=0.01, op=0.05)) for half in (0, 1)]
        flagged += bool(verdicts(compare(*halves)) & {"slower", "faster"})
    assert flagged <= 1


def test_a_slowdown_of_5_percent_is_detected_in_19_of_20_draws() -> None:
    slow = [replace(op, own=op.own * 1.05, kernel=op.kernel * 1.05) for op in WORK]
    step = sum(op.own + sum(each.own for each in op.inside) for op in WORK)
    slow = [*WORK, Op("aten::extra", 0.05 * (step + 12 * 2.0 + 10))]
    slower = 0
    for seed in range(20):
        base = record(WORK, 10, noise(200 + 2 * seed, step=0.01, op=0.0))
        candidate = record(slow, 10, noise(201 + 2 * seed, step=0.01, op=0.0))
        slower += compare(base, candidate).step.verdict == "slower"
    assert slower >= 19


@pytest.mark.parametrize("counts", [(1, 1), (1, 10), (10, 1)])
def test_a_side_with_one_step_proves_nothing(counts: tuple[int, int]) -> None:
    base, candidate = (record(ops, steps) for ops, steps in zip((WORK, WORK[1:]), counts, strict=True))
    answer = compare(base, candidate)
    assert verdicts(answer) <= {"cannot_tell", "unknown", "equal"}
    assert answer.step.verdict == "cannot_tell"
    assert answer.step.low_ns is answer.step.q is None
    assert "fewer than two steps" in plain(answer.reasons["q"])


def test_the_answer_is_the_same_every_time() -> None:
    pair = record(WORK, 5, noise(1)), record(WORK[:-1], 4, noise(2))
    assert msgspec.json.encode(compare(*pair)) == msgspec.json.encode(compare(*pair))


def test_a_change_must_have_the_minimum_effect() -> None:
    base = record(WORK, 10, noise(1, 1e-5, 1e-5))
    candidate = record([replace(op, own=op.own * 1.03) for op in WORK], 10, noise(2, 1e-5, 1e-5))
    assert build(TracePair([base], [candidate]), DiffParams(min_effect=0.01)).step.verdict == "slower"
    assert build(TracePair([base], [candidate]), DiffParams(min_effect=0.05)).step.verdict == "unchanged"
