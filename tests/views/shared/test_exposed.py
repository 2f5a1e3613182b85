"""The parts of exposed communication."""

from __future__ import annotations

import pytest

from torch_tb_profiler.analyses.distributed.steps import ExposedCommunication
from torch_tb_profiler.views._shared.job.exposed import communication_parts


@pytest.mark.parametrize(
    ("steps", "whole", "waiting"), [(3, 15_455_001, 15_001_121), (7, 100, 33), (30, 10**9 + 7, 11)]
)
def test_what_is_left_of_means_by_arithmetic_alone_is_no_time(steps: int, whole: int, waiting: int) -> None:
    exposed = ExposedCommunication((whole - waiting) / steps, waiting / steps)
    assert communication_parts(whole / steps * (1 + 1e-15), exposed).uncompared_ns == 0.0


def test_a_nanosecond_of_many_steps_is_left() -> None:
    exposed = ExposedCommunication(50.0, 49.0)
    assert communication_parts(99 + 1 / 500, exposed).uncompared_ns == pytest.approx(1 / 500)
    assert communication_parts(99.0, None).uncompared_ns == 99.0
