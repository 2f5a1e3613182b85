"""Each sentence about late ranks is said where it is true, and not where one thing makes it false."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.support.claims import templates_of
from tests.support.job_views import sentences
from tests.views.distributed.claims import CLAIMS, NO_CLAIMS, JobClaim, SimulatedJob
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views._shared.job import causes, names, verdict
from torch_tb_profiler.views.distributed.build import build


def said_of(job: SimulatedJob) -> str:
    recorded = replace(job.simulation.run(), untimed=job.untimed)
    return sentences(build(recorded.members(only=job.found), NoParams()))


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.template[:50])
def test_a_claim_is_made_where_it_holds_and_not_where_it_is_false(claim: JobClaim) -> None:
    holds, other = said_of(claim.holds), said_of(claim.other)
    assert re.search(claim.says, holds), holds
    assert not re.search(claim.says, other), (claim.false_if, other)


def test_every_template_has_a_job_that_makes_it_false() -> None:
    """A template that is new here needs one, too; what claims nothing is listed with the reason."""
    listed = {*(claim.template for claim in CLAIMS), *NO_CLAIMS}
    assert sorted(
        {template for module in (causes, names, verdict) for template in templates_of(module)}
    ) == sorted(listed)
