"""Where a device's clock is moved, every view that rests on it says so; where it is not, none does."""

from __future__ import annotations

import pytest

from tests.support.traces import draw
from tests.support.views import ask, words

EARLY = """
host  user_annotation  ProfilerStep#1      0  200
host  cuda_runtime     cudaLaunchKernel   50   10  correlation=1
gpu0  kernel           gemm               40  190  correlation=1
"""


@pytest.mark.parametrize("slug", ["idle", "critical_path"])
def test_the_clock_is_said_to_be_moved_where_it_is(slug: str) -> None:
    # The kernel begins 10 us before its call, and no launch takes less than 1 us.
    assert "clock was shifted by 11.0 µs, because some work was recorded as starting before its launch." in words(
        ask(draw(EARLY), slug)["limits"]
    )
    on_time = draw(EARLY.replace("gemm               40", "gemm               70"))
    assert "clock" not in words(ask(on_time, slug)["limits"]).replace("clock speeds, the GIL", "")


def test_idle_time_says_how_well_it_is_explained_and_where_waiting_is_shown() -> None:
    limits = ask(draw(EARLY.replace("gemm", "ncclDevKernel_AllReduce")), "idle")["limits"]
    assert words(limits).startswith(
        "The recorded launches and syncs explain when all device work in complete steps starts."
    )
    assert [phrase["text"] for phrase in limits if phrase["link"] == "distributed"] == ["Distributed"]
    assert "collectives" not in words(ask(draw(EARLY), "idle")["limits"])  # it has none that could wait
