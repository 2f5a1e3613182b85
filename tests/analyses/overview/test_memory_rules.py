"""Memory that is nearly full."""

from __future__ import annotations

import pytest

from tests.analyses.overview.advice_traces import BACKWARD, card, get_advice, steps
from tests.support.memory_traces import memory
from tests.support.traces import draw

STEP = steps(1, 100)


@pytest.mark.parametrize(
    ("event", "gives"),
    [
        ("20 GPU0 a 900 900 900", False),
        ("20 GPU0 a 901 901 901", True),
        ("20 GPU0 a 901 - -", False),  # without totals nobody knows what else is allocated
        ("20 CPU a 901 901 901", False),
    ],
)
def test_memory_is_nearly_full_above_nine_tenths(event: str, gives: bool) -> None:
    trace = draw(STEP, *memory(event), deviceProperties=card(totalGlobalMem=1000))
    assert (get_advice(trace, "memory_limit") is not None) == gives


def test_a_card_of_unknown_size_is_never_full() -> None:
    assert (
        get_advice(draw(STEP, *memory("20 GPU0 a 901 901 901"), deviceProperties=card()), "memory_limit") is None
    )


@pytest.mark.parametrize(("lines", "case"), [("", "inference"), (f"\n{BACKWARD}", "training")])
def test_checkpoints_are_for_training(lines: str, case: str) -> None:
    trace = draw(STEP + lines, *memory("20 GPU0 a 901 901 901"), deviceProperties=card(totalGlobalMem=1000))
    found = get_advice(trace, "memory_limit")
    assert found is not None and (found.finding.case, found.gain) == (case, None)


def test_captures_of_graphs_get_no_checkpoints() -> None:
    capture = "\nhost cuda_runtime hipStreamBeginCapture 5 5"
    trace = draw(STEP + capture, *memory("20 GPU0 a 901 901 901"), deviceProperties=card(totalGlobalMem=1000))
    assert get_advice(trace, "memory_limit") is None
