"""Each reason why something is unknown or missing is given where it holds, and not where it doesn't."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import torch_tb_profiler
from tests.support.claims import Claim, reasons_of
from tests.views.reasons import fields, jobs, serving, tabs

TABLES = (tabs, serving, fields, jobs)

CLAIMS = {module: claims for table in TABLES for module, claims in table.CLAIMS.items()}
NO_CLAIMS = {reason: why for table in TABLES for reason, why in table.NO_CLAIMS.items()}


@pytest.mark.parametrize(
    "claim",
    [
        pytest.param(claim, id=f"{module}: {claim.template[:50]}")
        for module, claims in CLAIMS.items()
        for claim in claims
    ],
)
def test_a_reason_is_given_where_it_holds_and_not_where_it_is_false(claim: Claim) -> None:
    holds, other = claim.holds(), claim.other()
    assert re.search(claim.says, holds), holds
    assert not re.search(claim.says, other), (claim.false_if, other)


@pytest.mark.parametrize("module", CLAIMS)
def test_every_reason_has_a_recording_that_makes_it_false(module: str) -> None:
    """A reason that is new here needs one, too; what claims nothing is listed with why."""
    given = reasons_of(Path(torch_tb_profiler.__file__).parent / module)
    listed = {claim.template for claim in CLAIMS[module]}
    assert sorted(listed - given) == []
    assert sorted(given - listed - NO_CLAIMS.keys()) == []
