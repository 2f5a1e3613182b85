"""How alike two recordings are."""

from __future__ import annotations

import pytest

from tests.support.traces import draw
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.session.kept.likeness import SKETCH, common_names, sketch


def trace(first: int, last: int, category: str = "cpu_op") -> Trace:
    return draw("\n".join(f"host {category} name{i} {i} 1" for i in range(first, last)))


@pytest.mark.parametrize("count", [10, 10 * SKETCH])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.9, 1.0])
def test_the_share_of_common_names_is_told_from_a_few_of_them(count: int, share: float) -> None:
    apart = round(count * (1 - share) / (1 + share))
    found = common_names(sketch(trace(0, count)), sketch(trace(apart, apart + count)))
    assert found == pytest.approx((count - apart) / (count + apart), abs=0.1)
    assert len(sketch(trace(0, count)).names) == min(count, SKETCH)


def test_without_operators_kernels_tell_and_without_names_nothing_does() -> None:
    kernels = sketch(trace(0, 5, "kernel"))
    assert common_names(kernels, kernels) == 1
    assert common_names(sketch(trace(0, 5, "user_annotation")), sketch(trace(0, 5, "user_annotation"))) == 0
