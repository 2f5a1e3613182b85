"""Kernels twice as fast save no more than their roofline allows."""

from __future__ import annotations

import pytest

from tests.analyses.overview.kernel_calls import H100, SM90, STEP, SYNC, events, product
from tests.support.traces import read
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.critical_path.build import build
from torch_tb_profiler.views.critical_path.payload import CriticalPathParams, CriticalPathPayload

ROOF_US = 2 * 8192 * 4096 * 4096 / 989.4e12 * 1e6
"""Shortest time of the product at the peak of an H100."""


def answer(time: float, device: str = str(H100["name"])) -> CriticalPathPayload:
    calls = [product(SM90, 8192, time=time)] * 20
    step = {**STEP, "dur": 1_000 + 20 * time + 10}
    sync = {**SYNC, "dur": 100 + 20 * time + 10}
    return build(
        read([step, sync, *events(*calls)], deviceProperties=[{**H100, "name": device}]), CriticalPathParams()
    )


@pytest.mark.parametrize(
    ("ratio", "allowed"),
    [(1.25, 0.2), (1.6, 0.375)],
)
def test_kernels_near_their_roofline_are_said_to_save_what_is_left(ratio: float, allowed: float) -> None:
    path = answer(ratio * ROOF_US)
    assert path.path.attainable_ns is not None
    saved = (path.path.duration_ns - path.path.attainable_ns) / (20e3 * ratio * ROOF_US)
    assert saved == pytest.approx(allowed, abs=0.01)
    assert "Speedups of up to 2× (within their roofline) would cut the step to" in plain(path.headline)
    assert "Kernels up to twice as fast (within their roofline) would save" in plain(path.explanation)


def test_kernels_at_their_roofline_can_not_be_faster() -> None:
    path = answer(1.002 * ROOF_US)
    assert "They run at their roofline, so faster ones can't shorten the step." in plain(path.headline)
    assert "Kernels run at their roofline, so they can't be notably faster." in plain(path.explanation)


def test_kernels_that_can_be_twice_as_fast_or_of_unknown_peak_are_not_bounded() -> None:
    for path in (answer(2.5 * ROOF_US), answer(ROOF_US, device="Unknown 9000")):
        assert path.path.attainable_ns is None
        assert "Making them twice as fast would cut the step" in plain(path.headline)
        assert "Kernels twice as fast would save" in plain(path.explanation)
