"""Each reason why something is unknown or missing is given where it holds, and not where it doesn't."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import torch_tb_profiler
from tests.support.claims import Claim, reasons_of
from tests.views.reasons import elsewhere, engines, fields, jobs, memory, serving, tabs

PACKAGE = Path(torch_tb_profiler.__file__).parent

TABLES = (tabs, serving, fields, memory, jobs, engines)

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


@pytest.mark.parametrize("module", sorted({*CLAIMS, *elsewhere.TRIED}))
def test_every_reason_has_a_recording_that_makes_it_false(module: str) -> None:
    """A reason that is new here needs one, too; what claims nothing is listed with why."""
    given = reasons_of(PACKAGE / module)
    listed = {*(claim.template for claim in CLAIMS.get(module, [])), *elsewhere.TRIED.get(module, {})}
    assert sorted(listed - given) == []
    assert sorted(given - listed - NO_CLAIMS.keys()) == []


@pytest.mark.parametrize("place", sorted({test for tried in elsewhere.TRIED.values() for test in tried.values()}))
def test_what_is_tried_elsewhere_is_tried_by_a_test_that_exists(place: str) -> None:
    path, _, name = place.partition("::")
    assert f"\ndef {name}(" in (PACKAGE.parent / path).read_text(encoding="utf-8")


def test_no_module_with_reasons_is_left_out() -> None:
    layers = ("analyses", "model", "session", "summary", "views")
    giving = {
        str(path.relative_to(PACKAGE))
        for layer in layers
        for path in (PACKAGE / layer).rglob("*.py")
        if reasons_of(path) - NO_CLAIMS.keys()
    }
    listed = {*CLAIMS, *elsewhere.TRIED, *elsewhere.PARTS_OF_SENTENCES, *elsewhere.NO_REASONS}
    assert sorted(giving - listed) == []
    assert sorted(listed - giving) == []
