"""When a rank is named."""

from __future__ import annotations

import pytest

from tests.support.jobs import Job, ddp
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views.distributed.build import build


@pytest.mark.parametrize(("slow_us", "kind"), [(45.0, "balanced"), (90.0, "straggler")])
def test_a_delay_of_a_fiftieth_of_the_step_is_worth_a_name(slow_us: float, kind: str) -> None:
    """A step takes 3.2 ms: 64 us."""
    payload = build(Job(8, ddp(8), straggler=4, slow_us=slow_us, jitter_us=0.0).members(), NoParams())
    assert payload.verdict.kind == kind
    assert payload.stragglers[0].rank == 4  # the table lists the delay all the same
